//! Values by key on their way to the data plane: only differences to what was sent before leave.
//!
//! # Invariants
//! - A key is pending only if its wanted value differs from the one that was sent, so a value that changed and changed
//!   back is not sent, and a removal is only sent for what was sent before.
//! - Messages leave in the order of the keys.

use std::collections::BTreeMap;
use std::hash::Hash;

use hashbrown::HashMap;

use crate::message::Message;

/// See the module.
#[derive(Debug)]
pub(super) struct Outbox<K, V> {
    sent: HashMap<K, V>,
    /// What the data plane is to hold where that differs from what was sent.
    pending: BTreeMap<K, Option<V>>,
}

// === impl Outbox ===

impl<K, V> Default for Outbox<K, V> {
    fn default() -> Self {
        Self {
            sent: HashMap::new(),
            pending: BTreeMap::new(),
        }
    }
}

impl<K: Clone + Ord + Hash, V: Clone + PartialEq> Outbox<K, V> {
    /// What the data plane is to hold for a key.
    pub(super) fn want(&mut self, key: K, value: Option<V>) {
        if self.sent.get(&key) == value.as_ref() {
            self.pending.remove(&key);
        } else {
            self.pending.insert(key, value);
        }
    }

    /// The data plane is to hold nothing.
    pub(super) fn want_nothing(&mut self) {
        self.pending = self.sent.keys().map(|key| (key.clone(), None)).collect();
    }

    /// The value that was sent for a key and not removed since.
    pub(super) fn sent(&self, key: &K) -> Option<&V> {
        self.sent.get(key)
    }

    /// Sends the pending removals.
    pub(super) fn flush_removals(
        &mut self,
        sink: &mut dyn FnMut(Message),
        message: impl Fn(K) -> Message,
    ) {
        for (key, _) in self.pending.extract_if(.., |_, value| value.is_none()) {
            self.sent.remove(&key);
            sink(message(key));
        }
    }

    /// Sends the pending removals, and one for each value that an update will replace.
    pub(super) fn flush_removals_before_updates(
        &mut self,
        sink: &mut dyn FnMut(Message),
        message: impl Fn(K) -> Message,
    ) {
        for key in self.pending.keys() {
            if self.sent.remove(key).is_some() {
                sink(message(key.clone()));
            }
        }
        self.pending.retain(|_, value| value.is_some());
    }

    /// Sends the pending updates.
    pub(super) fn flush_updates(
        &mut self,
        sink: &mut dyn FnMut(Message),
        message: impl Fn(&K, V) -> Message,
    ) {
        for (key, value) in self.pending.extract_if(.., |_, value| value.is_some()) {
            if let Some(value) = value {
                sink(message(&key, value.clone()));
                self.sent.insert(key, value);
            }
        }
    }
}

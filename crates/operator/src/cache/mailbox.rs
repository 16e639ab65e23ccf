//! What one subscriber has not read yet: the newest state of each object.

use std::collections::{HashMap, VecDeque, hash_map};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::key::ObjectKey;

/// What became of an object.
#[derive(Debug)]
pub enum Change<K> {
    /// It is there, as given.
    Applied(Arc<K>),
    /// It is gone; this was its last known state.
    Deleted(Arc<K>),
}

impl<K> Clone for Change<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Applied(object) => Self::Applied(Arc::clone(object)),
            Self::Deleted(object) => Self::Deleted(Arc::clone(object)),
        }
    }
}

/// A change of an object.
#[derive(Debug)]
pub struct Event<K> {
    /// Which object.
    pub key: ObjectKey,
    /// What this subscriber was told last, unless it was never told or the last was its deletion.
    pub before: Option<Arc<K>>,
    /// What became of it.
    pub change: Change<K>,
}

impl<K> Event<K> {
    /// The object as it is now, unless it is gone.
    pub fn after(&self) -> Option<&Arc<K>> {
        match &self.change {
            Change::Applied(object) => Some(object),
            Change::Deleted(_) => None,
        }
    }
}

/// Follows the changes of a cache.
pub struct Subscription<K> {
    mailbox: Arc<Mailbox<K>>,
}

impl<K> Subscription<K> {
    pub(super) fn new(mailbox: Arc<Mailbox<K>>) -> Self {
        Self { mailbox }
    }

    /// The next change, if there is one already.
    pub fn try_next(&mut self) -> Option<Event<K>> {
        self.mailbox.lock().take()
    }

    /// Waits for the next change. Nothing once the cache is gone.
    ///
    /// Dropping the future loses no change.
    pub async fn next(&mut self) -> Option<Event<K>> {
        loop {
            let changed = self.mailbox.changed.notified();
            {
                let mut state = self.mailbox.lock();
                if let Some(event) = state.take() {
                    return Some(event);
                }
                if state.is_closed {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl<K> fmt::Debug for Subscription<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("waiting", &self.mailbox.lock().events.len())
            .finish()
    }
}

pub(super) struct Mailbox<K> {
    state: Mutex<MailboxState<K>>,
    changed: Notify,
}

struct MailboxState<K> {
    /// Keys in the order of their first event that was not read. Those without an entry in `events` are passed over.
    order: VecDeque<ObjectKey>,
    events: HashMap<ObjectKey, Unread<K>>,
    is_closed: bool,
}

struct Unread<K> {
    before: Option<Arc<K>>,
    change: Change<K>,
}

// === impl Mailbox ===

impl<K> Mailbox<K> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(MailboxState {
                order: VecDeque::new(),
                events: HashMap::new(),
                is_closed: false,
            }),
            changed: Notify::new(),
        }
    }

    pub(super) fn put(&self, key: &ObjectKey, before: Option<Arc<K>>, change: Change<K>) {
        self.lock().put(key, before, change);
        self.changed.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, MailboxState<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl MailboxState ===

impl<K> MailboxState<K> {
    fn put(&mut self, key: &ObjectKey, before: Option<Arc<K>>, change: Change<K>) {
        match self.events.entry(key.clone()) {
            hash_map::Entry::Vacant(entry) => {
                entry.insert(Unread { before, change });
                self.order.push_back(key.clone());
            }
            hash_map::Entry::Occupied(mut entry) => {
                let is_unknown = entry.get().before.is_none();
                if is_unknown && matches!(change, Change::Deleted(_)) {
                    // It came and went unseen.
                    entry.remove();
                    self.tidy();
                } else {
                    entry.get_mut().change = change;
                }
            }
        }
    }

    fn take(&mut self) -> Option<Event<K>> {
        while let Some(key) = self.order.pop_front() {
            if let Some(Unread { before, change }) = self.events.remove(&key) {
                if self.events.is_empty() {
                    self.events = HashMap::new();
                    self.order = VecDeque::new();
                }
                return Some(Event {
                    key,
                    before,
                    change,
                });
            }
        }
        None
    }

    /// Keys whose events are gone are removed once they are the larger part.
    fn tidy(&mut self) {
        if self.order.len() > 2 * self.events.len() + 16 {
            let events = &self.events;
            let mut seen = std::collections::HashSet::new();
            self.order
                .retain(|key| events.contains_key(key) && seen.insert(key.clone()));
        }
    }
}

#[cfg(test)]
mod tests;

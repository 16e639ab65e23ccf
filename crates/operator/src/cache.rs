//! One watch and one trimmed copy of a kind, shared by everyone who reads it.
//!
//! A cache lists in pages and then watches, and keeps of each object what its type decodes. Subscribers are told of
//! changes through a mailbox each, which holds the newest state per object.
//!
//! # Invariants
//! - The cache is changed before its subscribers are told: who reads after an event sees that state or a newer one.
//! - After a list that replaces a watch, only differences are told, and what was deleted meanwhile is among them.
//! - An object that cannot be decoded is reported and counts as absent; the others are not held up.
//! - A mailbox never holds more than one event per object that is in the cache or that its owner was told of.

mod fill;
mod kept;
mod mailbox;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use tokio::task::AbortHandle;
use tortie_sync::kubernetes::PAGE_SIZE;

use self::kept::{Kept, Place};
use self::mailbox::Mailbox;
pub use self::mailbox::{Change, Event, Subscription};
use crate::key::ObjectKey;
use crate::object::Object;

/// What a cache watches, and what it keeps.
#[derive(Clone, Debug)]
pub struct CacheOptions<K> {
    /// Removes what is not used from each object, after [`Object::trim`].
    pub trim: Option<fn(&mut K)>,
    /// Only objects with these labels, as in `app=web,tier!=test`.
    pub labels: Option<String>,
    /// Only objects with these fields, as in `spec.nodeName=one`.
    pub fields: Option<String>,
    /// Only objects of this namespace.
    pub namespace: Option<String>,
    /// How many objects are listed at a time.
    pub page_size: u32,
}

impl<K> Default for CacheOptions<K> {
    /// Everything, in pages of 500.
    fn default() -> Self {
        Self {
            trim: None,
            labels: None,
            fields: None,
            namespace: None,
            page_size: PAGE_SIZE,
        }
    }
}

/// A copy of all objects of a kind, kept up to date. Copies are the same cache; the watch ends with the last.
pub struct Cache<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: RwLock<State<K>>,
    synced: tokio::sync::watch::Sender<bool>,
    watch: std::sync::OnceLock<AbortHandle>,
}

struct State<K> {
    objects: BTreeSet<Kept<K>>,
    /// Counts lists: an object with an older number was not in the latest.
    list: u32,
    subscribers: Vec<Weak<Mailbox<K>>>,
}

// === impl Cache ===

impl<K: Object> Cache<K> {
    /// Starts to watch. Needs a tokio runtime.
    pub fn start(client: kube::Client, options: CacheOptions<K>) -> Self {
        let cache = Self::empty();
        let follower = fill::follower(client, options, Arc::downgrade(&cache.shared));
        // Nobody else has the cache yet.
        let task = tokio::spawn(follower.run());
        let _ = cache.shared.watch.set(task.abort_handle());
        cache
    }

    fn empty() -> Self {
        Self {
            shared: Arc::new(Shared {
                state: RwLock::new(State {
                    objects: BTreeSet::new(),
                    list: 0,
                    subscribers: Vec::new(),
                }),
                synced: tokio::sync::watch::Sender::new(false),
                watch: std::sync::OnceLock::new(),
            }),
        }
    }

    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        let state = self.shared.read();
        let kept = state.objects.get(key as &dyn Place);
        kept.map(|kept| Arc::clone(&kept.object))
    }

    /// All objects, in order of their keys.
    pub fn list(&self) -> Vec<Arc<K>> {
        let state = self.shared.read();
        state
            .objects
            .iter()
            .map(|kept| Arc::clone(&kept.object))
            .collect()
    }

    /// All keys, in order.
    pub fn keys(&self) -> Vec<ObjectKey> {
        let state = self.shared.read();
        kept::keys(&state.objects).map(|(key, _)| key).collect()
    }

    /// The objects of a namespace, in order of their names. Costs what it finds.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let state = self.shared.read();
        let from = ObjectKey::new(namespace, "");
        let from: Bound<&dyn Place> = Bound::Included(&from);
        let found = state
            .objects
            .range::<dyn Place, _>((from, Bound::Unbounded));
        found
            .take_while(|kept| kept.object.namespace() == Some(namespace))
            .map(|kept| Arc::clone(&kept.object))
            .collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.shared.read().objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether everything was listed that was there at the start.
    pub fn synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    /// Waits until everything was listed that was there at the start.
    pub async fn wait_synced(&self) {
        let mut synced = self.shared.synced.subscribe();
        // The sender lives as long as `self`.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// Follows changes: first everything that is there now, then what changes. It does not keep the cache alive.
    pub fn subscribe(&self) -> Subscription<K> {
        let mailbox = Arc::new(Mailbox::new());
        let mut state = self.shared.write();
        for (key, object) in kept::keys(&state.objects) {
            mailbox.put(&key, None, Change::Applied(Arc::clone(object)));
        }
        state.subscribers.push(Arc::downgrade(&mailbox));
        Subscription::new(mailbox)
    }
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Object> fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("len", &self.len())
            .field("synced", &self.synced())
            .finish_non_exhaustive()
    }
}

// === impl Shared ===

impl<K> Shared<K> {
    fn read(&self) -> RwLockReadGuard<'_, State<K>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<K>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Drop for Shared<K> {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.get() {
            watch.abort();
        }
        for mailbox in self.write().subscribers.iter().filter_map(Weak::upgrade) {
            mailbox.close();
        }
    }
}

// === impl State ===

impl<K: Object> State<K> {
    fn begin_list(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// A list is complete: what it lacks is gone. Gives how much that is.
    fn end_list(&mut self) -> usize {
        let list = self.list;
        let gone: Vec<_> = self
            .objects
            .extract_if(.., |kept| kept.list != list)
            .collect();
        for Kept { object, .. } in &gone {
            self.tell_deleted(object);
        }
        gone.len()
    }

    /// An object is there as given.
    fn apply(&mut self, object: K) {
        let list = self.list;
        let key = ObjectKey::of(&object);
        let known = self.objects.get(&key as &dyn Place);
        if let Some(known) = known.filter(|known| known.object.version() == object.version()) {
            if known.list != list {
                let object = Arc::clone(&known.object);
                self.objects.replace(Kept { object, list });
            }
            return;
        }
        let object = Arc::new(object);
        let before = self.objects.replace(Kept {
            object: Arc::clone(&object),
            list,
        });
        let before = before.map(|kept| kept.object);
        self.tell(&key, before.as_ref(), &Change::Applied(object));
    }

    /// An object is gone.
    fn delete(&mut self, place: &dyn Place) {
        if let Some(kept) = self.objects.take(place) {
            self.tell_deleted(&kept.object);
        }
    }

    fn tell_deleted(&mut self, last: &Arc<K>) {
        let key = ObjectKey::of(&**last);
        self.tell(&key, Some(last), &Change::Deleted(Arc::clone(last)));
    }

    fn tell(&mut self, key: &ObjectKey, before: Option<&Arc<K>>, change: &Change<K>) {
        self.subscribers.retain(|subscriber| {
            let Some(mailbox) = subscriber.upgrade() else {
                return false;
            };
            mailbox.put(key, before.map(Arc::clone), change.clone());
            true
        });
    }
}

#[cfg(test)]
mod tests;

//! Follows one kind of the datastore, and keeps of each object only what its reader needs.
//!
//! # Invariants
//! - Once the datastore rests and can be reached, what is kept is what it holds, whatever was lost or compacted on the way.
//! - A reader is told of every object whose state it may not know; perhaps more often than needed, never too seldom.
//! - Losing the datastore removes nothing.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use async_trait::async_trait;
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tortie_client::Client;
use tortie_operator::{Manager, ObjectKey};
use tortie_store::{Key, Query, Resource, StoreSource};
use tortie_sync::{Change as Stored, Keeper, Name, Pace, State, Status};

use crate::digest::Digest;
use crate::shared::share;

/// What is kept of the objects of one kind, and of their keys. Copies share it.
pub(crate) struct Followed<T, K = ObjectKey> {
    shared: Arc<Shared<T, K>>,
}

struct Shared<T, K> {
    objects: RwLock<Objects<T, K>>,
    is_synced: watch::Sender<bool>,
}

struct Objects<T, K> {
    known: HashMap<K, T>,
    /// How often the datastore told something.
    told: u64,
    /// Whether everything is being read.
    is_reading: bool,
}

/// How much the datastore has told at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(u64);

/// What is kept of a key: all of it, or so much that it can be told from others.
pub(crate) trait Keep: Clone + Eq + Hash + Send + Sync + 'static {
    fn of(key: &ObjectKey) -> Self;
}

impl Keep for ObjectKey {
    fn of(key: &ObjectKey) -> Self {
        key.clone()
    }
}

impl Keep for Digest {
    fn of(key: &ObjectKey) -> Self {
        Self::of_bytes(key.to_string().as_bytes())
    }
}

/// What a reader is told.
pub(crate) enum Change<'a, T, K = ObjectKey> {
    /// The object was put there or replaced.
    Set {
        key: &'a ObjectKey,
        old: Option<&'a T>,
        new: &'a T,
    },
    /// The object is gone, or nothing that is of interest or can be read.
    Gone { key: &'a K, old: Option<&'a T> },
    /// Everything was read, as it is now and then. For the first time, or again.
    Compared { is_first: bool },
}

type Project<T> = Box<dyn Fn(&Resource) -> Option<T> + Send + Sync>;
type Tell<T, K> = Box<dyn Fn(&Followed<T, K>, Change<'_, T, K>) + Send + Sync>;

/// Does the following.
pub(crate) struct Follower<T, K = ObjectKey> {
    pub(crate) datastore: Client,
    pub(crate) query: Query,
    /// What is kept of an object; nothing if it is of no interest.
    pub(crate) project: Project<T>,
    /// Called after each change, in their order. It must not block.
    pub(crate) tell: Tell<T, K>,
    /// How often everything is read although nothing is wrong.
    pub(crate) period: Option<Duration>,
}

// === impl Followed ===

impl<T, K> Clone for Followed<T, K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T, K> Default for Followed<T, K> {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                objects: RwLock::new(Objects {
                    known: HashMap::new(),
                    told: 0,
                    is_reading: false,
                }),
                is_synced: watch::Sender::new(false),
            }),
        }
    }
}

impl<T: Clone, K: Keep> Followed<T, K> {
    /// What is kept of an object.
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<T> {
        self.read().known.get(&K::of(key)).cloned()
    }

    /// Before something is written that is to be noted.
    pub(crate) fn moment(&self) -> Moment {
        Moment(self.read().told)
    }

    /// Notes what was written after a moment, which the datastore will tell as well, so that it is not looked at again until
    /// then. Where it has told something since, that may be a later change by others, and nothing is noted: the caller has to
    /// look again.
    #[must_use]
    pub(crate) fn note(&self, key: &ObjectKey, value: T, since: Moment) -> bool {
        let mut objects = self.write();
        let is_newest = objects.told == since.0 && !objects.is_reading;
        if is_newest {
            objects.known.insert(K::of(key), value);
        }
        is_newest
    }

    /// The objects that there are.
    pub(crate) fn keys(&self) -> Vec<K> {
        self.read().known.keys().cloned().collect()
    }

    /// Whether everything was read once.
    pub(crate) fn is_synced(&self) -> bool {
        *self.shared.is_synced.borrow()
    }

    /// Waits until everything was read once.
    pub(crate) async fn wait_synced(&self) {
        let mut is_synced = self.shared.is_synced.subscribe();
        // The sender is in `self`.
        let _ = is_synced.wait_for(|synced| *synced).await;
    }

    /// Takes in what the datastore tells.
    fn tell<R>(&self, change: impl FnOnce(&mut HashMap<K, T>) -> R) -> R {
        let mut objects = self.write();
        objects.told += 1;
        change(&mut objects.known)
    }

    /// Everything begins or ceases to be read.
    fn set_reading(&self, is_reading: bool) {
        let mut objects = self.write();
        objects.told += 1;
        objects.is_reading = is_reading;
    }

    fn read(&self) -> RwLockReadGuard<'_, Objects<T, K>> {
        let objects = self.shared.objects.read();
        objects.unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Objects<T, K>> {
        let objects = self.shared.objects.write();
        objects.unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Follower ===

impl<T: Clone + PartialEq + Send + Sync + 'static, K: Keep> Follower<T, K> {
    /// Follows for as long as the process leads: before that, nobody would take what is told.
    pub(crate) fn start(self, manager: &Manager, name: &str, followed: Followed<T, K>) {
        manager.run_as_leader(name, move |_| async move {
            self.run(followed).await;
            Ok(())
        });
    }

    async fn run(self, followed: Followed<T, K>) {
        let store = Arc::clone(self.datastore.store());
        let (topic, period) = (self.query.kind.to_string(), self.period);
        let source = Arc::new(StoreSource::new(store, self.query));
        let projection = Projection {
            project: self.project,
            tell: self.tell,
            followed,
            unseen: HashSet::new(),
        };
        let following = tortie_sync::Follower::new(topic, source, projection, Pace::default());
        following.comparing_every(period).run().await;
    }
}

/// Keeps what is followed like the datastore.
struct Projection<T, K> {
    project: Project<T>,
    tell: Tell<T, K>,
    followed: Followed<T, K>,
    /// What was there when everything began to be read, and has not been found since.
    unseen: HashSet<K>,
}

#[async_trait]
impl<T: Clone + PartialEq + Send + Sync + 'static, K: Keep> Keeper<Resource> for Projection<T, K> {
    fn is_empty(&self) -> bool {
        self.followed.read().known.is_empty()
    }

    fn has(&self, name: &Name) -> bool {
        let key = K::of(&key_of(name));
        self.followed.read().known.contains_key(&key)
    }

    async fn take(&mut self, changes: Vec<Stored<Resource>>, _: Status) -> usize {
        let count = changes.len();
        for change in changes {
            let (name, state) = match change {
                Stored::Set(item) => (item.name, item.state),
                Stored::Remove(name) => (name, State::Absent),
            };
            let key = key_of(&name);
            if !self.unseen.is_empty() {
                self.unseen.remove(&K::of(&key));
            }
            match state {
                State::Present(resource) => self.set(&key, resource),
                State::Unreadable(..) => self.remove(&K::of(&key), true),
                State::Absent => self.remove(&K::of(&key), false),
            }
        }
        count
    }

    fn begin_list(&mut self) {
        self.unseen = self.followed.keys().into_iter().collect();
        self.followed.set_reading(true);
    }

    async fn end_list(&mut self) -> usize {
        let gone = std::mem::take(&mut self.unseen);
        for key in &gone {
            self.remove(key, false);
        }
        self.followed.set_reading(false);
        let is_first = !self.followed.shared.is_synced.send_replace(true);
        (self.tell)(&self.followed, Change::Compared { is_first });
        gone.len()
    }
}

impl<T: Clone + PartialEq, K: Keep> Projection<T, K> {
    fn set(&self, key: &ObjectKey, mut resource: Resource) {
        resource.set_read_defaults();
        let Some(new) = (self.project)(&resource) else {
            return self.remove(&K::of(key), false);
        };
        let known = &self.followed;
        let old = known.tell(|known| known.insert(K::of(key), new.clone()));
        if old.as_ref() == Some(&new) {
            return;
        }
        let change = Change::Set {
            key,
            old: old.as_ref(),
            new: &new,
        };
        (self.tell)(known, change);
    }

    /// What cannot be read may be an object that somebody broke, so it is told even if it was not known.
    fn remove(&self, key: &K, is_unreadable: bool) {
        let old = self.followed.tell(|known| known.remove(key));
        if old.is_some() || is_unreadable {
            let old = old.as_ref();
            (self.tell)(&self.followed, Change::Gone { key, old });
        }
    }
}

/// A stream of keys to reconcile, and where to put them. A work queue at its end takes out repetitions.
#[derive(Clone)]
pub(crate) struct Keys(UnboundedSender<ObjectKey>);

impl Keys {
    pub(crate) fn channel() -> (Self, UnboundedReceiver<ObjectKey>) {
        let (sender, receiver) = mpsc::unbounded();
        (Self(sender), receiver)
    }

    /// Nothing happens if nobody reads them any more.
    pub(crate) fn add(&self, key: ObjectKey) {
        let _ = self.0.unbounded_send(key);
    }
}

/// The key of a stored object in the form that queues have.
pub(crate) fn object_key(key: &Key) -> ObjectKey {
    ObjectKey {
        namespace: (!key.namespace.is_empty()).then(|| share(&key.namespace)),
        name: key.name.as_str().into(),
    }
}

fn key_of(name: &Name) -> ObjectKey {
    let namespace = name.namespace();
    ObjectKey {
        namespace: (!namespace.is_empty()).then(|| share(namespace)),
        name: name.name().into(),
    }
}

/// The key of a stored object of this kind.
pub(crate) fn store_key(kind: tortie_store::Kind, key: &ObjectKey) -> Key {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    Key::namespaced(kind, namespace, &*key.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_not_noted_over_what_was_told_since() {
        let key = ObjectKey::new("shop", "p");
        let followed: Followed<u8> = Followed::default();
        let before = followed.moment();
        assert!(followed.note(&key, 1, before));
        assert_eq!(followed.get(&key), Some(1));
        // It is written, and somebody else deletes it before the write is noted.
        let before = followed.moment();
        followed.tell(|known| known.insert(key.clone(), 1));
        followed.tell(|known| known.remove(&key));
        assert!(!followed.note(&key, 1, before));
        assert_eq!(followed.get(&key), None);
        // A list may or may not have what is written meanwhile.
        let before = followed.moment();
        followed.set_reading(true);
        assert!(!followed.note(&key, 1, before));
        let during = followed.moment();
        assert!(!followed.note(&key, 1, during));
        followed.set_reading(false);
        assert!(!followed.note(&key, 1, during));
        assert!(followed.note(&key, 1, followed.moment()));
    }
}

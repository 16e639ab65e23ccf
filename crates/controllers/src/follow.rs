//! Follows one kind of the datastore, and keeps of each object only what its reader needs.
//!
//! # Invariants
//! - Once the datastore rests and can be reached, what is kept is what it holds, whatever was lost or compacted on the way.
//! - A reader is told of every object whose state it may not know; perhaps more often than needed, never too seldom.
//! - Losing the datastore removes nothing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use futures::StreamExt as _;
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tortie_operator::{Manager, ObjectKey};

use crate::feed::until;
use tortie_store::{Change as Stored, Client, Error, Key, Query, Resource, Revision, Store};

const FIRST_RETRY: Duration = Duration::from_millis(200);
const LONGEST_RETRY: Duration = Duration::from_secs(5);

/// How many failed watches in a row lead to a reading of everything.
const MAX_FAILED_WATCHES: u32 = 5;

/// What is kept of the objects of one kind. Copies share it.
pub(crate) struct Followed<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    objects: RwLock<HashMap<ObjectKey, T>>,
    is_synced: watch::Sender<bool>,
}

/// What a reader is told.
pub(crate) enum Change<'a, T> {
    /// The object was put there or replaced.
    Set {
        key: &'a ObjectKey,
        old: Option<&'a T>,
        new: &'a T,
    },
    /// The object is gone, or nothing that is of interest or can be read.
    Gone {
        key: &'a ObjectKey,
        old: Option<&'a T>,
    },
    /// Everything was read, as it is now and then.
    Compared,
}

type Project<T> = Box<dyn Fn(&Resource) -> Option<T> + Send + Sync>;
type Tell<T> = Box<dyn Fn(&Followed<T>, Change<'_, T>) + Send + Sync>;

/// Does the following.
pub(crate) struct Follower<T> {
    pub(crate) datastore: Client,
    pub(crate) query: Query,
    /// What is kept of an object; nothing if it is of no interest.
    pub(crate) project: Project<T>,
    /// Called after each change, in their order. It must not block.
    pub(crate) tell: Tell<T>,
    /// How often everything is read although nothing is wrong.
    pub(crate) period: Option<Duration>,
}

// === impl Followed ===

impl<T> Clone for Followed<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Default for Followed<T> {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                objects: RwLock::default(),
                is_synced: watch::Sender::new(false),
            }),
        }
    }
}

impl<T: Clone> Followed<T> {
    /// What is kept of an object.
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<T> {
        self.read().get(key).cloned()
    }

    /// Notes what was just written, which the datastore will tell as well, so that it is not looked at again until then.
    pub(crate) fn note(&self, key: &ObjectKey, value: T) {
        self.write().insert(key.clone(), value);
    }

    /// The objects that there are.
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.read().keys().cloned().collect()
    }

    /// Waits until everything was read once.
    pub(crate) async fn wait_synced(&self) {
        let mut is_synced = self.shared.is_synced.subscribe();
        // The sender is in `self`.
        let _ = is_synced.wait_for(|synced| *synced).await;
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<ObjectKey, T>> {
        let objects = self.shared.objects.read();
        objects.unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<ObjectKey, T>> {
        let objects = self.shared.objects.write();
        objects.unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Follower ===

impl<T: Clone + Send + Sync + 'static> Follower<T> {
    /// Follows for as long as the process leads: before that, nobody would take what is told.
    pub(crate) fn start(self, manager: &Manager, name: &str, followed: Followed<T>) {
        manager.run_as_leader(name, move |_| async move {
            self.run(followed).await;
            Ok(())
        });
    }

    async fn run(self, followed: Followed<T>) {
        let mut pause = FIRST_RETRY;
        loop {
            let revision = match self.read(&followed).await {
                Ok(revision) => {
                    pause = FIRST_RETRY;
                    followed.shared.is_synced.send_replace(true);
                    (self.tell)(&followed, Change::Compared);
                    revision
                }
                Err(error) => {
                    self.note(&error, "Objects could not be listed; trying again");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_RETRY);
                    continue;
                }
            };
            self.watch(&followed, revision).await;
        }
    }

    /// Watches until everything must be read again.
    async fn watch(&self, followed: &Followed<T>, mut revision: Revision) {
        let due = self.period.map(|period| Instant::now() + period);
        let mut failures = 0;
        let mut pause = FIRST_RETRY;
        while failures < MAX_FAILED_WATCHES {
            let mut events = match self.store().watch(&self.query, &revision).await {
                Ok(events) => events,
                Err(Error::Gone(_)) => return,
                Err(error) => {
                    self.note(&error, "Watch could not be started; trying again");
                    // One that cannot be reached has not forgotten the revision.
                    failures += u32::from(!error.is_retryable());
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_RETRY);
                    continue;
                }
            };
            loop {
                let event = tokio::select! {
                    event = events.next() => event,
                    () = until(due) => return,
                };
                match event {
                    Some(Ok(event)) => {
                        failures = 0;
                        pause = FIRST_RETRY;
                        revision = event.revision;
                        self.absorb(followed, event.change);
                    }
                    Some(Err(Error::Gone(_))) => return,
                    Some(Err(error)) => {
                        self.note(&error, "Watch ended; starting another");
                        failures += u32::from(!error.is_retryable());
                        break;
                    }
                    None => break,
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_RETRY);
        }
    }

    fn note(&self, error: &Error, message: &'static str) {
        let error = error as &dyn std::error::Error;
        tracing::warn!(kind = %self.query.kind, error, "{message}");
    }

    fn absorb(&self, followed: &Followed<T>, change: Stored) {
        match change {
            Stored::Put(resource) => self.set(followed, resource),
            Stored::Delete(key) => self.remove(followed, &object_key(&key), false),
            Stored::Invalid(invalid) => self.remove(followed, &object_key(&invalid.key), true),
            Stored::Bookmark => {}
        }
    }

    fn set(&self, followed: &Followed<T>, mut resource: Resource) {
        resource.set_read_defaults();
        let key = object_key(&Key::of(&resource));
        let Some(new) = (self.project)(&resource) else {
            return self.remove(followed, &key, false);
        };
        let old = followed.write().insert(key.clone(), new.clone());
        let change = Change::Set {
            key: &key,
            old: old.as_ref(),
            new: &new,
        };
        (self.tell)(followed, change);
    }

    /// What cannot be read may be an object that somebody broke, so it is told even if it was not known.
    fn remove(&self, followed: &Followed<T>, key: &ObjectKey, is_unreadable: bool) {
        let old = followed.write().remove(key);
        if old.is_some() || is_unreadable {
            let old = old.as_ref();
            (self.tell)(followed, Change::Gone { key, old });
        }
    }

    /// Reads everything.
    async fn read(&self, followed: &Followed<T>) -> Result<Revision, Error> {
        let mut gone: HashSet<ObjectKey> = followed.keys().into_iter().collect();
        let mut revision = Revision::default();
        let mut parts = self.store().list_in_parts(&self.query);
        while let Some(part) = parts.next().await {
            let part = part?;
            for resource in part.items {
                gone.remove(&object_key(&Key::of(&resource)));
                self.set(followed, resource);
            }
            for invalid in part.invalid {
                let key = object_key(&invalid.key);
                gone.remove(&key);
                self.remove(followed, &key, true);
            }
            revision = part.revision;
        }
        for key in &gone {
            self.remove(followed, key, false);
        }
        Ok(revision)
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.datastore.store()
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
    if key.namespace.is_empty() {
        ObjectKey::cluster(key.name.as_str())
    } else {
        ObjectKey::new(key.namespace.as_str(), key.name.as_str())
    }
}

/// The key of a stored object of this kind.
pub(crate) fn store_key(kind: tortie_store::Kind, key: &ObjectKey) -> Key {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    Key::namespaced(kind, namespace, &*key.name)
}

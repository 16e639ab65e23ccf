//! One watch of the datastore per type, shared by all who watch that type here.
//!
//! A hub keeps the current objects and the last changes. That is what the datastore's own watch lacks: whether an object
//! is new or changed, what it was before it was deleted, and so whether it came to match a selector or ceased to.
//!
//! # Invariants
//! - Every watcher gets every change after its revision once, in order, or is told that it cannot.
//! - A watcher that does not keep up is cut off; it never holds memory beyond the last changes that all share.

mod event;
mod object;
mod recent;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use serde_json::Value;
use tokio::sync::Notify;

use self::recent::Recent;
use crate::failure::{Failure, Reason, Result};
use crate::registry::ResourceType;
use crate::storage::{Change, Changes, Storage, What};

pub use self::event::{HubEvent, Meaning};
pub use self::object::Object;

/// How many changes are told together at most.
const MOST_TOGETHER: usize = 256;

/// The changes of one type.
pub struct Hub {
    of: ResourceType,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Id, Object>,
    recent: Recent,
    /// Every change after this revision is in `recent`.
    covered_after: u64,
    /// All changes up to here are known.
    revision: u64,
    /// Why there will be no more.
    end: Option<Failure>,
}

type Id = (String, String);

/// The position of one watcher. Changes of one transaction have one revision, so that does not tell which have been seen.
#[derive(Debug)]
pub struct Position {
    /// The only namespace that is watched.
    namespace: Option<String>,
    changed: Arc<Notify>,
    next: usize,
    /// Changes up to here are known to the watcher already, also where the hub still has to learn of them.
    after: u64,
    revision: u64,
}

impl Hub {
    /// A hub that knows all objects as of a revision.
    pub fn new(of: ResourceType, objects: Vec<Object>, revision: u64) -> Self {
        let objects = objects.into_iter();
        let objects = objects.map(|object| (id_of(object.head()), object));
        let state = State {
            objects: objects.collect(),
            covered_after: revision,
            revision,
            ..State::default()
        };
        Self {
            of,
            state: Mutex::new(state),
        }
    }

    /// Takes in changes until the watch of the datastore fails, and ends the hub with that.
    pub async fn run(&self, storage: &dyn Storage) {
        let from = self.lock().revision;
        let failure = match storage.watch(&self.of, from).await {
            Err(failure) => failure,
            Ok(changes) => self.follow(changes).await,
        };
        self.end(failure);
    }

    fn end(&self, failure: Failure) {
        let mut state = self.lock();
        state.end = Some(failure);
        state.recent.tell_all();
    }

    /// What comes together is told together, so that watchers wake once for it.
    async fn follow(&self, changes: Changes) -> Failure {
        let mut together = changes.ready_chunks(MOST_TOGETHER);
        while let Some(changes) = together.next().await {
            let mut state = self.lock();
            for change in changes {
                match change {
                    Ok(change) => state.take(change),
                    Err(failure) => return failure,
                }
            }
            state.recent.tell();
        }
        Failure::new(Reason::Unavailable, "the datastore's watch ended")
    }

    /// Whether watchers have to be given another hub.
    pub fn is_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Begins to watch a namespace, or all, after a revision, or fails if the changes since then are forgotten.
    pub fn from_revision(&self, revision: u64, namespace: Option<&str>) -> Result<Position> {
        let mut state = self.lock();
        if revision < state.covered_after {
            return Err(too_old(revision, state.covered_after));
        }
        let next = state.recent.place_after(revision);
        Ok(state.position(next, revision, namespace))
    }

    /// The current objects of a namespace, or of all, and a watch of what follows.
    pub fn from_now(&self, namespace: Option<&str>) -> (Vec<Object>, Position) {
        let mut state = self.lock();
        let objects = state.objects_of(namespace);
        let (next, revision) = (state.recent.end(), state.revision);
        (objects, state.position(next, revision, namespace))
    }

    /// An object that was read elsewhere: the one that the hub has, if it is in the same state, so that there is one copy
    /// for all who read it.
    pub fn share(&self, object: Value) -> Object {
        let known = self.lock().objects.get(&id_of(&object)).cloned();
        match known {
            Some(known) if known.revision() == object::revision_of(&object) => known,
            _ => Object::new(object),
        }
    }

    /// The object of this name, if it is at this revision.
    pub fn at(&self, namespace: &str, name: &str, revision: u64) -> Option<Object> {
        let id = (namespace.to_owned(), name.to_owned());
        let known = self.lock().objects.get(&id).cloned();
        known.filter(|known| known.revision() == Some(revision.to_string().as_str()))
    }

    /// Waits for changes after a position and moves it. At most `most` come at once.
    pub async fn next(&self, position: &mut Position, most: usize) -> Result<Vec<Arc<HubEvent>>> {
        let changed = Arc::clone(&position.changed);
        loop {
            // Before looking, so that nothing that happens in between is missed.
            let changed = changed.notified();
            {
                let state = self.lock();
                let namespace = position.namespace.as_deref();
                let after = state.recent.after(position.next, namespace, most.max(1));
                let Some(mut after) = after else {
                    return Err(too_old(position.revision, state.covered_after));
                };
                position.next = after.next;
                let reached = match after.events.last() {
                    Some(last) if !after.is_all => last.revision,
                    _ => state.revision,
                };
                position.revision = reached.max(position.after);
                after.events.retain(|event| event.revision > position.after);
                if !after.events.is_empty() {
                    return Ok(after.events);
                }
                if !after.is_all {
                    continue;
                }
                if let Some(failure) = &state.end {
                    return Err(failure.clone());
                }
            }
            changed.await;
        }
    }

    /// Everything up to here has been given out to a watcher.
    pub fn reached(&self, position: &Position) -> u64 {
        let state = self.lock();
        let namespace = position.namespace.as_deref();
        match state.recent.after(position.next, namespace, 1) {
            Some(after) if after.events.is_empty() => state.revision.max(position.after),
            _ => position.revision,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, change: Change) {
        let revision = change.revision;
        let event = match change.what {
            What::Bookmark => None,
            What::Put(object) => {
                let id = id_of(&object);
                let object = Object::new(object);
                let before = self.objects.insert(id, object.clone());
                Some(HubEvent::put(revision, before, object))
            }
            // An unreadable object was never announced, so its deletion is not either.
            What::Delete { namespace, name } => {
                let before = self.objects.remove(&(namespace, name));
                before.map(|before| HubEvent::deleted(revision, before))
            }
        };
        if let Some(forgotten) = event.and_then(|event| self.recent.push(event)) {
            self.covered_after = forgotten;
        }
        self.revision = self.revision.max(revision);
    }

    fn position(&mut self, next: usize, revision: u64, namespace: Option<&str>) -> Position {
        Position {
            namespace: namespace.map(ToOwned::to_owned),
            changed: self.recent.subscribe(namespace),
            next,
            after: revision,
            revision,
        }
    }

    fn objects_of(&self, namespace: Option<&str>) -> Vec<Object> {
        let Some(namespace) = namespace else {
            return self.objects.values().cloned().collect();
        };
        let first = (namespace.to_owned(), String::new());
        let objects = self.objects.range(first..);
        let objects = objects.take_while(|((of, _), _)| of == namespace);
        objects.map(|(_, object)| object.clone()).collect()
    }
}

fn id_of(object: &Value) -> Id {
    let text = |pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    (text("/metadata/namespace"), text("/metadata/name"))
}

fn too_old(revision: u64, oldest: u64) -> Failure {
    Failure::new(
        Reason::Expired,
        format!("too old resource version: {revision} ({oldest})"),
    )
}

#[cfg(test)]
mod tests;

//! One watch of the datastore per type, shared by all who watch that type here.
//!
//! A hub keeps the current objects and the last changes. That is what the datastore's own watch lacks: whether an object
//! is new or changed, what it was before it was deleted, and so whether it came to match a selector or ceased to.
//!
//! # Invariants
//! - Every watcher gets every change after its revision once, in order, or is told that it cannot.
//! - A watcher that does not keep up is cut off; it never holds memory beyond the last changes that all share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::body::Bytes;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::failure::{Failure, Reason, Result};
use crate::registry::ResourceType;
use crate::storage::{Change, Listed, Storage, What};

/// How many changes are kept for watchers that come back or are behind.
const MAX_CHANGES: usize = 4096;

/// The same by size, for large objects.
const MAX_BYTES: usize = 32 << 20;

/// The changes of one type.
pub struct Hub {
    of: ResourceType,
    state: Mutex<State>,
    /// Told whenever something was added, and at the end.
    changed: Notify,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Id, Arc<Value>>,
    recent: VecDeque<Arc<HubEvent>>,
    /// How many changes came before those.
    forgotten: usize,
    bytes: usize,
    /// Every change after this revision is in `recent`.
    covered_after: u64,
    /// All changes up to here are known.
    revision: u64,
    /// Why there will be no more.
    end: Option<Failure>,
}

type Id = (String, String);

/// One change, with the states before and after it.
#[derive(Debug)]
pub struct HubEvent {
    /// The state of the datastore after it.
    pub revision: u64,
    /// The object before; none if it is new.
    pub before: Option<Arc<Value>>,
    /// The object after; none if it was deleted.
    pub after: Option<Arc<Value>>,
    size: usize,
    /// The object before, at the revision of its end.
    last: OnceLock<Arc<Value>>,
    /// What clients are sent, made once for all of them, by what it means to them.
    texts: [OnceLock<Bytes>; 3],
}

/// What a change means to a client, which sees selected objects only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The object is new.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// The position of one watcher. Changes of one transaction have one revision, so that does not tell which have been seen.
#[derive(Debug)]
pub struct Position {
    /// How many changes came before the next one.
    next: usize,
    revision: u64,
}

// === impl Hub ===

impl Hub {
    /// A hub that knows what a list gave.
    pub fn new(of: ResourceType, listed: Listed) -> Self {
        let objects = listed.items.into_iter();
        let objects = objects.map(|object| (id_of(&object), Arc::new(object)));
        let state = State {
            objects: objects.collect(),
            covered_after: listed.revision,
            revision: listed.revision,
            ..State::default()
        };
        Self {
            of,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// Takes in changes until the watch of the datastore fails, and ends the hub with that.
    pub async fn run(&self, storage: &dyn Storage) {
        let from = self.lock().revision;
        let failure = match storage.watch(&self.of, from).await {
            Err(failure) => failure,
            Ok(mut changes) => loop {
                match changes.next().await {
                    Some(Ok(change)) => self.take(change),
                    Some(Err(failure)) => break failure,
                    None => break Failure::new(Reason::Unavailable, "the datastore's watch ended"),
                }
            },
        };
        self.lock().end = Some(failure);
        self.changed.notify_waiters();
    }

    /// Whether watchers have to be given another hub.
    pub fn is_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Begins to watch after a revision, or fails if the changes since then are forgotten.
    pub fn from_revision(&self, revision: u64) -> Result<Position> {
        let state = self.lock();
        if revision < state.covered_after {
            return Err(too_old(revision, state.covered_after));
        }
        Ok(Position {
            next: state.after(revision),
            revision,
        })
    }

    /// The current objects and their revision, and a watch of what follows.
    pub fn from_now(&self) -> (Vec<Arc<Value>>, Position) {
        let state = self.lock();
        let objects = state.objects.values().cloned().collect();
        let position = Position {
            next: state.forgotten + state.recent.len(),
            revision: state.revision,
        };
        (objects, position)
    }

    /// Waits for changes after a position and moves it. At most `most` come at once; perhaps none, if only the revision
    /// has moved on.
    pub async fn next(&self, position: &mut Position, most: usize) -> Result<Vec<Arc<HubEvent>>> {
        loop {
            // Before looking, so that nothing that happens in between is missed.
            let changed: Notified<'_> = self.changed.notified();
            {
                let state = self.lock();
                let Some(first) = position.next.checked_sub(state.forgotten) else {
                    return Err(too_old(position.revision, state.covered_after));
                };
                let events = state.recent.iter().skip(first).take(most.max(1));
                let events: Vec<_> = events.cloned().collect();
                let is_end = first + events.len() >= state.recent.len();
                position.next += events.len();
                let revision = match events.last() {
                    Some(last) if !is_end => last.revision,
                    _ => state.revision,
                };
                let has_moved = revision > position.revision || !events.is_empty();
                position.revision = position.revision.max(revision);
                if has_moved {
                    return Ok(events);
                }
                if let Some(failure) = &state.end {
                    return Err(failure.clone());
                }
            }
            changed.await;
        }
    }

    fn take(&self, change: Change) {
        let mut state = self.lock();
        let event = match change.what {
            What::Bookmark => None,
            What::Put(object) => {
                let size = size_of(&object);
                let object = Arc::new(object);
                let before = state.objects.insert(id_of(&object), Arc::clone(&object));
                Some((before, Some(object), size))
            }
            What::Delete { namespace, name } => {
                let before = state.objects.remove(&(namespace, name));
                let size = before.as_deref().map_or(0, size_of);
                // One that was never seen, because it could not be read, is gone for nobody.
                before.map(|before| (Some(before), None, size))
            }
        };
        if let Some((before, after, size)) = event {
            state.bytes += size;
            state.recent.push_back(Arc::new(HubEvent {
                revision: change.revision,
                before,
                after,
                size,
                last: OnceLock::new(),
                texts: Default::default(),
            }));
            state.shorten();
        }
        state.revision = state.revision.max(change.revision);
        drop(state);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HubEvent {
    /// The last state before the end, at the revision of that.
    pub fn last(&self) -> Option<Arc<Value>> {
        let before = self.before.as_ref()?;
        let last = self.last.get_or_init(|| {
            let mut last = Value::clone(before);
            last["metadata"]["resourceVersion"] = json!(self.revision.to_string());
            Arc::new(last)
        });
        Some(Arc::clone(last))
    }

    /// What `make` gave for the first client to whom the change means the same.
    pub fn text(&self, meaning: Meaning, make: impl FnOnce() -> Bytes) -> Bytes {
        self.texts[meaning as usize].get_or_init(make).clone()
    }
}

impl State {
    /// How many changes there were up to a revision.
    fn after(&self, revision: u64) -> usize {
        let seen = self
            .recent
            .partition_point(|event| event.revision <= revision);
        self.forgotten + seen
    }

    fn shorten(&mut self) {
        while self.recent.len() > MAX_CHANGES || (self.bytes > MAX_BYTES && self.recent.len() > 1) {
            if let Some(oldest) = self.recent.pop_front() {
                self.forgotten += 1;
                self.bytes -= oldest.size;
                self.covered_after = oldest.revision;
            }
        }
    }
}

impl Position {
    /// Everything up to here has been given out.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

fn id_of(object: &Value) -> Id {
    let text = |pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    (text("/metadata/namespace"), text("/metadata/name"))
}

/// Roughly how much memory an object takes.
pub(crate) fn size_of(value: &Value) -> usize {
    match value {
        Value::String(text) => 32 + text.len(),
        Value::Array(items) => 32 + items.iter().map(size_of).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields.iter();
            32 + fields
                .map(|(name, value)| 64 + name.len() + size_of(value))
                .sum::<usize>()
        }
        _ => 32,
    }
}

fn too_old(revision: u64, oldest: u64) -> Failure {
    Failure::new(
        Reason::Expired,
        format!("too old resource version: {revision} ({oldest})"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn hub() -> Hub {
        let registry = Registry::standalone();
        let of = registry.find("projectcalico.org", "v3", "tiers").unwrap();
        let items = vec![tier("default", 5)];
        Hub::new(of.clone(), Listed { items, revision: 7 })
    }

    fn tier(name: &str, revision: u64) -> Value {
        json!({"metadata": {"name": name, "resourceVersion": revision.to_string()}})
    }

    fn put(hub: &Hub, name: &str, revision: u64) {
        let what = What::Put(tier(name, revision));
        hub.take(Change { revision, what });
    }

    fn delete(hub: &Hub, name: &str, revision: u64) {
        let (namespace, name) = (String::new(), name.to_owned());
        let what = What::Delete { namespace, name };
        hub.take(Change { revision, what });
    }

    #[tokio::test]
    async fn events_say_what_was_before() {
        let hub = hub();
        let (objects, mut position) = hub.from_now();
        assert_eq!(objects.len(), 1);
        put(&hub, "gold", 8);
        put(&hub, "gold", 9);
        delete(&hub, "gold", 10);
        delete(&hub, "never seen", 11);
        let events = hub.next(&mut position, 100).await.unwrap();
        let shape: Vec<_> = events
            .iter()
            .map(|event| {
                (
                    event.revision,
                    event.before.is_some(),
                    event.after.is_some(),
                )
            })
            .collect();
        assert_eq!(
            shape,
            [(8, false, true), (9, true, true), (10, true, false)]
        );
        assert_eq!(position.revision(), 11);
    }

    #[tokio::test]
    async fn a_watch_goes_on_where_it_was() {
        let hub = hub();
        for revision in 8..18 {
            put(&hub, "gold", revision);
        }
        let mut position = hub.from_revision(9).unwrap();
        let mut seen = Vec::new();
        while seen.len() < 8 {
            let events = hub.next(&mut position, 3).await.unwrap();
            assert!(events.len() <= 3);
            seen.extend(events.iter().map(|event| event.revision));
        }
        assert_eq!(seen, (10..18).collect::<Vec<u64>>());
    }

    #[tokio::test]
    async fn changes_of_one_transaction_are_all_told() {
        let hub = hub();
        let mut position = hub.from_revision(7).unwrap();
        let mut told = 0;
        for (name, revision) in [("a", 8), ("b", 9), ("c", 9), ("d", 9), ("e", 10)] {
            put(&hub, name, revision);
            told += hub.next(&mut position, 100).await.unwrap().len();
            assert_eq!(position.revision(), revision);
        }
        assert_eq!(told, 5);
        let mut position = hub.from_revision(8).unwrap();
        let mut sizes = Vec::new();
        while sizes.iter().sum::<usize>() < 4 {
            sizes.push(hub.next(&mut position, 2).await.unwrap().len());
        }
        assert_eq!(sizes, [2, 2]);
    }

    #[tokio::test]
    async fn who_does_not_keep_up_is_cut_off() {
        let hub = hub();
        let mut slow = hub.from_revision(7).unwrap();
        for revision in 8..(MAX_CHANGES as u64 + 10) {
            put(&hub, "gold", revision);
        }
        let failure = hub.next(&mut slow, 100).await.unwrap_err();
        assert_eq!(failure.reason, Reason::Expired);
        assert_eq!(hub.from_revision(6).unwrap_err().reason, Reason::Expired);
        assert!(hub.lock().recent.len() <= MAX_CHANGES);
    }

    #[tokio::test]
    async fn large_objects_are_kept_for_a_shorter_time() {
        let hub = hub();
        for revision in 8..108 {
            let mut object = tier("gold", revision);
            object["spec"] = json!("x".repeat(1 << 20));
            hub.take(Change {
                revision,
                what: What::Put(object),
            });
        }
        assert!(hub.lock().recent.len() < 40);
        assert!(hub.from_revision(100).is_ok());
    }
}

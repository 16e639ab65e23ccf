//! The one thread that writes: takes what is waiting, commits it as a whole, and answers.

use std::sync::Arc;

use redb::{ReadableTable, Table, WriteTransaction};
use tokio::sync::{mpsc, oneshot};
use tortie_api::Resource;

use super::Shared;
use super::feed::{Committed, Feed};
use super::file::{self, LOG, META, OBJECTS};
use super::log::{Entry, LogLimits, LogState};
use crate::error::{Error, Result};
use crate::json;
use crate::key::Key;

/// How many writes share a commit at most. Enough to spread the cost of the disk thin, and few
/// enough that the first of them does not wait noticeably for the last.
pub(super) const MAX_BATCH: usize = 512;

/// A write on its way.
pub(super) struct Request {
    pub(super) key: Key,
    pub(super) stored_key: Vec<u8>,
    pub(super) operation: Operation,
    pub(super) reply: oneshot::Sender<Result<Outcome>>,
}

/// What to write. The JSON is made by the caller, to keep that work off the one writer.
pub(super) enum Operation {
    Create {
        resource: Resource,
        json: Vec<u8>,
    },
    Update {
        resource: Resource,
        json: Vec<u8>,
        expected: u64,
    },
    Delete {
        revision: Option<u64>,
        uid: Option<String>,
    },
    /// Nothing, if the object is at this revision; without one, if there is none.
    Check {
        expected: Option<u64>,
    },
    /// All of these or none; no object is in two of them.
    Together(Vec<(Key, Vec<u8>, Operation)>),
}

/// What a write did.
pub(super) enum Outcome {
    Written(Arc<Resource>),
    /// The state before, and its revision.
    Deleted {
        json: Vec<u8>,
        revision: u64,
    },
    /// It was as expected.
    Checked,
    All(Vec<Outcome>),
}

impl Operation {
    /// Why it cannot be carried out on an object at this revision, or on none.
    fn objection(&self, key: &Key, revision: Option<u64>) -> Option<Error> {
        match (self, revision) {
            (Self::Create { .. }, Some(_)) => Some(Error::AlreadyExists(key.clone())),
            (Self::Update { .. } | Self::Delete { .. }, None) => Some(Error::NotFound(key.clone())),
            (Self::Update { expected, .. }, Some(revision)) if *expected != revision => {
                Some(Error::Conflict(key.clone()))
            }
            (
                Self::Delete {
                    revision: Some(expected),
                    ..
                },
                Some(revision),
            ) if *expected != revision => Some(Error::Conflict(key.clone())),
            (Self::Check { expected }, revision) if *expected != revision => {
                Some(Error::Conflict(key.clone()))
            }
            _ => None,
        }
    }
}

impl Outcome {
    pub(super) fn into_resource(self) -> Resource {
        match self {
            Self::Written(resource) => Arc::unwrap_or_clone(resource),
            _ => unreachable!("creates and updates are answered by `Written`"),
        }
    }
}

type Reply = (oneshot::Sender<Result<Outcome>>, Result<Outcome>);

/// The tables of one transaction and the numbers that go with them.
struct Batch<'txn> {
    objects: Table<'txn, &'static [u8], &'static [u8]>,
    log: Table<'txn, u64, &'static [u8]>,
    feed: &'txn Feed,
    state: LogState,
    changes: Vec<Committed>,
}

/// Serves requests until the queue is closed.
pub(super) fn run(
    shared: &Shared,
    mut queue: mpsc::Receiver<Request>,
    mut state: LogState,
    limits: LogLimits,
) {
    let mut requests = Vec::with_capacity(MAX_BATCH);
    while queue.blocking_recv_many(&mut requests, MAX_BATCH) > 0 {
        match commit(shared, &mut requests, state, limits) {
            Ok((new_state, replies, changes)) => {
                state = new_state;
                for (reply, outcome) in replies {
                    // The caller may have stopped waiting; the write stands all the same.
                    let _ = reply.send(outcome);
                }
                shared.feed.publish(changes, state.revision());
            }
            Err(Failed { replies, error }) => fail(shared, replies, &error),
        }
    }
}

/// Why a batch was not committed, and whom to tell.
struct Failed {
    replies: Vec<oneshot::Sender<Result<Outcome>>>,
    error: redb::Error,
}

/// Nothing of the batch was stored: all who wait are told the same.
fn fail(shared: &Shared, replies: Vec<oneshot::Sender<Result<Outcome>>>, error: &redb::Error) {
    let path = shared.file.path().display();
    tracing::error!(%path, error = error as &dyn std::error::Error, "cannot write the store");
    for reply in replies {
        let message = format!("cannot write {path}; make room or replace the disk, then restart");
        let _ = reply.send(Err(Error::unavailable(message, error.to_string())));
    }
}

fn commit(
    shared: &Shared,
    requests: &mut Vec<Request>,
    state: LogState,
    limits: LogLimits,
) -> Result<(LogState, Vec<Reply>, Vec<Committed>), Failed> {
    let mut replies = Vec::with_capacity(requests.len());
    let mut outcomes = Vec::with_capacity(requests.len());
    let mut operations = Vec::with_capacity(requests.len());
    for Request {
        key,
        stored_key,
        operation,
        reply,
    } in requests.drain(..)
    {
        replies.push(reply);
        operations.push((key, stored_key, operation));
    }
    match shared.file.begin_write().and_then(|txn| {
        let (state, changes) = apply(&txn, &shared.feed, state, limits, operations, &mut outcomes)?;
        if changes.is_empty() {
            txn.abort()?;
        } else {
            txn.commit()?;
        }
        Ok((state, changes))
    }) {
        Ok((state, changes)) => Ok((state, replies.into_iter().zip(outcomes).collect(), changes)),
        Err(error) => Err(Failed { replies, error }),
    }
}

/// Writes the batch into the transaction. Each operation sees what those before it did.
fn apply(
    txn: &WriteTransaction,
    feed: &Feed,
    state: LogState,
    limits: LogLimits,
    operations: Vec<(Key, Vec<u8>, Operation)>,
    outcomes: &mut Vec<Result<Outcome>>,
) -> Result<(LogState, Vec<Committed>), redb::Error> {
    let mut batch = Batch {
        objects: txn.open_table(OBJECTS)?,
        log: txn.open_table(LOG)?,
        feed,
        state,
        changes: Vec::new(),
    };
    for (key, stored_key, operation) in operations {
        outcomes.push(batch.apply_one(key, &stored_key, operation)?);
    }
    let Batch {
        mut log,
        mut state,
        changes,
        ..
    } = batch;
    if !changes.is_empty() {
        while state.exceeds(limits) {
            let Some((revision, entry)) = log.pop_first()? else {
                break;
            };
            state.removed(revision.value(), entry.value().len());
        }
        let mut meta = txn.open_table(META)?;
        state.save(&mut meta)?;
    }
    Ok((state, changes))
}

// === impl Batch ===

impl Batch<'_> {
    /// The outer error is of the disk and ends the batch, the inner one is of this operation.
    fn apply_one(
        &mut self,
        key: Key,
        stored_key: &[u8],
        operation: Operation,
    ) -> Result<Result<Outcome>, redb::Error> {
        if let Operation::Together(operations) = operation {
            return self.apply_all(operations);
        }
        let revision = self.revision_of(stored_key)?;
        if let Some(error) = operation.objection(&key, revision) {
            return Ok(Err(error));
        }
        match operation {
            Operation::Create { resource, json } | Operation::Update { resource, json, .. } => {
                self.put(key, stored_key, resource, &json).map(Ok)
            }
            Operation::Delete { uid, .. } => {
                self.delete(key, stored_key, revision.unwrap_or_default(), uid)
            }
            Operation::Check { .. } | Operation::Together(_) => Ok(Ok(Outcome::Checked)),
        }
    }

    /// Looks at all conditions before it writes anything. None of the operations has a condition that shows only later: a
    /// deletion among them names no UID.
    fn apply_all(
        &mut self,
        operations: Vec<(Key, Vec<u8>, Operation)>,
    ) -> Result<Result<Outcome>, redb::Error> {
        for (key, stored_key, operation) in &operations {
            let revision = self.revision_of(stored_key)?;
            if let Some(error) = operation.objection(key, revision) {
                return Ok(Err(error));
            }
        }
        let mut outcomes = Vec::with_capacity(operations.len());
        for (key, stored_key, operation) in operations {
            match self.apply_one(key, &stored_key, operation)? {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(Outcome::All(outcomes)))
    }

    fn revision_of(&self, stored_key: &[u8]) -> Result<Option<u64>, redb::Error> {
        Ok(self
            .objects
            .get(stored_key)?
            .map(|value| file::split(value.value()).0))
    }

    fn delete(
        &mut self,
        key: Key,
        stored_key: &[u8],
        revision: u64,
        uid: Option<String>,
    ) -> Result<Result<Outcome>, redb::Error> {
        let value = self.objects.get(stored_key)?;
        let json = value
            .map(|value| file::split(value.value()).1.to_vec())
            .unwrap_or_default();
        if uid.is_some_and(|uid| uid != json::uid(&json)) {
            return Ok(Err(Error::Conflict(key)));
        }
        self.objects.remove(stored_key)?;
        self.record(key, stored_key, None, None)?;
        Ok(Ok(Outcome::Deleted { json, revision }))
    }

    fn put(
        &mut self,
        key: Key,
        stored_key: &[u8],
        mut resource: Resource,
        json: &[u8],
    ) -> Result<Outcome, redb::Error> {
        let revision = self.state.revision() + 1;
        resource.metadata_mut().resource_version = revision.to_string();
        let resource = Arc::new(resource);
        self.objects
            .insert(stored_key, file::join(revision, json).as_slice())?;
        // Who begins to watch from now on reads the log; so the writer gets back the only copy.
        let for_feed = self
            .feed
            .is_watched(key.kind)
            .then(|| Arc::clone(&resource));
        self.record(key, stored_key, for_feed, Some(json))?;
        Ok(Outcome::Written(resource))
    }

    /// Enters a change into the log, under the next revision.
    fn record(
        &mut self,
        key: Key,
        stored_key: &[u8],
        resource: Option<Arc<Resource>>,
        json: Option<&[u8]>,
    ) -> Result<(), redb::Error> {
        let is_only_in_log = json.is_some() && resource.is_none();
        let entry = Entry {
            key: stored_key,
            json,
        }
        .to_bytes();
        let revision = self.state.added(entry.len());
        self.log.insert(revision, entry.as_slice())?;
        self.changes.push(Committed {
            revision,
            key,
            resource,
            bytes: entry.len(),
            is_only_in_log,
        });
        Ok(())
    }
}

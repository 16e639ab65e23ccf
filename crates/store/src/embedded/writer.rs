//! The one thread that writes: takes what is waiting, commits it as a whole, and answers.

use std::sync::Arc;

use redb::{ReadableTable, Table, WriteTransaction};
use tokio::sync::{mpsc, oneshot};
use tortie_api::Resource;
use tortie_error::Causes;

use super::Shared;
use super::feed::{Committed, Feed, State};
use super::file::{self, LOG, META, OBJECTS};
use super::keys::AnyKey;
use super::log::{Entry, LogLimits, LogState};
use super::room::{self, Room};
use crate::error::Error;
use crate::json;
use crate::store::{Compacted, Verified};

/// How many writes share a commit at most. Enough to spread the cost of the disk thin, and few
/// enough that the first of them does not wait noticeably for the last.
pub(super) const MAX_BATCH: usize = 512;

/// A write on its way.
pub(super) struct Request {
    pub(super) write: Write,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// What became of a write.
pub(super) type Answer = Result<Outcome, Refused>;

/// What is to happen to which object.
pub(super) struct Write {
    pub(super) key: AnyKey,
    /// The bytes of that key.
    pub(super) stored_key: Vec<u8>,
    pub(super) operation: Operation,
}

/// What to write.
pub(super) enum Operation {
    Create(Content),
    Update {
        content: Content,
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
    Together(Vec<Write>),
    /// Nothing; whether something could be written.
    Probe,
    /// Nothing; whether all is as it should be.
    Verify,
    /// Nothing; what is not used is given back to the disk.
    Compact,
}

/// The new state. The JSON is made by the caller, to keep that work off the one writer.
pub(super) enum Content {
    Resource { resource: Resource, json: Vec<u8> },
    Document(Arc<[u8]>),
}

/// What a write did.
pub(super) enum Outcome {
    Written(Arc<Resource>),
    /// A document got this revision.
    DocumentWritten(u64),
    Deleted {
        /// The state before.
        json: Vec<u8>,
        /// The revision of that state.
        revision: u64,
        /// The revision of the deletion.
        deleted_at: u64,
    },
    /// It was as expected.
    Checked,
    Verified(Verified),
    Compacted(Compacted),
    All(Vec<Outcome>),
}

/// Why nothing was written.
#[derive(Debug)]
pub(super) enum Refused {
    /// The object is not as it would have to be.
    Object(AnyKey, Objection),
    /// Nothing can be written.
    Failed(Error),
}

/// What is in the way of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Objection {
    NotFound,
    AlreadyExists,
    Conflict,
}

// === impl Operation ===

impl Operation {
    /// Why it cannot be carried out on an object at this revision, or on none.
    fn objection(&self, revision: Option<u64>) -> Option<Objection> {
        match (self, revision) {
            (Self::Create(_), Some(_)) => Some(Objection::AlreadyExists),
            (Self::Update { .. } | Self::Delete { .. }, None) => Some(Objection::NotFound),
            (
                Self::Update { expected, .. }
                | Self::Delete {
                    revision: Some(expected),
                    ..
                },
                Some(revision),
            ) if *expected != revision => Some(Objection::Conflict),
            (Self::Check { expected }, revision) if *expected != revision => {
                Some(Objection::Conflict)
            }
            _ => None,
        }
    }
}

// === impl Content ===

impl Content {
    pub(super) fn json(&self) -> &[u8] {
        match self {
            Self::Resource { json, .. } => json,
            Self::Document(json) => json,
        }
    }
}

// === impl Outcome ===

impl Outcome {
    pub(super) fn into_resource(self) -> Resource {
        match self {
            Self::Written(resource) => Arc::unwrap_or_clone(resource),
            _ => unreachable!("creates and updates of resources are answered by `Written`"),
        }
    }
}

type Reply = (oneshot::Sender<Answer>, Answer);

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
    let mut room = Room::default();
    let mut is_broken = false;
    while queue.blocking_recv_many(&mut requests, MAX_BATCH) > 0 {
        if is_broken {
            match reopen(shared, state) {
                Ok(found) => {
                    state = found;
                    is_broken = false;
                }
                Err(error) => {
                    let message = message_of(&error);
                    for Request { reply, .. } in requests.drain(..) {
                        let error =
                            Error::unavailable("the store cannot be written", message.clone());
                        let _ = reply.send(Err(Refused::Failed(error)));
                    }
                    continue;
                }
            }
        }
        answer_alone(shared, &mut requests);
        refuse_without_room(shared, &mut room, &mut requests);
        match commit(shared, &mut requests, state, limits) {
            Ok((new_state, replies, changes)) => {
                state = new_state;
                for (reply, outcome) in replies {
                    // The caller may have stopped waiting; the write stands all the same.
                    let _ = reply.send(outcome);
                }
                shared.feed.publish(changes, state.revision());
                shared.file.end_costly_snapshots();
            }
            Err(Failed { replies, error }) => {
                is_broken = true;
                fail(shared, replies, &error);
            }
        }
    }
}

/// Opens the file anew. A batch that was said to have failed may be in it all the same: then watches are sent there.
fn reopen(shared: &Shared, state: LogState) -> Result<LogState, Error> {
    let found = shared.file.reopen()?;
    let (before, after) = (state.revision(), found.revision());
    let path = shared.file.path().display();
    if after < before {
        return Err(Error::message(format!(
            "{path} has changes up to revision {after} only, and {before} was written; restore a backup"
        )));
    }
    if after > before {
        shared.feed.send_to_log(after);
    }
    // Being opened says nothing about being written.
    let committed = file::guarded(|| {
        let txn = shared.file.begin_write()?;
        found.save(&mut txn.open_table(META)?)?;
        Ok(txn.commit()?)
    });
    committed.map_err(|error| Error::unavailable(format!("cannot write {path}"), error))?;
    tracing::info!(%path, "The store was opened again after an error of the disk");
    Ok(found)
}

/// Answers those who need the file alone. Here, because nobody may write meanwhile.
fn answer_alone(shared: &Shared, requests: &mut Vec<Request>) {
    let file = &shared.file;
    for Request { write, reply } in std::mem::take(requests) {
        let answer = match write.operation {
            Operation::Verify => file.verify().map(Outcome::Verified),
            Operation::Compact => room::compact(file).map(Outcome::Compacted),
            _ => {
                requests.push(Request { write, reply });
                continue;
            }
        };
        let _ = reply.send(answer.map_err(Refused::Failed));
    }
}

/// Answers those for whom there is no room, and leaves the others.
fn refuse_without_room(shared: &Shared, room: &mut Room, requests: &mut Vec<Request>) {
    let mut bytes = 0;
    for Request { write, reply } in std::mem::take(requests) {
        let growth = write.growth();
        let checked = if growth == 0 {
            Ok(())
        } else {
            room.check(&shared.file, bytes + growth)
        };
        match checked {
            Ok(()) => {
                bytes += growth;
                requests.push(Request { write, reply });
            }
            Err(error) => {
                let _ = reply.send(Err(Refused::Failed(error)));
            }
        }
    }
}

fn message_of(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", message_of(source)),
        None => error.to_string(),
    }
}

/// Why a batch was not committed, and whom to tell.
struct Failed {
    replies: Vec<oneshot::Sender<Answer>>,
    error: redb::Error,
}

/// Nothing of the batch was stored: all who wait are told the same.
fn fail(shared: &Shared, replies: Vec<oneshot::Sender<Answer>>, error: &redb::Error) {
    let path = shared.file.path().display();
    tracing::error!(%path, error = %Causes(error), "The store cannot be written");
    for reply in replies {
        let message = format!("cannot write {path}; it is tried again with the next write");
        let error = Error::unavailable(message, error.to_string());
        let _ = reply.send(Err(Refused::Failed(error)));
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
    let mut writes = Vec::with_capacity(requests.len());
    for Request { write, reply } in requests.drain(..) {
        replies.push(reply);
        writes.push(write);
    }
    match file::guarded(|| {
        let txn = shared.file.begin_write()?;
        let (state, changes) = apply(&txn, &shared.feed, state, limits, writes, &mut outcomes)?;
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
    writes: Vec<Write>,
    outcomes: &mut Vec<Answer>,
) -> Result<(LogState, Vec<Committed>), redb::Error> {
    let mut batch = Batch {
        objects: txn.open_table(OBJECTS)?,
        log: txn.open_table(LOG)?,
        feed,
        state,
        changes: Vec::new(),
    };
    for write in writes {
        outcomes.push(batch.apply_one(write)?);
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
    fn apply_one(&mut self, write: Write) -> Result<Answer, redb::Error> {
        let Write {
            key,
            stored_key,
            operation,
        } = write;
        if let Operation::Together(writes) = operation {
            return self.apply_all(writes);
        }
        let revision = self.revision_of(&stored_key)?;
        if let Some(objection) = operation.objection(revision) {
            return Ok(Err(Refused::Object(key, objection)));
        }
        match operation {
            Operation::Create(content) | Operation::Update { content, .. } => {
                self.put(key, &stored_key, content).map(Ok)
            }
            Operation::Delete { uid, .. } => {
                self.delete(key, &stored_key, revision.unwrap_or_default(), uid)
            }
            Operation::Check { .. }
            | Operation::Together(_)
            | Operation::Probe
            | Operation::Verify
            | Operation::Compact => Ok(Ok(Outcome::Checked)),
        }
    }

    /// Looks at all conditions before it writes anything. None of the operations has a condition that shows only later: a
    /// deletion among them names no UID.
    fn apply_all(&mut self, writes: Vec<Write>) -> Result<Answer, redb::Error> {
        for write in &writes {
            let revision = self.revision_of(&write.stored_key)?;
            if let Some(objection) = write.operation.objection(revision) {
                return Ok(Err(Refused::Object(write.key.clone(), objection)));
            }
        }
        let mut outcomes = Vec::with_capacity(writes.len());
        for write in writes {
            match self.apply_one(write)? {
                Ok(outcome) => outcomes.push(outcome),
                Err(refused) => return Ok(Err(refused)),
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
        key: AnyKey,
        stored_key: &[u8],
        revision: u64,
        uid: Option<String>,
    ) -> Result<Answer, redb::Error> {
        let value = self.objects.get(stored_key)?;
        let json = value
            .map(|value| file::split(value.value()).1.to_vec())
            .unwrap_or_default();
        if uid.is_some_and(|uid| uid != json::uid(&json)) {
            return Ok(Err(Refused::Object(key, Objection::Conflict)));
        }
        self.objects.remove(stored_key)?;
        let deleted_at = self.record(key, stored_key, State::Removed, None)?;
        Ok(Ok(Outcome::Deleted {
            json,
            revision,
            deleted_at,
        }))
    }

    fn put(
        &mut self,
        key: AnyKey,
        stored_key: &[u8],
        content: Content,
    ) -> Result<Outcome, redb::Error> {
        let revision = self.state.revision() + 1;
        let value = file::join(revision, content.json());
        self.objects.insert(stored_key, value.as_slice())?;
        // Who begins to watch from now on reads the log; so the writer gets back the only copy.
        let is_watched = key.topics().any(|topic| self.feed.is_watched(&topic));
        match content {
            Content::Resource { mut resource, json } => {
                resource.metadata_mut().resource_version = revision.to_string();
                let resource = Arc::new(resource);
                let state = if is_watched {
                    State::Resource(Arc::clone(&resource))
                } else {
                    State::OnlyInLog
                };
                self.record(key, stored_key, state, Some(&json))?;
                Ok(Outcome::Written(resource))
            }
            Content::Document(json) => {
                let state = if is_watched {
                    State::Document(Arc::clone(&json))
                } else {
                    State::OnlyInLog
                };
                self.record(key, stored_key, state, Some(&json))?;
                Ok(Outcome::DocumentWritten(revision))
            }
        }
    }

    /// Enters a change into the log, under the next revision, which it gives.
    fn record(
        &mut self,
        key: AnyKey,
        stored_key: &[u8],
        state: State,
        json: Option<&[u8]>,
    ) -> Result<u64, redb::Error> {
        let entry = Entry {
            key: stored_key,
            json,
        };
        let entry = entry.to_bytes();
        let revision = self.state.added(entry.len());
        self.log.insert(revision, entry.as_slice())?;
        self.changes.push(Committed {
            revision,
            key,
            state,
            bytes: entry.len(),
        });
        Ok(revision)
    }
}

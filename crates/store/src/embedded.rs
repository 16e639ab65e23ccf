//! A datastore in one file, for a cluster whose API Tortie serves itself.
//!
//! ```text
//! callers ──queue──▶ writer thread ──one durable transaction per batch──▶ file: objects + change log
//!    ▲                    │                                                        │
//!    └──────reply─────────┴──▶ feed, by topic ─▶ watches ◀──replay, when behind────┘
//! ```
//!
//! Beside resources it keeps documents, which are stored as they are; both take the same way, and one row of revisions
//! counts the changes of both. Documents that are Kubernetes objects are shown as resources where there is such a view.
//!
//! Writes go through one thread, which commits all that are waiting in one transaction: with many
//! writers the cost of reaching the disk is shared. Reads see the last commit and wait for nobody.
//! A `get` runs where it is called, because it touches a few cached pages; lists and replays, which
//! may read much, run on tokio's blocking threads.
//!
//! # Invariants
//! - A write is answered only after it is on disk; a crash at any time leaves the last commit.
//! - Each change has its own revision, one more than that of the change before it, and stands in the
//!   change log under it in the same transaction.
//! - No watch holds up a writer, and none keeps more than a bounded number of changes in memory: one
//!   that is slow reads the log again, and gets [`Error::Gone`] if the log has moved on.
//! - One process at a time has the file open.
//! - After an error of the disk the file is opened anew, with all that was answered; nothing is written where there is no room.

mod backup;
mod documents;
mod feed;
mod file;
mod holder;
mod keys;
mod log;
mod reads;
mod resources;
mod room;
mod snapshot;
mod views;
mod watch;
mod writer;

pub use self::backup::{compact, restore, verify};
pub use self::documents::{
    Document, DocumentChange, DocumentError, DocumentEvent, DocumentKey, DocumentWatch, Documents,
};
pub use self::room::DEFAULT_QUOTA;
pub use self::snapshot::{Most, Snapshot, Stored};

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::{mpsc, oneshot};
use tortie_api::{Kind, Resource};

use self::feed::Feed;
use self::file::StoreFile;
use self::keys::{AnyKey, Topic};
use self::log::LogLimits;
use self::watch::Selection;
use self::writer::{Answer, Content, Operation, Outcome, Refused, Request};
use crate::error::{Error, Result};
use crate::key::{Key, Query, Revision};
use crate::store::{
    Compacted, List, Precondition, Store, Verified, Watch, Write, check_distinct, expected_revision,
};
use crate::{default_profile, json};

/// How many writes may wait for the writer; more wait in their tasks. Several full batches, so that
/// the writer never starves, and few enough to bound the memory they hold.
const QUEUE_LENGTH: usize = 4 * writer::MAX_BATCH;

/// How many bytes of objects a part of a list has, unless one object alone has more.
const PART_BYTES: usize = 1 << 20;

/// A datastore in one file.
///
/// Dropping it, and all [`Documents`] of it, waits for the writes under way, at most one commit, and
/// for reads that nobody waits for any more; then the file is closed. Its watches fail.
#[derive(Debug)]
pub struct EmbeddedStore {
    inner: Arc<Inner>,
}

/// The open store.
#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// There until the drop; closing it ends the writer.
    queue: Option<mpsc::Sender<Request>>,
    writer: Option<JoinHandle<()>>,
}

/// What callers, the writer and watches share.
#[derive(Debug)]
struct Shared {
    file: StoreFile,
    feed: Feed,
}

// === impl EmbeddedStore ===

impl EmbeddedStore {
    /// Opens the file, and makes it if it is not there. After a crash this also repairs it, in time
    /// proportional to its size. Blocks.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with_quota(path, DEFAULT_QUOTA)
    }

    /// The same, where the file may take so many bytes of the disk. What would make it larger is refused.
    pub fn open_with_quota(path: impl AsRef<Path>, quota: u64) -> Result<Self> {
        Self::open_with(path.as_ref(), LogLimits::default(), quota)
    }

    fn open_with(path: &Path, limits: LogLimits, quota: u64) -> Result<Self> {
        let (file, state) = StoreFile::open(path, quota)?;
        let shared = Arc::new(Shared {
            file,
            feed: Feed::new(state.revision()),
        });
        let (queue, requests) = mpsc::channel(QUEUE_LENGTH);
        let for_writer = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer::run(&for_writer, requests, state, limits))
            .map_err(|error| {
                Error::other("cannot start the thread that writes the store", error)
            })?;
        let inner = Inner {
            shared,
            queue: Some(queue),
            writer: Some(writer),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The documents in the store.
    pub fn documents(&self) -> Documents {
        Documents::new(Arc::clone(&self.inner))
    }

    /// The revision of the last change, of a resource or a document.
    pub fn revision(&self) -> Result<u64> {
        Ok(self.file().log_state()?.revision())
    }

    /// Removes copies of Kubernetes objects as resources, which controllers once made, for an API server that keeps the
    /// objects themselves here: they would come to light when an object is deleted.
    pub async fn remove_copies(&self) -> Result<usize> {
        let copies = self.inner.read(StoreFile::copies).await?;
        for key in &copies {
            let operation = Operation::Delete {
                revision: None,
                uid: None,
            };
            match self.write(key.clone(), operation).await {
                Ok(_) | Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(copies.len())
    }

    fn file(&self) -> &StoreFile {
        &self.inner.shared.file
    }

    fn check_writable(&self, operation: &'static str, key: &Key) -> Result<()> {
        default_profile::check_writable(operation, key)?;
        if self.file().is_document(key)? {
            return Err(views::refusal(operation, key));
        }
        Ok(())
    }

    /// Asks the writer something that is about no object.
    async fn ask(&self, operation: Operation) -> Result<Outcome> {
        let write = writer::Write {
            key: AnyKey::Resource(Key::global(Kind::ClusterInformation, "")),
            stored_key: Vec::new(),
            operation,
        };
        self.inner.write(write).await.map_err(resources::error)
    }

    async fn write(&self, key: Key, operation: Operation) -> Result<Outcome> {
        let write = stored_write(key, operation)?;
        self.inner.write(write).await.map_err(resources::error)
    }
}

// === impl Inner ===

impl Inner {
    async fn write(&self, write: writer::Write) -> Answer {
        let (reply, answer) = oneshot::channel();
        let queue = self
            .queue
            .as_ref()
            .expect("the queue is there until the drop");
        // Either fails only if the writer thread has panicked.
        let sent = queue.send(Request { write, reply }).await;
        sent.map_err(|_| self.writer_ended())?;
        answer.await.map_err(|_| self.writer_ended())?
    }

    fn writer_ended(&self) -> Refused {
        let path = self.shared.file.path().display();
        Refused::Failed(Error::message(format!(
            "the writer of {path} has failed, see the log; restart to go on"
        )))
    }

    /// Runs a read that may take long on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&StoreFile) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        match tokio::task::spawn_blocking(move || read(&shared.file)).await {
            Ok(result) => result,
            Err(error) => Err(Error::other("a read of the store did not end", error)),
        }
    }

    /// Follows the changes of a topic after a revision.
    fn watch<S: Selection>(
        &self,
        topic: Topic,
        selection: S,
        after: u64,
    ) -> Result<BoxStream<'static, Result<S::Event>>> {
        // Subscribed before the check: nothing can be between the log and the feed.
        let changes = self.shared.feed.subscribe(topic);
        self.shared.file.check_watchable(after)?;
        let shared = Arc::downgrade(&self.shared);
        Ok(watch::stream(shared, selection, after, changes))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            // A panic of the writer has been reported to those whose writes it took along.
            let _ = writer.join();
        }
        self.shared.file.close();
    }
}

#[async_trait]
impl Store for EmbeddedStore {
    async fn check_health(&self) -> Result<()> {
        self.ask(Operation::Probe).await.map(drop)
    }

    async fn verify(&self) -> Result<Verified> {
        match self.ask(Operation::Verify).await? {
            Outcome::Verified(verified) => Ok(verified),
            _ => unreachable!("the question is answered by `Verified`"),
        }
    }

    async fn compact(&self) -> Result<Compacted> {
        match self.ask(Operation::Compact).await? {
            Outcome::Compacted(compacted) => Ok(compacted),
            _ => unreachable!("the question is answered by `Compacted`"),
        }
    }

    fn snapshot(&self) -> Result<Option<Snapshot>> {
        self.file().snapshot().map(Some)
    }

    async fn back_up(&self, to: &Path) -> Result<()> {
        let to = to.to_owned();
        self.inner.read(move |file| file.back_up(&to)).await
    }

    async fn get(&self, key: &Key) -> Result<Resource> {
        if default_profile::is(key) {
            return Ok(default_profile::resource());
        }
        self.file().get(key)
    }

    fn reads_many_at_once(&self) -> bool {
        true
    }

    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Result<Resource>>> {
        let keys = keys.to_vec();
        self.inner
            .read(move |file| {
                let get = |key: &Key| {
                    if default_profile::is(key) {
                        return Ok(default_profile::resource());
                    }
                    file.get(key)
                };
                Ok(keys.iter().map(get).collect())
            })
            .await
    }

    async fn revisions(&self, keys: &[Key]) -> Result<Vec<Option<Revision>>> {
        self.file().revisions(keys)
    }

    async fn list(&self, query: &Query) -> Result<List> {
        let query = query.clone();
        self.inner
            .read(move |file| {
                let mut list = file.list(&query)?;
                default_profile::add_to(&mut list.items, &query);
                Ok(list)
            })
            .await
    }

    fn list_in_parts(&self, query: &Query) -> BoxStream<'_, Result<List>> {
        // What comes from documents, and the default profile, have their places among the others.
        if query.kind == Kind::Profile || views::of_kind(query.kind).next().is_some() {
            let query = query.clone();
            return stream::once(async move { self.list(&query).await }).boxed();
        }
        let (parts, receiver) = mpsc::channel(1);
        let (shared, query) = (Arc::clone(&self.inner.shared), query.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let take = |part| parts.blocking_send(part).is_ok();
            shared.file.list_in_parts(&query, PART_BYTES, take)
        });
        let parts = stream::unfold((receiver, Some(reading)), async |(mut parts, reading)| {
            if let Some(part) = parts.recv().await {
                return Some((Ok(part), (parts, reading)));
            }
            // Only now is it known whether those were all.
            let read = reading?.await;
            let read = read.map_err(|error| Error::other("a read of the store did not end", error));
            let error = read.and_then(|read| read).err()?;
            Some((Err(error), (parts, None)))
        });
        parts.boxed()
    }

    async fn create(&self, mut resource: Resource) -> Result<Resource> {
        let key = Key::of(&resource);
        self.check_writable("create", &key)?;
        let json = json::encode(&mut resource);
        let content = Content::Resource { resource, json };
        let written = self.write(key, Operation::Create(content)).await;
        written.map(Outcome::into_resource)
    }

    async fn update(&self, resource: Resource) -> Result<Resource> {
        let key = Key::of(&resource);
        self.check_writable("update", &key)?;
        let operation = update_operation(resource)?;
        self.write(key, operation).await.map(Outcome::into_resource)
    }

    async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        self.check_writable("delete", key)?;
        let revision = precondition
            .revision
            .as_ref()
            .map(|revision| revision.0.parse().unwrap_or(u64::MAX));
        let operation = Operation::Delete {
            revision,
            uid: precondition.uid.clone(),
        };
        match self.write(key.clone(), operation).await? {
            Outcome::Deleted { json, revision, .. } => {
                json::decode(key.kind, &json, revision.to_string()).map_err(|reason| {
                    Error::message(format!("{key} was deleted, but was unreadable: {reason}"))
                })
            }
            other => Ok(other.into_resource()),
        }
    }

    async fn write_together(&self, writes: Vec<Write>) -> Result<Vec<Resource>> {
        let Some(first) = writes.first().map(Write::key) else {
            return Ok(Vec::new());
        };
        let mut operations = Vec::with_capacity(writes.len());
        for write in writes {
            let key = write.key();
            if !matches!(write, Write::Unchanged(..)) {
                self.check_writable("write", &key)?;
            }
            let operation = operation_of(write, &key)?;
            operations.push(stored_write(key, operation)?);
        }
        check_distinct(operations.iter().map(|write| &write.stored_key))?;
        match self.write(first, Operation::Together(operations)).await? {
            Outcome::All(outcomes) => Ok(outcomes
                .into_iter()
                .filter(|outcome| matches!(outcome, Outcome::Written(_)))
                .map(Outcome::into_resource)
                .collect()),
            other => Ok(vec![other.into_resource()]),
        }
    }

    async fn list_affinities(&self, owner: &str) -> Result<List> {
        let owner = owner.to_owned();
        self.inner
            .read(move |file| file.list_affinities(&owner))
            .await
    }

    async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch> {
        let after = from.0.parse().map_err(|_| Error::Gone(from.0.clone()))?;
        self.inner
            .watch(Topic::Kind(query.kind), query.clone(), after)
    }
}

fn stored_write(key: Key, operation: Operation) -> Result<writer::Write> {
    let stored_key = keys::encode(&key).ok_or_else(|| resources::invalid_name(&key))?;
    let key = AnyKey::Resource(key);
    Ok(writer::Write {
        key,
        stored_key,
        operation,
    })
}

fn operation_of(write: Write, key: &Key) -> Result<Operation> {
    Ok(match write {
        Write::Create(mut resource) => {
            default_profile::check_writable("create", key)?;
            let json = json::encode(&mut resource);
            Operation::Create(Content::Resource { resource, json })
        }
        Write::Update(resource) => {
            default_profile::check_writable("update", key)?;
            update_operation(resource)?
        }
        Write::Delete(resource) => {
            default_profile::check_writable("delete", key)?;
            Operation::Delete {
                revision: Some(revision_of(expected_revision(&resource)?)),
                uid: None,
            }
        }
        Write::Unchanged(_, revision) => Operation::Check {
            expected: revision.map(|revision| revision_of(&revision.0)),
        },
    })
}

fn update_operation(mut resource: Resource) -> Result<Operation> {
    let expected = revision_of(expected_revision(&resource)?);
    let json = json::encode(&mut resource);
    let content = Content::Resource { resource, json };
    Ok(Operation::Update { content, expected })
}

/// What is not one of our revisions is not that of the object either; the writer tells whether there is one at all.
fn revision_of(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

//! Watches: one connection for each source, merged into one stream.
//!
//! # Invariants
//! - A watch never connects again: it is over with the first of its connections.
//! - Without a revision to start from, a source first delivers everything there is; its part of the revision stays
//!   empty until all of it is delivered.
//! - A kind that a cluster may do without, and that the API server does not know, has no changes until it does; another
//!   one that it does not know ends the watch with an error.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use serde_json::Value;
use tortie_backoff::{Backoff, Retries};
use tortie_sync::kubernetes::{Connection, Error as Failure, PAGE_SIZE, Selection, Told};

use super::failure::Refusal as _;
use super::presence::{Presence, id_of};
use super::source::{Reading, Source, revision_of};
use super::{KubernetesStore, revision};
use crate::error::{Error, Result};
use crate::key::{Key, Query};
use crate::store::{Change, Event, Watch};

/// How often a kind is looked for that a cluster may do without, and that it does not serve yet.
const LOOK: Backoff = Backoff {
    first: Duration::from_millis(200),
    most: Duration::from_secs(4),
    jitter: 0.5,
};

/// The changes of one source.
pub(super) struct Tail {
    client: kube::Client,
    presence: Presence,
    source: Source,
    query: Query,
    at: Selection,
    /// How far it has come; empty if everything is still to be delivered.
    revision: String,
    /// What is delivered before the next event.
    pending: VecDeque<Change>,
    /// The revision that holds once nothing is pending.
    pending_revision: String,
    link: Link,
    looks: Retries,
}

/// How a source is connected.
enum Link {
    /// Not yet.
    Closed,
    /// Not yet, because the API server does not know the kind.
    Unserved,
    Open(Connection),
    /// Never: nothing that is selected can exist.
    Never,
}

/// A change, and how far its source has come with it.
type Step = Result<(String, Change)>;

/// Follows several sources as one, starting from the parts of a revision.
pub(super) fn merge(tails: Vec<(usize, Tail)>, mut parts: Vec<String>) -> Watch {
    let streams = tails.into_iter().map(|(index, tail)| {
        stream::unfold(Some(tail), move |tail| async move {
            let mut tail = tail?;
            let step = tail.next().await;
            let goes_on = matches!(step, Some(Ok(_)));
            Some(((index, step), goes_on.then_some(tail)))
        })
        .boxed()
    });
    if streams.len() == 0 {
        // Nothing that the query selects can ever exist.
        return stream::pending().boxed();
    }
    // The end of one source is that of all.
    let steps = stream::select_all(streams).scan(false, |is_over, (index, step)| {
        let step = step.filter(|_| !*is_over);
        *is_over = !matches!(step, Some(Ok(_)));
        std::future::ready(step.map(|step| (index, step)))
    });
    steps
        .map(move |(index, step)| {
            let (revision, change) = step?;
            parts[index] = revision;
            Ok(Event {
                revision: revision::join(&parts),
                change,
            })
        })
        .boxed()
}

impl Tail {
    /// Takes the first step towards events, so that what cannot work fails at once.
    pub(super) async fn start(
        store: &KubernetesStore,
        source: Source,
        query: Query,
        at: Selection,
        revision: String,
    ) -> Result<Self> {
        let mut tail = Self {
            client: store.client.clone(),
            presence: store.presence.clone(),
            source,
            query,
            at,
            revision,
            pending: VecDeque::new(),
            pending_revision: String::new(),
            link: Link::Closed,
            looks: Retries::new(LOOK),
        };
        tail.connect().await?;
        Ok(tail)
    }

    /// The next change; nothing if the API server ended the connection, as it does after some minutes.
    async fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(change) = self.pending.pop_front() {
                if self.pending.is_empty() {
                    self.revision = std::mem::take(&mut self.pending_revision);
                }
                return Some(Ok((self.revision.clone(), change)));
            }
            let connection = match &mut self.link {
                Link::Never => return std::future::pending().await,
                Link::Open(connection) => connection,
                Link::Closed | Link::Unserved => {
                    if matches!(self.link, Link::Unserved) {
                        tokio::time::sleep(self.looks.failed()).await;
                    }
                    match self.connect().await {
                        Ok(()) => continue,
                        Err(error) => return Some(Err(error)),
                    }
                }
            };
            let told = connection.next().await?;
            let step = told.and_then(|told| Ok(self.on_told(&told)?));
            return Some(step.map_err(|failure| self.error(failure)));
        }
    }

    /// Reads everything where there is no revision to start from, else connects.
    async fn connect(&mut self) -> Result<()> {
        let result = match self.revision.as_str() {
            "" => self.read_all().await,
            _ => self.open().await,
        };
        match result {
            Ok(()) => {}
            Err(Failure::NoSuchName) => self.link = Link::Never,
            Err(failure) if failure.is_not_found() => {
                self.presence.check_missing(&self.source)?;
                self.link = Link::Unserved;
            }
            Err(failure) => return Err(self.error(failure)),
        }
        Ok(())
    }

    async fn open(&mut self) -> Result<(), Failure> {
        let endpoint = &self.source.endpoint;
        let connection = endpoint.watch(&self.client, &self.at, &self.revision).await;
        self.link = Link::Open(connection?);
        Ok(())
    }

    async fn read_all(&mut self) -> Result<(), Failure> {
        let mut ids = HashSet::new();
        let mut pending = VecDeque::new();
        let mut from = None;
        loop {
            let endpoint = &self.source.endpoint;
            let (source, query) = (&self.source, &self.query);
            let take = |object: &str| {
                let object = serde_json::from_str(object)?;
                ids.insert(id_of(&object));
                pending.push_back(put(source, query, &object));
                Ok(())
            };
            let page = endpoint.page(&self.client, &self.at, Some(PAGE_SIZE), from, take);
            let page = page.await?;
            self.pending_revision = page.revision;
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        self.presence.set_all(&self.source, &self.at, ids);
        // The bookmark carries the revision, also where there are no objects.
        pending.push_back(Change::Bookmark);
        self.pending = pending;
        self.link = Link::Closed;
        Ok(())
    }

    fn error(&self, failure: Failure) -> Error {
        if failure.is_gone() {
            return Error::Gone(self.revision.clone());
        }
        failure.into_error(&super::key_of_query(&self.query))
    }

    fn on_told(&mut self, told: &Told) -> serde_json::Result<(String, Change)> {
        let (Told::Set(object) | Told::Deleted(object) | Told::Bookmark(object)) = told;
        let object: Value = serde_json::from_str(object.get())?;
        let change = match told {
            Told::Set(_) => {
                self.presence.add(&self.source, &object);
                put(&self.source, &self.query, &object)
            }
            Told::Deleted(_) => {
                self.presence.remove(&self.source, &object);
                self.delete(&object)
            }
            Told::Bookmark(_) => Change::Bookmark,
        };
        revision_of(&object).clone_into(&mut self.revision);
        Ok((self.revision.clone(), change))
    }

    /// An object that was absent already has been reported as deleted.
    fn delete(&self, object: &Value) -> Change {
        let key = match self.source.read(object) {
            Reading::Present(resource) => Key::of(&resource),
            Reading::Invalid(invalid) => invalid.key,
            Reading::Absent(_) | Reading::Unrelated => return Change::Bookmark,
        };
        if self.query.selects(&key) {
            Change::Delete(key)
        } else {
            Change::Bookmark
        }
    }
}

fn put(source: &Source, query: &Query, object: &Value) -> Change {
    match source.read(object) {
        Reading::Present(resource) if query.selects(&Key::of(&resource)) => Change::Put(resource),
        Reading::Absent(key) if query.selects(&key) => Change::Delete(key),
        Reading::Invalid(invalid) if query.selects(&invalid.key) => Change::Invalid(invalid),
        _ => Change::Bookmark,
    }
}

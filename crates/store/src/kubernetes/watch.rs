//! Watches: one connection for each source, renewed when it ends, and merged into one stream.
//!
//! # Invariants
//! - A source resumes from the last revision it delivered, so that nothing is lost or repeated.
//! - Without a revision to start from, a source first delivers everything there is; its part of the revision stays
//!   empty until all of it is delivered.
//! - A kind that a cluster may do without, and that the API server does not know, has no changes until it does; another
//!   one that it does not know ends the watch with an error.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use kube::core::WatchEvent;
use serde_json::Value;

use super::api::{Connection, Selection, WATCH_SILENCE};
use super::failure::{self, Failure};
use super::presence::Presence;
use super::source::{Reading, Source, revision_of};
use super::{KubernetesStore, revision};
use crate::error::{Error, Result};
use crate::key::{Key, Query};
use crate::store::{Change, Event, Watch};

/// Wait before the first retry; it doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_millis(200);

/// Longest wait between two tries.
const MAX_RETRY: Duration = Duration::from_secs(4);

/// The changes of one source.
pub(super) struct Follower {
    client: kube::Client,
    presence: Presence,
    source: Source,
    query: Query,
    at: Selection,
    /// Where to resume; empty if everything is still to be delivered.
    revision: String,
    /// What is delivered before the next event.
    pending: VecDeque<Change>,
    /// The revision that holds once nothing is pending.
    pending_revision: String,
    connection: Option<Connection>,
    /// Tries in a row that brought nothing.
    failures: u32,
}

/// A change, and how far its source has come with it.
type Step = Result<(String, Change)>;

/// Follows several sources as one, starting from the parts of a revision.
pub(super) fn merge(followers: Vec<(usize, Follower)>, mut parts: Vec<String>) -> Watch {
    let streams = followers.into_iter().map(|(index, follower)| {
        stream::unfold(Some(follower), move |follower| async move {
            let mut follower = follower?;
            let step = follower.next().await;
            let is_over = step.is_err();
            Some(((index, step), (!is_over).then_some(follower)))
        })
        .boxed()
    });
    if streams.len() == 0 {
        // Nothing that the query selects can ever exist.
        return stream::pending().boxed();
    }
    let mut is_over = false;
    stream::select_all(streams)
        // The error of one source ends all of them.
        .take_while(move |(_, step)| {
            let goes_on = !is_over;
            is_over |= step.is_err();
            std::future::ready(goes_on)
        })
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

impl Follower {
    /// Prepares to follow a source, and makes the first connection, so that what cannot work fails at once.
    pub(super) async fn start(
        store: &KubernetesStore,
        source: Source,
        query: Query,
        at: Selection,
        revision: String,
    ) -> Result<Self> {
        let mut follower = Self {
            client: store.client.clone(),
            presence: store.presence.clone(),
            source,
            query,
            at,
            revision,
            pending: VecDeque::new(),
            pending_revision: String::new(),
            connection: None,
            failures: 0,
        };
        follower.connect().await?;
        Ok(follower)
    }

    async fn next(&mut self) -> Step {
        loop {
            if let Some(change) = self.pending.pop_front() {
                if self.pending.is_empty() {
                    self.revision = std::mem::take(&mut self.pending_revision);
                }
                return Ok((self.revision.clone(), change));
            }
            let Some(connection) = &mut self.connection else {
                tokio::time::sleep(retry_delay(self.failures)).await;
                match self.connect().await {
                    Err(error @ Error::Unavailable { .. }) => {
                        self.failures = self.failures.saturating_add(1);
                        self.report("Watch cannot be resumed; will retry", &error);
                    }
                    Err(error) => return Err(error),
                    Ok(()) => {}
                }
                continue;
            };
            match tokio::time::timeout(WATCH_SILENCE, connection.next()).await {
                Ok(Some(Ok(event))) => {
                    if let Some(step) = self.on_event(event) {
                        return step;
                    }
                }
                Ok(Some(Err(error))) => {
                    self.disconnect();
                    self.report("Watch was interrupted; will resume", &error);
                }
                // The API server ends a watch after some minutes; after a silence it is unreachable.
                Ok(None) | Err(_) => self.disconnect(),
            }
        }
    }

    /// Takes the next step towards events: reads everything where there is no revision to start from, else connects.
    async fn connect(&mut self) -> Result<()> {
        let result = match self.revision.as_str() {
            "" => self.read_all().await,
            _ => self.open().await,
        };
        match result {
            Err(Failure::NoSuchName) => {
                self.failures = self.failures.saturating_add(1);
                Ok(())
            }
            Err(failure) if failure.is_not_found() => self.wait_for_kind(),
            Err(failure) => Err(self.error(failure)),
            Ok(is_served) if !is_served => self.wait_for_kind(),
            Ok(_) => Ok(()),
        }
    }

    /// Whether the API server knows the kind.
    async fn open(&mut self) -> Result<bool, Failure> {
        let Self {
            client,
            source,
            at,
            revision,
            ..
        } = self;
        self.connection = Some(source.endpoint.watch(client, at, revision).await?);
        Ok(true)
    }

    /// Whether the API server knows the kind.
    async fn read_all(&mut self) -> Result<bool, Failure> {
        let Some(objects) = self.source.endpoint.list(&self.client, &self.at).await? else {
            return Ok(false);
        };
        self.presence
            .set_all(&self.source, &self.at, &objects.items);
        let changes: Vec<Change> = objects
            .items
            .iter()
            .map(|object| self.put(object))
            .collect();
        self.pending.extend(changes);
        // The bookmark carries the revision, also where there are no objects.
        self.pending.push_back(Change::Bookmark);
        self.pending_revision = objects.revision;
        self.failures = 0;
        Ok(true)
    }

    /// The API server does not know the kind. Where a cluster may do without it that is no failure, but no reason to ask
    /// often either.
    fn wait_for_kind(&mut self) -> Result<()> {
        self.presence.check_missing(&self.source)?;
        self.failures = self.failures.saturating_add(1);
        Ok(())
    }

    fn error(&self, failure: Failure) -> Error {
        if failure.is_gone() {
            return Error::Gone(self.revision.clone());
        }
        failure.into_error(&super::key_of_query(&self.query))
    }

    /// Forgets the connection, to make a new one after a while.
    fn disconnect(&mut self) {
        self.connection = None;
        self.failures = self.failures.saturating_add(1);
    }

    fn report(&self, message: &'static str, error: &(dyn std::error::Error + 'static)) {
        let (kind, failures) = (self.query.kind, self.failures);
        tracing::warn!(%kind, failures, error, "{message}");
    }

    /// What an event means; nothing if it ended the connection.
    fn on_event(&mut self, event: WatchEvent<Value>) -> Option<Step> {
        let (revision, change) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.presence.add(&self.source, &object);
                (revision_of(&object).to_owned(), self.put(&object))
            }
            WatchEvent::Deleted(object) => {
                self.presence.remove(&self.source, &object);
                (revision_of(&object).to_owned(), self.delete(&object))
            }
            WatchEvent::Bookmark(bookmark) => {
                (bookmark.metadata.resource_version, Change::Bookmark)
            }
            WatchEvent::Error(status) if failure::is_gone(&status) => {
                return Some(Err(Error::Gone(self.revision.clone())));
            }
            WatchEvent::Error(status) => {
                self.disconnect();
                self.report("Watch was refused; will resume", &kube::Error::Api(status));
                return None;
            }
        };
        // One event is enough to show that the connection works.
        self.failures = 0;
        self.revision.clone_from(&revision);
        Some(Ok((revision, change)))
    }

    fn put(&self, object: &Value) -> Change {
        match self.source.read(object) {
            Reading::Present(resource) if self.query.selects(&Key::of(&resource)) => {
                Change::Put(resource)
            }
            Reading::Absent(key) if self.query.selects(&key) => Change::Delete(key),
            Reading::Invalid(invalid) if self.query.selects(&invalid.key) => {
                Change::Invalid(invalid)
            }
            _ => Change::Bookmark,
        }
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

/// How long to wait before the next try: twice as long each time, with a random part, so that the nodes of a cluster
/// do not come back all at once.
fn retry_delay(failures: u32) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let full = FIRST_RETRY
        .saturating_mul(1 << (failures - 1).min(16))
        .min(MAX_RETRY);
    // A fresh hasher has random keys.
    let random = RandomState::new().hash_one(failures) % 1000;
    full / 2 + (full / 2000).saturating_mul(u32::try_from(random).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_wait_longer_each_time_up_to_a_limit() {
        assert_eq!(retry_delay(0), Duration::ZERO);
        for failures in 1..100 {
            let full = FIRST_RETRY
                .saturating_mul(1 << (failures - 1).min(16))
                .min(MAX_RETRY);
            let delay = retry_delay(failures);
            assert!(delay >= full / 2 && delay <= full, "{failures}: {delay:?}");
        }
    }
}

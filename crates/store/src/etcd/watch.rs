//! A watch on etcd that outlives its connections.
//!
//! When the connection is lost, the watch goes on where it stood, on the next endpoint, with pauses
//! that grow. It gives up with [`Error::Unavailable`] after [`GIVE_UP`], so that its owner can tell
//! people; the owner may then watch again from the last revision it saw.
//!
//! # Invariants
//! - The revision to go on from moves only when all events of the revisions before it are queued.
//! - There is no task behind a watch: what the owner does not read stays with etcd.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use tonic::{Status, Streaming};

use super::client::{self, Client};
use super::messages::{EventType, RangeRequest, WatchCreateRequest, WatchEvent, WatchResponse};
use super::paths::{self, Location, Range};
use super::{Found, is_compacted};
use crate::error::{Error, Result};
use crate::key::{Query, Revision};
use crate::store::{Change, Event, Invalid, Watch};

/// How long a watch tries to get back to etcd.
const GIVE_UP: Duration = Duration::from_mins(1);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

struct State {
    client: Arc<Client>,
    query: Query,
    range: Range,
    /// All changes before this revision are delivered or in `pending`.
    next: i64,
    responses: Option<Streaming<WatchResponse>>,
    /// Events of a response that etcd sends in parts, until the last part is here.
    parts: Vec<WatchEvent>,
    pending: VecDeque<Event>,
    /// Since when there is no working connection.
    lost: Option<Instant>,
    pause: Duration,
    /// Set while a refusal may be due to an old token, that is, until a second one.
    may_authenticate: bool,
    /// Whether there has been a connection: the owner waits for the first one.
    started: bool,
    ended: bool,
}

/// Starts a watch for the changes after a revision.
pub(super) async fn start(client: Arc<Client>, query: Query, after: i64) -> Result<Watch> {
    let mut state = State {
        client,
        range: Range::of(&query),
        query,
        next: after.saturating_add(1),
        responses: None,
        parts: Vec::new(),
        pending: VecDeque::new(),
        lost: None,
        pause: FIRST_PAUSE,
        may_authenticate: true,
        started: false,
        ended: false,
    };
    let mut others = state.client.member_count() - 1;
    while let Err(error) = state.connect().await {
        if others == 0 || !error.is_retryable() {
            return Err(error);
        }
        others -= 1;
        state.client.fail_over();
    }
    let stream = futures::stream::unfold(state, async |mut state| {
        state.next().await.map(|event| (event, state))
    });
    Ok(stream.boxed())
}

impl State {
    async fn next(&mut self) -> Option<Result<Event>> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(Ok(event));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.step().await {
                self.ended = true;
                return Some(Err(error));
            }
        }
    }

    async fn step(&mut self) -> Result<()> {
        let Some(responses) = &mut self.responses else {
            self.wait().await;
            return self.connect().await;
        };
        match responses.message().await {
            Ok(Some(response)) => self.take(response).await,
            Ok(None) => self.lose(Status::unavailable("etcd ended the watch")).await,
            Err(status) => self.lose(status).await,
        }
    }

    async fn connect(&mut self) -> Result<()> {
        let request = WatchCreateRequest {
            key: self.range.start.clone(),
            range_end: self.range.end.clone(),
            start_revision: self.next,
            progress_notify: true,
            prev_kv: true,
            fragment: true,
        };
        match self.client.watch(request).await {
            Ok(responses) => {
                self.responses = Some(responses);
                self.started = true;
                Ok(())
            }
            Err(status) => self.lose(status).await,
        }
    }

    /// Decides what to make of a broken connection.
    async fn lose(&mut self, status: Status) -> Result<()> {
        self.responses = None;
        self.parts.clear();
        if client::is_stale_token(&status) && self.may_authenticate {
            self.may_authenticate = false;
            self.client.forget_token().await;
            return Ok(());
        }
        let lost = *self.lost.get_or_insert_with(Instant::now);
        if !client::is_transient(&status) || lost.elapsed() > GIVE_UP || !self.started {
            return Err(self.client.error(status));
        }
        tracing::warn!(
            query = ?self.query, revision = self.next - 1, error = status.message(),
            "lost the watch on etcd, going on from there"
        );
        self.client.fail_over();
        Ok(())
    }

    /// Waits before another try, each time longer, and not in step with others.
    async fn wait(&mut self) {
        let Some(_) = self.lost else { return };
        let jitter = RandomState::new().hash_one(0) % 512;
        let half = self.pause / 2;
        tokio::time::sleep(half + half * jitter as u32 / 512).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    async fn take(&mut self, response: WatchResponse) -> Result<()> {
        if response.canceled {
            return self.canceled(&response).await;
        }
        self.lost = None;
        self.pause = FIRST_PAUSE;
        self.may_authenticate = true;
        if response.created {
            return Ok(());
        }
        let is_progress = response.events.is_empty() && self.parts.is_empty();
        self.parts.extend(response.events);
        if response.fragment {
            return Ok(());
        }
        if is_progress {
            self.bookmark(response.header.map_or(0, |header| header.revision));
        }
        for event in std::mem::take(&mut self.parts) {
            self.queue(event).await?;
        }
        Ok(())
    }

    async fn canceled(&mut self, response: &WatchResponse) -> Result<()> {
        let reason = &response.cancel_reason;
        if response.compact_revision > 0 || reason.contains("compacted") {
            return Err(Error::Gone((self.next - 1).to_string()));
        }
        // A token that ran out is refused in the same words as a missing right.
        if reason.contains("permission denied") || reason.contains("auth") {
            return self.lose(Status::unauthenticated(reason.clone())).await;
        }
        self.lose(Status::unavailable(reason.clone())).await
    }

    fn bookmark(&mut self, revision: i64) {
        if revision >= self.next {
            self.next = revision + 1;
            let revision = Revision(revision.to_string());
            self.pending.push_back(Event {
                revision,
                change: Change::Bookmark,
            });
        }
    }

    async fn queue(&mut self, event: WatchEvent) -> Result<()> {
        let Some(kv) = event.kv else { return Ok(()) };
        let revision = kv.mod_revision;
        let change = if event.r#type == i32::from(EventType::Delete) {
            // Its own value is empty; that before it may tell the name.
            self.deleted(event.prev_kv.unwrap_or(kv), revision).await?
        } else {
            Found::new(kv).and_then(|found| self.put(&found))
        };
        self.next = self.next.max(revision + 1);
        if let Some(change) = change {
            self.pending.push_back(Event {
                revision: Revision(revision.to_string()),
                change,
            });
        }
        Ok(())
    }

    fn put(&self, found: &Found) -> Option<Change> {
        let key = found.key();
        self.query
            .selects(&key)
            .then(|| match found.stored().decode() {
                Ok(resource) => Change::Put(resource),
                Err(reason) => {
                    let value = found.stored().value;
                    Change::Invalid(Invalid::of_bytes(key, reason, value))
                }
            })
    }

    /// A policy under its older path may have been removed because it is under the newer one now:
    /// then nothing is gone.
    async fn deleted(&self, kv: super::KeyValue, revision: i64) -> Result<Option<Change>> {
        let Some(found) = Found::new(kv) else {
            return Ok(None);
        };
        let key = found.key();
        if !self.query.selects(&key) {
            return Ok(None);
        }
        if key != found.location.key() && self.is_under_newer_path(&key, revision).await? {
            return Ok(None);
        }
        Ok(Some(Change::Delete(key)))
    }

    async fn is_under_newer_path(&self, key: &crate::Key, revision: i64) -> Result<bool> {
        let Some(path) = paths::candidates(key).into_iter().next() else {
            return Ok(false);
        };
        debug_assert_eq!(
            Location::parse(&path).map(|at| at.key()).as_ref(),
            Some(key)
        );
        let at = RangeRequest {
            key: path.into(),
            revision,
            keys_only: true,
            ..Default::default()
        };
        let now = RangeRequest {
            revision: 0,
            ..at.clone()
        };
        let response = match self.client.range(at).await {
            Err(status) if is_compacted(&status) => self.client.range(now).await,
            result => result,
        };
        Ok(!response
            .map_err(|status| self.client.error(status))?
            .kvs
            .is_empty())
    }
}

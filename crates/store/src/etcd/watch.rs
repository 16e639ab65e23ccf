//! A watch on etcd: one connection, to the first member that grants it.
//!
//! # Invariants
//! - A watch never connects again. What ended it makes the next one use another member, or a new token.
//! - The revision to go on from moves only when all events of the revisions before it are queued.
//! - There is no task behind a watch: what the owner does not read stays with etcd.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt;
use tonic::{Status, Streaming};

use super::client::{self, Client};
use super::found::Found;
use super::is_compacted;
use super::messages::{EventType, RangeRequest, WatchCreateRequest, WatchEvent, WatchResponse};
use super::paths::{self, Location, Range};
use crate::error::{Error, Result};
use crate::key::{Query, Revision};
use crate::store::{Change, Event, Invalid, Watch};

struct State {
    client: Arc<Client>,
    query: Query,
    /// All changes before this revision are delivered or in `pending`.
    next: i64,
    responses: Streaming<WatchResponse>,
    /// Events of a response that etcd sends in parts, until the last part is here.
    parts: Vec<WatchEvent>,
    pending: VecDeque<Event>,
    is_ended: bool,
}

/// Starts a watch for the changes after a revision.
pub(super) async fn start(client: Arc<Client>, query: Query, after: i64) -> Result<Watch> {
    let next = after.saturating_add(1);
    let responses = connect(&client, &Range::of(&query), next).await;
    let responses = responses.map_err(|status| client.error(status))?;
    let state = State {
        client,
        query,
        next,
        responses,
        parts: Vec::new(),
        pending: VecDeque::new(),
        is_ended: false,
    };
    let stream = futures::stream::unfold(state, async |mut state| {
        state.next().await.map(|event| (event, state))
    });
    Ok(stream.boxed())
}

/// Connects to one of the members, with another token if the one at hand is refused.
async fn connect(
    client: &Client,
    range: &Range,
    start_revision: i64,
) -> Result<Streaming<WatchResponse>, Status> {
    let request = WatchCreateRequest {
        key: range.start.clone(),
        range_end: range.end.clone(),
        start_revision,
        progress_notify: true,
        prev_kv: true,
        fragment: true,
    };
    let mut others = client.member_count() - 1;
    let mut may_authenticate = true;
    loop {
        let status = match open(client, request.clone()).await {
            Ok(responses) => return Ok(responses),
            Err(status) => status,
        };
        if client::is_stale_token(&status) && may_authenticate {
            may_authenticate = false;
            client.forget_token().await;
        } else if client::is_transient(&status) && others > 0 {
            others -= 1;
            client.fail_over();
        } else {
            return Err(status);
        }
    }
}

/// Asks the current member for a watch, and waits for its consent.
async fn open(
    client: &Client,
    request: WatchCreateRequest,
) -> Result<Streaming<WatchResponse>, Status> {
    let mut responses = client.watch(request).await?;
    match responses.message().await? {
        Some(response) if response.canceled => Err(cancellation(&response)),
        Some(_) => Ok(responses),
        None => Err(Status::unavailable("etcd ended the watch")),
    }
}

impl State {
    async fn next(&mut self) -> Option<Result<Event>> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(Ok(event));
            }
            if self.is_ended {
                return None;
            }
            if let Err(error) = self.step().await {
                self.is_ended = true;
                return Some(Err(error));
            }
        }
    }

    async fn step(&mut self) -> Result<()> {
        match self.responses.message().await {
            Ok(Some(response)) if response.canceled => self.canceled(&response).await,
            Ok(Some(response)) => self.take(response).await,
            Ok(None) => self.lose(Status::unavailable("etcd ended the watch")).await,
            Err(status) => self.lose(status).await,
        }
    }

    /// Prepares the way for another watch. Whether a token is still good, or a right is missing, the next connection tells.
    async fn lose(&self, status: Status) -> Result<()> {
        if client::is_stale_token(&status) {
            self.client.forget_token().await;
            return Err(Error::unavailable("etcd refused the token", status));
        }
        if client::is_transient(&status) {
            self.client.fail_over();
        }
        Err(self.client.error(status))
    }

    async fn take(&mut self, response: WatchResponse) -> Result<()> {
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
        if response.compact_revision > 0 || response.cancel_reason.contains("compacted") {
            return Err(Error::Gone((self.next - 1).to_string()));
        }
        self.lose(cancellation(response)).await
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

/// Why etcd ended a watch.
fn cancellation(response: &WatchResponse) -> Status {
    let reason = response.cancel_reason.clone();
    // A token that ran out is refused in the same words as a missing right.
    if reason.contains("permission denied") || reason.contains("auth") {
        Status::unauthenticated(reason)
    } else {
        Status::unavailable(reason)
    }
}

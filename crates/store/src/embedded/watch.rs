//! A watch: first the change log, then the feed, and the log again whenever it fell behind.

use std::collections::VecDeque;
use std::sync::Weak;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Shared;
use super::feed::{Batch, Committed};
use super::file::Replay;
use crate::error::{Error, Result};
use crate::key::{Query, Revision};
use crate::store::{Change, Event, Watch};

/// How often a quiet watch says how far it has come, so that it can be resumed after the log has
/// moved on.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(30);

struct State {
    shared: Weak<Shared>,
    query: Query,
    /// All changes up to this revision are delivered, or in `pending`, or not selected.
    seen: u64,
    source: Source,
    feed: Receiver<Batch>,
    pending: VecDeque<Event>,
}

enum Source {
    Log,
    Feed,
    Ended,
}

/// The changes after a revision. The receiver must be older than the check of that revision.
pub(super) fn stream(
    shared: Weak<Shared>,
    query: Query,
    after: u64,
    feed: Receiver<Batch>,
) -> Watch {
    let pending = VecDeque::new();
    let state = State {
        shared,
        query,
        seen: after,
        source: Source::Log,
        feed,
        pending,
    };
    stream::unfold(state, async |mut state| {
        state.next().await.map(|event| (event, state))
    })
    .boxed()
}

impl State {
    async fn next(&mut self) -> Option<Result<Event>> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(Ok(event));
            }
            let step = match self.source {
                Source::Ended => return None,
                Source::Log => self.read_log().await,
                Source::Feed => self.receive().await,
            };
            if let Err(error) = step {
                self.source = Source::Ended;
                return Some(Err(error));
            }
        }
    }

    /// Reads a part of the log. At its end the feed takes over: what was committed since is there,
    /// and what is in both is told apart by its revision.
    async fn read_log(&mut self) -> Result<()> {
        let shared = self.shared.upgrade().ok_or_else(closed)?;
        let (query, after) = (self.query.clone(), self.seen);
        let read = tokio::task::spawn_blocking(move || shared.file.replay(&query, after)).await;
        let Replay {
            events,
            seen,
            at_end,
        } = read.map_err(|error| Error::other("a read of the change log did not end", error))??;
        self.pending.extend(events);
        self.seen = seen;
        if at_end {
            self.source = Source::Feed;
        }
        Ok(())
    }

    async fn receive(&mut self) -> Result<()> {
        match tokio::time::timeout(BOOKMARK_INTERVAL, self.feed.recv()).await {
            Ok(Ok(batch)) if !batch.is_empty() => self.take(&batch),
            Ok(Ok(_) | Err(RecvError::Lagged(_))) => self.source = Source::Log,
            Ok(Err(RecvError::Closed)) => return Err(closed()),
            Err(_) => self.bookmark()?,
        }
        Ok(())
    }

    fn take(&mut self, batch: &[Committed]) {
        let new = batch.iter().filter(|change| change.revision > self.seen);
        let selected = new.filter(|change| self.query.selects(&change.key));
        self.pending.extend(selected.map(event));
        if let Some(last) = batch.last() {
            self.seen = self.seen.max(last.revision);
        }
    }

    fn bookmark(&mut self) -> Result<()> {
        // In this order: what was handed out before the load is in the channel already.
        let published = self.shared.upgrade().ok_or_else(closed)?.feed.published();
        if self.feed.is_empty() {
            self.seen = self.seen.max(published);
            let revision = Revision(self.seen.to_string());
            self.pending.push_back(Event {
                revision,
                change: Change::Bookmark,
            });
        }
        Ok(())
    }
}

fn event(change: &Committed) -> Event {
    let revision = Revision(change.revision.to_string());
    let change = match &change.resource {
        Some(resource) => Change::Put((**resource).clone()),
        None => Change::Delete(change.key.clone()),
    };
    Event { revision, change }
}

fn closed() -> Error {
    Error::Unavailable {
        message: "the embedded store was closed".to_owned(),
        source: None,
    }
}

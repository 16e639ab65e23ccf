//! A watch: first the change log, then the feed, and the log again whenever it fell behind.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Weak;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, Sleep};

use super::Shared;
use super::feed::{Batch, Committed};
use super::file::closed;
use super::reads::Replay;
use crate::error::{Error, Result};

/// How often a quiet watch says how far it has come, so that it can be resumed after the log has
/// moved on.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(30);

/// What a watch is for, and the form of its events.
pub(super) trait Selection: Clone + Send + Sync + 'static {
    /// What it delivers.
    type Event: Send + 'static;

    /// The event of a change from the log, if it is selected: bytes of the key, and the new state
    /// unless the object was removed.
    fn logged(&self, revision: u64, key: &[u8], json: Option<&[u8]>) -> Option<Self::Event>;

    /// The event of a change that was just made, if it is selected.
    fn committed(&self, change: &Committed) -> Option<Self::Event>;

    /// The event that only says how far the watch has come.
    fn bookmark(&self, revision: u64) -> Self::Event;
}

struct State<S: Selection> {
    shared: Weak<Shared>,
    selection: S,
    /// All changes up to this revision are delivered, or in `pending`, or not selected.
    seen: u64,
    source: Source,
    feed: Receiver<Batch>,
    pending: VecDeque<S::Event>,
    /// Since when nothing came.
    quiet_since: Instant,
    /// Ends when it has been quiet for long enough, or earlier. Set when the feed is first waited for.
    alarm: Option<Pin<Box<Sleep>>>,
}

enum Source {
    Log,
    Feed,
    Ended,
}

/// The changes after a revision. The receiver must be older than the check of that revision.
pub(super) fn stream<S: Selection>(
    shared: Weak<Shared>,
    selection: S,
    after: u64,
    feed: Receiver<Batch>,
) -> BoxStream<'static, Result<S::Event>> {
    let pending = VecDeque::new();
    let state = State {
        shared,
        selection,
        seen: after,
        source: Source::Log,
        feed,
        pending,
        quiet_since: Instant::now(),
        alarm: None,
    };
    stream::unfold(state, async |mut state: State<S>| {
        state.next().await.map(|event| (event, state))
    })
    .boxed()
}

impl<S: Selection> State<S> {
    async fn next(&mut self) -> Option<Result<S::Event>> {
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
        let (selection, after) = (self.selection.clone(), self.seen);
        let read = tokio::task::spawn_blocking(move || shared.file.replay(&selection, after)).await;
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
        // The alarm is set anew when it rings, because that would cost more for every event.
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(BOOKMARK_INTERVAL)));
        let received = tokio::select! {
            biased;
            received = self.feed.recv() => received,
            () = alarm => return self.ring(),
        };
        self.quiet_since = Instant::now();
        match received {
            Ok(batch) if !batch.is_empty() => self.take(&batch),
            Ok(_) | Err(RecvError::Lagged(_)) => self.source = Source::Log,
            Err(RecvError::Closed) => return Err(closed()),
        }
        Ok(())
    }

    fn ring(&mut self) -> Result<()> {
        if self.quiet_since.elapsed() >= BOOKMARK_INTERVAL {
            self.bookmark()?;
            self.quiet_since = Instant::now();
        }
        let next = self.quiet_since + BOOKMARK_INTERVAL;
        self.alarm = Some(Box::pin(tokio::time::sleep_until(next)));
        Ok(())
    }

    fn take(&mut self, batch: &[Committed]) {
        let new = batch.iter().filter(|change| change.revision > self.seen);
        let selected = new.filter_map(|change| self.selection.committed(change));
        self.pending.extend(selected);
        if let Some(last) = batch.last() {
            self.seen = self.seen.max(last.revision);
        }
    }

    fn bookmark(&mut self) -> Result<()> {
        // In this order: what was handed out before the load is in the channel already.
        let published = self.shared.upgrade().ok_or_else(closed)?.feed.published();
        if self.feed.is_empty() {
            self.seen = self.seen.max(published);
            self.pending.push_back(self.selection.bookmark(self.seen));
        }
        Ok(())
    }
}

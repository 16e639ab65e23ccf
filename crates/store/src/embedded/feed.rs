//! Hands committed changes to the watches of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::broadcast;
use tortie_api::{Kind, Resource};

use crate::key::Key;

/// How many commits a watch may be behind before it reads the log instead. Short, because a slow
/// watch keeps that many batches in memory.
const BACKLOG: usize = 32;

/// A larger batch is not handed out: watches are told to read the log. With the backlog this bounds
/// the memory that slow watches hold, whatever the size of objects.
const LARGE_BATCH: usize = 1 << 20;

/// One channel per kind, because every watch is for one kind; a commit wakes only the watches of
/// the kinds it touches.
#[derive(Debug)]
pub(super) struct Feed {
    channels: Vec<broadcast::Sender<Batch>>,
    published: AtomicU64,
}

/// The changes of one commit to one kind, in order. Empty if they are to be read from the log.
pub(super) type Batch = Arc<[Committed]>;

/// One committed change.
#[derive(Debug, Clone)]
pub(super) struct Committed {
    pub(super) revision: u64,
    pub(super) key: Key,
    /// The new state; none if it was removed.
    pub(super) resource: Option<Arc<Resource>>,
    /// The size of the change in the log.
    pub(super) bytes: usize,
    /// Whether the new state is only in the log, because nobody watched the kind.
    pub(super) is_only_in_log: bool,
}

impl Feed {
    pub(super) fn new(revision: u64) -> Self {
        let channels = Kind::ALL
            .iter()
            .map(|_| broadcast::Sender::new(BACKLOG))
            .collect();
        Self {
            channels,
            published: AtomicU64::new(revision),
        }
    }

    pub(super) fn subscribe(&self, kind: Kind) -> broadcast::Receiver<Batch> {
        self.channels[kind as usize].subscribe()
    }

    /// Whether anybody watches the kind.
    pub(super) fn is_watched(&self, kind: Kind) -> bool {
        self.channels[kind as usize].receiver_count() > 0
    }

    /// Everything up to here has been handed out: a watch with nothing to receive has seen it.
    pub(super) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Hands out one commit. Called by the writer only, in the order of commits.
    pub(super) fn publish(&self, changes: Vec<Committed>, revision: u64) {
        let mut by_kind: Vec<Vec<Committed>> = Kind::ALL.iter().map(|_| Vec::new()).collect();
        for change in changes {
            by_kind[change.key.kind as usize].push(change);
        }
        for (channel, batch) in self.channels.iter().zip(by_kind) {
            if batch.is_empty() {
                continue;
            }
            let bytes: usize = batch.iter().map(|change| change.bytes).sum();
            let is_only_in_log = batch.iter().any(|change| change.is_only_in_log);
            let batch = if is_only_in_log || bytes > LARGE_BATCH {
                Batch::default()
            } else {
                batch.into()
            };
            // Fails if nobody watches the kind, which is fine.
            let _ = channel.send(batch);
        }
        self.published.store(revision, Ordering::Release);
    }
}

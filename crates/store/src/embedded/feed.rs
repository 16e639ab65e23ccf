//! Hands committed changes to the watches of this process.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::broadcast;
use tortie_api::Resource;

use super::keys::{AnyKey, Topic};

/// How many commits a watch may be behind before it reads the log instead. Short, because a slow
/// watch keeps that many batches in memory.
const BACKLOG: usize = 32;

/// A larger batch is not handed out: watches are told to read the log. With the backlog this bounds
/// the memory that slow watches hold, whatever the size of objects.
const LARGE_BATCH: usize = 1 << 20;

/// One channel per kind or collection, because every watch is for one; a commit wakes only the
/// watches of what it touches.
#[derive(Debug)]
pub(super) struct Feed {
    /// Those that are watched, and perhaps some that were.
    channels: RwLock<Channels>,
    published: AtomicU64,
}

type Channels = HashMap<Topic, broadcast::Sender<Batch>>;

/// The changes of one commit to one topic, in order. Empty if they are to be read from the log.
pub(super) type Batch = Arc<[Committed]>;

/// One committed change.
#[derive(Debug, Clone)]
pub(super) struct Committed {
    pub(super) revision: u64,
    pub(super) key: AnyKey,
    pub(super) state: State,
    /// The size of the change in the log.
    pub(super) bytes: usize,
}

/// What an object is after a change.
#[derive(Debug, Clone)]
pub(super) enum State {
    Removed,
    Resource(Arc<Resource>),
    Document(Arc<[u8]>),
    /// Nobody watched the topic.
    OnlyInLog,
}

impl Feed {
    pub(super) fn new(revision: u64) -> Self {
        Self {
            channels: RwLock::default(),
            published: AtomicU64::new(revision),
        }
    }

    pub(super) fn subscribe(&self, topic: Topic) -> broadcast::Receiver<Batch> {
        let channels = self.channels.write();
        let mut channels = channels.unwrap_or_else(PoisonError::into_inner);
        channels.retain(|_, channel| channel.receiver_count() > 0);
        let channel = channels.entry(topic);
        channel
            .or_insert_with(|| broadcast::Sender::new(BACKLOG))
            .subscribe()
    }

    /// Whether anybody watches the topic.
    pub(super) fn is_watched(&self, topic: &Topic) -> bool {
        let channels = self.channels();
        let channel = channels.get(topic);
        channel.is_some_and(|channel| channel.receiver_count() > 0)
    }

    /// Everything up to here has been handed out: a watch with nothing to receive has seen it.
    pub(super) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Hands out one commit. Called by the writer only, in the order of commits.
    pub(super) fn publish(&self, changes: Vec<Committed>, revision: u64) {
        let channels = self.channels();
        let mut by_topic: BTreeMap<Topic, Vec<Committed>> = BTreeMap::new();
        for change in changes {
            for topic in change.key.topics() {
                if channels.contains_key(&topic) {
                    by_topic.entry(topic).or_default().push(change.clone());
                }
            }
        }
        for (topic, batch) in by_topic {
            let bytes: usize = batch.iter().map(|change| change.bytes).sum();
            let is_only_in_log = |change: &Committed| matches!(change.state, State::OnlyInLog);
            let batch = if bytes > LARGE_BATCH || batch.iter().any(is_only_in_log) {
                Batch::default()
            } else {
                batch.into()
            };
            // Fails if nobody watches the topic any more, which is fine.
            let _ = channels[&topic].send(batch);
        }
        self.published.store(revision, Ordering::Release);
    }

    /// Has all watches read the log: there may be changes in it that were never handed out.
    pub(super) fn send_to_log(&self, revision: u64) {
        for channel in self.channels().values() {
            // Fails if nobody watches the topic any more, which is fine.
            let _ = channel.send(Batch::default());
        }
        self.published.store(revision, Ordering::Release);
    }

    fn channels(&self) -> RwLockReadGuard<'_, Channels> {
        let channels = self.channels.read();
        channels.unwrap_or_else(PoisonError::into_inner)
    }
}

//! What happened so far, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// What happened so far, in numbers that only grow.
#[derive(Debug, Default)]
pub struct Counters {
    resyncs: AtomicU64,
    watch_restarts: AtomicU64,
    errors: AtomicU64,
    updates: AtomicU64,
}

impl Counters {
    /// How often all objects of a kind were read.
    pub fn resyncs(&self) -> u64 {
        self.resyncs.load(Ordering::Relaxed)
    }

    /// How often a watch ended and another one had to be made.
    pub fn watch_restarts(&self) -> u64 {
        self.watch_restarts.load(Ordering::Relaxed)
    }

    /// How often the datastore failed to answer, or refused to.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// How many new states of objects were learnt.
    pub fn updates(&self) -> u64 {
        self.updates.load(Ordering::Relaxed)
    }

    pub(crate) fn count_resync(&self) {
        self.resyncs.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_watch_restart(&self) {
        self.watch_restarts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_updates(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.updates.fetch_add(count, Ordering::Relaxed);
    }
}

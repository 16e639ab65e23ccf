//! The work queue: keys that something is to be done for.
//!
//! # Invariants
//! - A key is held by one worker at a time. One that is added meanwhile comes again after [`Queue::done`].
//! - A key that was added comes out at least once afterwards, however often it was added, unless the queue is closed.
//! - Of several delays for one key the shortest counts.

mod rate;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

pub use self::rate::Rate;
pub use tortie_backoff::Backoff;

use self::rate::Bucket;
use crate::metrics::QueueMetrics;

/// What a queue can hold.
pub trait Key: Clone + Eq + Ord + Hash + fmt::Debug + Send + Sync + 'static {}

impl<K: Clone + Eq + Ord + Hash + fmt::Debug + Send + Sync + 'static> Key for K {}

/// How a queue behaves.
#[derive(Clone, Debug)]
pub struct QueueOptions {
    /// Its name in metrics.
    pub name: String,
    /// How long a key waits after each failure.
    pub backoff: Backoff,
    /// How many keys are tried again per second, all together.
    pub rate: Option<Rate>,
}

impl QueueOptions {
    /// Five milliseconds to thirty seconds after failures, and ten retries per second after the first hundred.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            backoff: Backoff::default(),
            rate: Some(Rate::default()),
        }
    }
}

/// A queue of keys. Copies are the same queue.
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: Mutex<State<K>>,
    /// Told when there may be something to take, or an earlier time to wait for.
    changed: Notify,
    metrics: QueueMetrics,
    backoff: Backoff,
}

struct State<K> {
    /// Keys to take, in order, with the time since when.
    ready: VecDeque<(K, Instant)>,
    /// Keys that are in `ready`, or that are to be once their worker is done.
    wanted: HashSet<K>,
    /// Keys that workers hold, and since when.
    held: HashMap<K, Instant>,
    /// Keys that come later, by time.
    later: BTreeSet<(Instant, K)>,
    /// The time of each key in `later`.
    due: HashMap<K, Instant>,
    failures: HashMap<K, u32>,
    bucket: Option<Bucket>,
    is_closed: bool,
}

// === impl Queue ===

impl<K: Key> Queue<K> {
    /// An empty queue whose metrics nobody reads.
    pub fn new(options: QueueOptions) -> Self {
        let QueueOptions {
            name,
            backoff,
            rate,
        } = options;
        Self::with_metrics(backoff, rate, QueueMetrics::detached(&name))
    }

    pub(crate) fn with_metrics(
        backoff: Backoff,
        rate: Option<Rate>,
        metrics: QueueMetrics,
    ) -> Self {
        let state = State {
            ready: VecDeque::new(),
            wanted: HashSet::new(),
            held: HashMap::new(),
            later: BTreeSet::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
            bucket: rate.map(Bucket::new),
            is_closed: false,
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                changed: Notify::new(),
                metrics,
                backoff,
            }),
        }
    }

    /// Adds a key, unless it waits to be taken already.
    pub fn add(&self, key: K) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        if self.shared.want(&mut state, key) {
            drop(state);
            self.shared.changed.notify_one();
        }
    }

    /// Adds a key after a while.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let at = Instant::now() + delay;
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        match state.due.get(&key) {
            Some(&earlier) if earlier <= at => return,
            Some(&later) => {
                state.later.remove(&(later, key.clone()));
            }
            None => {}
        }
        state.due.insert(key.clone(), at);
        let is_first = state.later.first().is_none_or(|(first, _)| at < *first);
        state.later.insert((at, key));
        drop(state);
        if is_first {
            // Everyone who waits for a later time has to wait for this one.
            self.shared.changed.notify_waiters();
            self.shared.changed.notify_one();
        }
    }

    /// Adds a key that failed, after a delay that grows with its failures and respects the rate.
    pub fn retry(&self, key: K) {
        let mut state = self.lock();
        let failures = state.failures.entry(key.clone()).or_default();
        let mut delay = self.shared.backoff.after(*failures);
        *failures = failures.saturating_add(1);
        if let Some(bucket) = &mut state.bucket {
            delay = delay.max(bucket.reserve(Instant::now()));
        }
        drop(state);
        self.shared.metrics.retries.inc();
        self.add_after(key, delay);
    }

    /// Forgets a key's failures.
    pub fn forget(&self, key: &K) {
        self.lock().failures.remove(key);
    }

    /// How often a key was tried again since it was last forgotten.
    pub fn retries(&self, key: &K) -> u32 {
        self.lock().failures.get(key).copied().unwrap_or_default()
    }

    /// Waits for a key, which is the caller's until [`Queue::done`]. Nothing once the queue is closed.
    ///
    /// Dropping the future loses no key.
    pub async fn next(&self) -> Option<K> {
        loop {
            // Before looking, so that nothing that happens in between is missed.
            let changed = self.shared.changed.notified();
            let next_time = {
                let mut state = self.lock();
                if state.is_closed {
                    return None;
                }
                self.shared.move_due(&mut state, Instant::now());
                if let Some(key) = self.shared.take(&mut state) {
                    let is_more = !state.ready.is_empty();
                    drop(state);
                    if is_more {
                        // Several became ready at once, and one sleeper woke: it calls the next.
                        self.shared.changed.notify_one();
                    }
                    return Some(key);
                }
                state.later.first().map(|(at, _)| *at)
            };
            match next_time {
                None => changed.await,
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }

    /// Gives a key back that [`Queue::next`] gave.
    pub fn done(&self, key: &K) {
        let mut state = self.lock();
        let Some(since) = state.held.remove(key) else {
            return;
        };
        let metrics = &self.shared.metrics;
        metrics.work_duration.observe(since.elapsed().as_secs_f64());
        if state.wanted.contains(key) {
            state.ready.push_back((key.clone(), Instant::now()));
            metrics.set_depth(state.ready.len());
            drop(state);
            self.shared.changed.notify_one();
        }
    }

    /// Ends the queue: what waits is dropped, and everyone who waits gets nothing.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.ready = VecDeque::new();
        state.wanted = HashSet::new();
        state.later = BTreeSet::new();
        state.due = HashMap::new();
        self.shared.metrics.set_depth(0);
        drop(state);
        self.shared.changed.notify_waiters();
    }

    /// How many keys could be taken now.
    pub fn len(&self) -> usize {
        self.lock().ready.len()
    }

    /// Whether no key could be taken now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Brings the metrics of work under way up to date.
    pub(crate) fn measure(&self) {
        let state = self.lock();
        let ages = state
            .held
            .values()
            .map(|since| since.elapsed().as_secs_f64());
        let (longest, sum) = ages.fold((0.0_f64, 0.0), |(most, sum), age| {
            (most.max(age), sum + age)
        });
        self.shared.metrics.longest.set(longest);
        self.shared.metrics.unfinished.set(sum);
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.shared.lock()
    }
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Key> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

// === impl Shared ===

impl<K: Key> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a worker can take the key now that could not before.
    fn want(&self, state: &mut State<K>, key: K) -> bool {
        if !state.wanted.insert(key.clone()) {
            return false;
        }
        self.metrics.adds.inc();
        if state.held.contains_key(&key) {
            return false;
        }
        state.ready.push_back((key, Instant::now()));
        self.metrics.set_depth(state.ready.len());
        true
    }

    fn move_due(&self, state: &mut State<K>, now: Instant) {
        while state.later.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = state.later.pop_first() {
                state.due.remove(&key);
                self.want(state, key);
            }
        }
    }

    fn take(&self, state: &mut State<K>) -> Option<K> {
        let (key, since) = state.ready.pop_front()?;
        if state.ready.is_empty() && state.ready.capacity() > 1024 {
            state.ready.shrink_to_fit();
        }
        state.wanted.remove(&key);
        if state.wanted.is_empty() && state.wanted.capacity() > 1024 {
            state.wanted.shrink_to_fit();
        }
        state.held.insert(key.clone(), Instant::now());
        self.metrics.set_depth(state.ready.len());
        self.metrics
            .queue_duration
            .observe(since.elapsed().as_secs_f64());
        Some(key)
    }
}

#[cfg(test)]
mod tests;

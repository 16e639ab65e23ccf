//! Where all followers leave what is new, and the consumer takes all of it at once.
//!
//! One state per object waits, the newest. An object that came and went before the consumer heard of it does not wait at
//! all, so that what waits is bounded by the objects there are and those that the consumer knows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::keeper::Keeper;
use crate::known::Known;
use crate::object::{Delta, Name, State};
use crate::source::Change;
use crate::status::Status;

/// Called when something begins to wait for the consumer. It must not block.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct Mailbox<V> {
    waiting: Mutex<Waiting<V>>,
    filled: Condvar,
    notify: Notify,
    wake: Option<Wake>,
}

/// What changed since the batch before, at least one object, the status or a refusal.
#[derive(Debug)]
pub struct Batch<V> {
    /// The status that holds after the changes.
    pub status: Status,
    /// Topics that the datastore does not let us read although it answers, each with the verb and the cause. What was told
    /// of them stays.
    pub refusals: Vec<String>,
    /// The objects, in the order in which they first changed.
    pub objects: Vec<Changed<V>>,
}

/// The newest state of an object.
#[derive(Debug)]
pub struct Changed<V> {
    /// The number of its topic.
    pub topic: usize,
    pub name: Name,
    /// Whether the consumer was told before that it exists.
    pub is_told: bool,
    pub state: State<V>,
}

/// The place of one follower in a mailbox.
pub(crate) struct Slot<V> {
    mailbox: Arc<Mailbox<V>>,
    /// Its number among the followers.
    topic: usize,
    known: Known,
}

struct Waiting<V> {
    objects: HashMap<(usize, Name), Newest<V>>,
    /// Counts the objects that waited.
    arrivals: u64,
    /// The status of each follower.
    statuses: Vec<Status>,
    /// The status that the consumer was told last.
    told: Status,
    /// What keeps each follower from reading.
    refusals: Vec<Option<String>>,
    /// Whether the consumer knows them.
    are_refusals_told: bool,
}

struct Newest<V> {
    arrival: u64,
    /// Whether the consumer has been told that it exists.
    is_told: bool,
    state: State<V>,
}

// === impl Mailbox ===

impl<V> Mailbox<V> {
    /// A mailbox for so many followers, none of which is in sync.
    pub(crate) fn new(followers: usize, wake: Option<Wake>) -> Self {
        Self {
            waiting: Mutex::new(Waiting {
                objects: HashMap::new(),
                arrivals: 0,
                statuses: vec![Status::default(); followers],
                told: Status::default(),
                refusals: vec![None; followers],
                are_refusals_told: true,
            }),
            filled: Condvar::new(),
            notify: Notify::new(),
            wake,
        }
    }

    /// Leaves what a follower has learnt, and the status that it has afterwards.
    pub(crate) fn post(&self, topic: usize, deltas: Vec<Delta<V>>, status: Status) {
        self.fill(|waiting| {
            waiting.objects.reserve(deltas.len());
            for delta in deltas {
                waiting.add(topic, delta);
            }
            if let Some(part) = waiting.statuses.get_mut(topic) {
                *part = status;
            }
        });
    }

    /// Leaves what keeps a follower from reading; nothing once it can.
    pub(crate) fn post_refusal(&self, topic: usize, refusal: Option<String>) {
        self.fill(|waiting| {
            if let Some(known) = waiting.refusals.get_mut(topic)
                && *known != refusal
            {
                *known = refusal;
                waiting.are_refusals_told = false;
            }
        });
    }

    /// Changes what waits, and wakes the consumer if there was nothing before.
    fn fill(&self, change: impl FnOnce(&mut Waiting<V>)) {
        let mut waiting = self.lock();
        let was_empty = waiting.is_empty();
        change(&mut waiting);
        let is_filled = was_empty && !waiting.is_empty();
        drop(waiting);
        if is_filled {
            self.filled.notify_one();
            self.notify.notify_one();
            if let Some(wake) = &self.wake {
                wake();
            }
        }
    }

    /// Takes all that waits; nothing if nothing does.
    pub(crate) fn take(&self) -> Option<Batch<V>> {
        self.lock().take()
    }

    /// Waits until there is something, and takes it.
    pub(crate) async fn receive(&self) -> Batch<V> {
        loop {
            if let Some(taken) = self.take() {
                return taken;
            }
            self.notify.notified().await;
        }
    }

    /// Waits until there is something, and leaves it there.
    pub(crate) async fn filled(&self) {
        loop {
            let notified = self.notify.notified();
            if !self.lock().is_empty() {
                return;
            }
            notified.await;
        }
    }

    /// Like [`Mailbox::receive`], on a thread that may block, and only for so long.
    pub(crate) fn receive_timeout(&self, timeout: Duration) -> Option<Batch<V>> {
        let start = Instant::now();
        let mut waiting = self.lock();
        loop {
            if let Some(taken) = waiting.take() {
                return Some(taken);
            }
            let left = timeout.checked_sub(start.elapsed())?;
            let waited = self.filled.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<V>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Slot ===

impl<V> Slot<V> {
    pub(crate) fn new(mailbox: Arc<Mailbox<V>>, topic: usize) -> Self {
        Self {
            mailbox,
            topic,
            known: Known::default(),
        }
    }

    fn post(&self, deltas: Vec<Delta<V>>, status: Status) -> usize {
        let count = deltas.len();
        self.mailbox.post(self.topic, deltas, status);
        count
    }
}

#[async_trait]
impl<V: Send + 'static> Keeper<V> for Slot<V> {
    fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    fn has(&self, name: &Name) -> bool {
        self.known.has(name)
    }

    async fn take(&mut self, changes: Vec<Change<V>>, status: Status) -> usize {
        let known = &mut self.known;
        let deltas = changes.into_iter().filter_map(|change| match change {
            Change::Set(item) => known.set(item),
            Change::Remove(name) => known.remove(name),
        });
        let deltas = deltas.collect();
        self.post(deltas, status)
    }

    fn begin_list(&mut self) {
        self.known.begin();
    }

    async fn end_list(&mut self) -> usize {
        let gone = self.known.end();
        self.post(gone, Status::InSync)
    }

    async fn in_contact(&mut self) {
        self.mailbox.post_refusal(self.topic, None);
    }

    async fn lose_contact(&mut self, refusal: Option<String>) {
        if refusal.is_some() {
            self.mailbox.post_refusal(self.topic, refusal);
        }
    }
}

// === impl Waiting ===

impl<V> Waiting<V> {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.status() == self.told && self.are_refusals_told
    }

    fn status(&self) -> Status {
        Status::merged(&self.statuses)
    }

    fn add(&mut self, topic: usize, delta: Delta<V>) {
        let Delta {
            name,
            is_new,
            state,
        } = delta;
        match self.objects.entry((topic, name)) {
            Entry::Occupied(entry) if !entry.get().is_told && matches!(state, State::Absent) => {
                entry.remove();
            }
            Entry::Occupied(mut entry) => entry.get_mut().state = state,
            Entry::Vacant(entry) => {
                entry.insert(Newest {
                    arrival: self.arrivals,
                    is_told: !is_new,
                    state,
                });
                self.arrivals += 1;
            }
        }
    }

    fn take(&mut self) -> Option<Batch<V>> {
        if self.is_empty() {
            return None;
        }
        self.told = self.status();
        self.are_refusals_told = true;
        let mut objects: Vec<_> = std::mem::take(&mut self.objects).into_iter().collect();
        objects.sort_unstable_by_key(|(_, newest)| newest.arrival);
        let objects = objects.into_iter().map(|((topic, name), newest)| Changed {
            topic,
            name,
            is_told: newest.is_told,
            state: newest.state,
        });
        Some(Batch {
            status: self.told,
            refusals: self.refusals.iter().flatten().cloned().collect(),
            objects: objects.collect(),
        })
    }
}

#[cfg(test)]
mod tests;

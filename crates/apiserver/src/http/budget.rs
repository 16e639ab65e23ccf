//! How much memory requests hold at a time, and whose: what Kubernetes calls priority and fairness, counted in bytes.
//!
//! A request takes its width of the budget before it holds anything: for the body that is to be read, for the object that is
//! stored, for the next piece of a list; and keeps as much as its answer has until the client has taken that. Who finds no
//! room waits for a while. Of those who wait, that user is next who holds the least. Nobody holds more than half of it, unless
//! one request alone needs more; and some is kept for administrators, who may have to repair what fills the rest. Narrow
//! requests, which most are, do not wait for wide ones: some is kept for them. What is wider than all that is left is carried
//! out alone among the wide ones. Questions about health need nothing.

use std::collections::{HashMap, VecDeque};
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout};

use super::metrics::FlowControl;
use crate::access::User;
use crate::failure::{Failure, Reason, Result};

/// How many bytes requests hold at a time unless told otherwise.
pub const DEFAULT_MEMORY: usize = 256 << 20;

/// How long a request waits for its turn, as in Kubernetes.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// After how many seconds a client whose turn did not come should come back.
const RETRY_AFTER: u32 = 1;

/// What every request takes at least.
pub(super) const LEAST: usize = 16 << 10;

/// What requests may hold.
pub(super) struct Budget {
    total: usize,
    /// Of that, for administrators, and as much for narrow requests.
    kept: usize,
    /// What is narrow.
    narrow: usize,
    /// For those who read pieces of lists: more at a time than there are processors make nothing faster, and each of them
    /// has pages of the file in memory.
    pub(super) reading: Semaphore,
    state: Mutex<State>,
    metrics: FlowControl,
}

#[derive(Default)]
struct State {
    held: usize,
    /// Of that, by wide requests.
    held_wide: usize,
    /// By the names of users who hold anything.
    by_user: HashMap<Arc<str>, usize>,
    /// In the order in which they came.
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    client: Client,
    width: Width,
    granted: oneshot::Sender<Share>,
}

/// Whose requests are counted together.
#[derive(Debug, Clone)]
pub(super) struct Client {
    name: Arc<str>,
    is_administrator: bool,
}

/// What a request needs.
#[derive(Debug, Clone, Copy)]
struct Width {
    bytes: usize,
    is_wide: bool,
}

/// What a request holds, free again when this is dropped.
pub(super) struct Share {
    budget: Arc<Budget>,
    client: Client,
    width: Width,
}

impl From<&User> for Client {
    fn from(user: &User) -> Self {
        Self {
            name: user.name.as_str().into(),
            is_administrator: user.is_administrator(),
        }
    }
}

impl Budget {
    pub(super) fn new(total: usize, metrics: FlowControl) -> Arc<Self> {
        metrics.limit.set(i64::try_from(total).unwrap_or(i64::MAX));
        Arc::new(Self {
            total,
            kept: total / 8,
            narrow: LEAST.max(total / 1024),
            reading: Semaphore::new(available_parallelism().map_or(2, NonZero::get).max(2)),
            state: Mutex::default(),
            metrics,
        })
    }

    /// Waits until so many bytes can be held, or gives the failure that says when to come back.
    pub(super) async fn take(
        self: &Arc<Self>,
        client: &Client,
        bytes: usize,
        patience: Duration,
    ) -> Result<Share> {
        let start = Instant::now();
        let width = self.width(client, bytes);
        let (granted, turn) = oneshot::channel();
        {
            let mut state = self.state();
            state.waiting.push_back(Waiting {
                client: client.clone(),
                width,
                granted,
            });
            self.serve(&mut state);
        }
        // Whoever is granted something in the moment in which it gives up has it returned by the drop.
        let share = timeout(patience, turn).await;
        self.metrics.waited.observe(start.elapsed().as_secs_f64());
        if let Ok(Ok(share)) = share {
            return Ok(share);
        }
        let mut state = self.state();
        state.waiting.retain(|waiting| !waiting.granted.is_closed());
        self.metrics.waiting.set(count(state.waiting.len()));
        self.metrics.rejected.inc();
        let own = state.by_user.get(&client.name).copied().unwrap_or_default();
        let message = format!(
            "too many requests: they hold {} MiB, {} of them those of user {:?}, and this one needs {}; come back in {RETRY_AFTER} s",
            state.held >> 20,
            own >> 20,
            client.name,
            width.bytes >> 20
        );
        let mut failure = Failure::new(Reason::TooManyRequests, message);
        failure.details.retry_after = Some(RETRY_AFTER);
        Err(failure)
    }

    /// What all requests may hold together where this one is of a client.
    fn most(&self, client: &Client) -> usize {
        if client.is_administrator {
            self.total
        } else {
            self.total - self.kept
        }
    }

    fn width(&self, client: &Client, bytes: usize) -> Width {
        let bytes = bytes.max(LEAST).min(self.most(client) - self.kept);
        let is_wide = bytes > self.narrow;
        Width { bytes, is_wide }
    }

    fn has_room(&self, state: &State, client: &Client, width: Width) -> bool {
        let most = self.most(client);
        let is_narrow_enough = !width.is_wide || state.held_wide + width.bytes <= most - self.kept;
        is_narrow_enough && state.held + width.bytes <= most
    }

    /// Grants what can be granted. Whoever is next and finds no room is not overtaken, but by narrow requests and by
    /// administrators.
    fn serve(self: &Arc<Self>, state: &mut State) {
        state.waiting.retain(|waiting| !waiting.granted.is_closed());
        for (is_wide, is_administrator) in
            [(false, true), (false, false), (true, true), (true, false)]
        {
            while let Some(next) = self.next(state, is_wide, is_administrator) {
                let Waiting { client, width, .. } = &state.waiting[next];
                if !self.has_room(state, client, *width) {
                    break;
                }
                let Some(Waiting {
                    client,
                    width,
                    granted,
                }) = state.waiting.remove(next)
                else {
                    break;
                };
                state.add(&client.name, width);
                let share = Share {
                    budget: Arc::clone(self),
                    client,
                    width,
                };
                if let Err(mut share) = granted.send(share) {
                    // Its drop would wait for the lock that is held here.
                    state.remove(&share.client.name, width);
                    share.width.bytes = 0;
                }
            }
        }
        self.metrics.waiting.set(count(state.waiting.len()));
        self.metrics.held.set(count(state.held));
    }

    /// The place of who is next of a class: of those who hold the least, whoever came first. Who would hold more than half
    /// is not among them.
    fn next(&self, state: &State, is_wide: bool, is_administrator: bool) -> Option<usize> {
        let half = (self.total - self.kept) / 2;
        let held = |client: &Client| state.by_user.get(&client.name).copied().unwrap_or_default();
        let all = state.waiting.iter().enumerate();
        let candidates = all.filter(|(_, Waiting { client, width, .. })| {
            let own = held(client);
            width.is_wide == is_wide
                && client.is_administrator == is_administrator
                && (is_administrator || own == 0 || own + width.bytes <= half)
        });
        let next = candidates.min_by_key(|(place, waiting)| (held(&waiting.client), *place));
        next.map(|(place, _)| place)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, name: &Arc<str>, width: Width) {
        self.held += width.bytes;
        if width.is_wide {
            self.held_wide += width.bytes;
        }
        *self.by_user.entry(Arc::clone(name)).or_default() += width.bytes;
    }

    fn remove(&mut self, name: &Arc<str>, width: Width) {
        self.held -= width.bytes;
        if width.is_wide {
            self.held_wide -= width.bytes;
        }
        if let Some(own) = self.by_user.get_mut(name) {
            *own -= width.bytes;
            if *own == 0 {
                self.by_user.remove(name);
            }
        }
    }
}

impl Share {
    /// Gives back what is not needed any more.
    fn shrink(&mut self, bytes: usize) {
        if bytes < self.width.bytes {
            let surplus = Width {
                bytes: self.width.bytes - bytes,
                ..self.width
            };
            let mut state = self.budget.state();
            state.remove(&self.client.name, surplus);
            self.width.bytes = bytes;
            self.budget.serve(&mut state);
        }
    }

    /// Bytes that are counted until the last who has any of them drops them.
    pub(super) fn cover(mut self, texts: Vec<Bytes>) -> Vec<Bytes> {
        struct Covered {
            text: Bytes,
            _share: Arc<Share>,
        }
        impl AsRef<[u8]> for Covered {
            fn as_ref(&self) -> &[u8] {
                &self.text
            }
        }
        self.shrink(texts.iter().map(Bytes::len).sum());
        let share = Arc::new(self);
        let covered = texts.into_iter().map(|text| {
            Bytes::from_owner(Covered {
                text,
                _share: Arc::clone(&share),
            })
        });
        covered.collect()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.width.bytes > 0 {
            let mut state = self.budget.state();
            state.remove(&self.client.name, self.width);
            self.budget.serve(&mut state);
        }
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn budget() -> Arc<Budget> {
        Budget::new(80 * MIB, FlowControl::default())
    }

    fn client(name: &str) -> Client {
        Client {
            name: name.into(),
            is_administrator: name == "root",
        }
    }

    async fn take(budget: &Arc<Budget>, name: &str, mib: usize) -> Result<Share> {
        let budget = Arc::clone(budget);
        let client = client(name);
        budget.take(&client, mib * MIB, PATIENCE).await
    }

    /// Those who have been granted something, in this order, when all that can happen has happened.
    async fn settle() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_room_is_told_when_to_come_back() {
        let budget = budget();
        let first = take(&budget, "ann", 30).await.unwrap();
        let refused = take(&budget, "ann", 10).await.err().unwrap();
        assert_eq!(refused.reason, Reason::TooManyRequests);
        assert_eq!(refused.details.retry_after, Some(1));
        assert_eq!(
            refused.message,
            "too many requests: they hold 30 MiB, 30 of them those of user \"ann\", and this one needs 10; come back in 1 s"
        );
        let other = take(&budget, "bob", 25).await.unwrap();
        assert!(take(&budget, "cleo", 10).await.is_err());
        drop(first);
        assert!(take(&budget, "cleo", 10).await.is_ok());
        drop(other);
        let state = budget.state();
        assert!(state.by_user.is_empty() && state.waiting.is_empty());
        assert_eq!(state.held, 0);
        assert_eq!(budget.metrics.rejected.get(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_holds_the_least_is_next_and_is_not_overtaken() {
        let budget = budget();
        let ann = take(&budget, "ann", 20).await.unwrap();
        let bob = take(&budget, "bob", 40).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for (name, mib) in [("ann", 12), ("cleo", 34), ("ann", 1), ("dan", 10)] {
            let (budget, order) = (Arc::clone(&budget), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                let share = take(&budget, name, mib).await.unwrap();
                order.lock().unwrap().push((name, mib));
                share
            }));
            settle().await;
        }
        // There would be room for ann, but cleo has nothing yet.
        assert_eq!(*order.lock().unwrap(), []);
        drop(bob);
        settle().await;
        assert_eq!(*order.lock().unwrap(), [("cleo", 34)]);
        drop(ann);
        settle().await;
        assert_eq!(
            *order.lock().unwrap(),
            [("cleo", 34), ("ann", 12), ("dan", 10), ("ann", 1)]
        );
        for waiting in waiting {
            waiting.await.unwrap();
        }
        assert_eq!(budget.state().held, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn administrators_find_room_that_others_do_not() {
        let budget = budget();
        let _all = [
            take(&budget, "ann", 35).await.unwrap(),
            take(&budget, "bob", 25).await.unwrap(),
        ];
        assert!(take(&budget, "cleo", 1).await.is_err());
        let _kept = take(&budget, "root", 10).await.unwrap();
        assert!(take(&budget, "root", 1).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn narrow_requests_do_not_wait_for_wide_ones() {
        let budget = budget();
        let _wide = take(&budget, "ann", 60).await.unwrap();
        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { take(&budget, "bob", 60).await.is_err() }
        });
        settle().await;
        let narrow: Vec<_> =
            futures::future::join_all((0..640).map(|_| take(&budget, "bob", 0))).await;
        assert!(narrow.iter().all(Result::is_ok));
        assert!(!waiting.is_finished());
        assert!(take(&budget, "bob", 0).await.is_err());
        assert!(take(&budget, "root", 0).await.is_ok());
        assert!(waiting.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_wider_than_all_is_carried_out_alone() {
        let budget = budget();
        for name in ["ann", "root"] {
            let small = take(&budget, "bob", 1).await.unwrap();
            assert!(take(&budget, name, 1000).await.is_err());
            drop(small);
            let alone = take(&budget, name, 1000).await.unwrap();
            assert!(take(&budget, "bob", 1).await.is_err());
            assert!(take(&budget, "root", 0).await.is_ok());
            drop(alone);
        }
        assert_eq!(budget.state().held, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_counted_until_it_is_taken() {
        let budget = budget();
        let share = take(&budget, "ann", 30).await.unwrap();
        let mut answer = share.cover(vec![vec![0; MIB].into(), vec![0; 2 * MIB].into()]);
        assert_eq!(budget.state().held, 3 * MIB);
        let rest = answer.pop().unwrap().slice(MIB..);
        drop(answer);
        assert_eq!(budget.state().held, 3 * MIB);
        drop(rest);
        assert_eq!(budget.state().held, 0);
    }

    /// Whoever leaves while it waits leaves nothing behind.
    #[tokio::test(start_paused = true)]
    async fn who_leaves_makes_way() {
        let budget = budget();
        let all = take(&budget, "root", 80).await.unwrap();
        let leaving = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { take(&budget, "root", 80).await.map(drop) }
        });
        settle().await;
        leaving.abort();
        assert!(leaving.await.is_err());
        drop(all);
        let _again = take(&budget, "root", 80).await.unwrap();
        assert_eq!(budget.state().held, 70 * MIB);
    }
}

//! The permission to act as leader, which ends by itself.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

/// A deadline that never comes.
const FOREVER: u64 = u64::MAX;

/// The permission to act as leader. Copies are the same permission.
///
/// It holds until a deadline that each renewal moves. The clock counts also while the machine sleeps, and does not care
/// about the time of day: a process that was stopped for a while finds its permission gone when it continues.
#[derive(Clone)]
pub struct Leadership {
    /// Nanoseconds since the machine's start; 0 once it was lost.
    deadline: Arc<AtomicU64>,
    /// Tells of each new deadline, and of the loss.
    changes: watch::Sender<()>,
}

/// Leadership was lost before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("leadership was lost")]
pub struct LeadershipLost;

impl Leadership {
    /// Of a process that needs no lease.
    pub fn unconditional() -> Self {
        Self::until(FOREVER)
    }

    pub(crate) fn until(deadline: u64) -> Self {
        Self {
            deadline: Arc::new(AtomicU64::new(deadline)),
            changes: watch::Sender::new(()),
        }
    }

    /// Whether this process may act now.
    pub fn is_held(&self) -> bool {
        let deadline = self.deadline.load(Ordering::Acquire);
        deadline == FOREVER || now() < deadline
    }

    /// For how long this process may act if nothing is renewed.
    pub fn remaining(&self) -> Duration {
        match self.deadline.load(Ordering::Acquire) {
            FOREVER => Duration::MAX,
            deadline => Duration::from_nanos(deadline.saturating_sub(now())),
        }
    }

    /// Waits until leadership is lost.
    pub async fn lost(&self) {
        let mut changes = self.changes.subscribe();
        while self.is_held() {
            let remaining = self.remaining().min(Duration::from_hours(1));
            // The sender lives as long as `self`.
            let _ = tokio::time::timeout(remaining, changes.changed()).await;
        }
    }

    /// Runs a future as long as leadership is held, which is checked before each step of it.
    pub async fn guard<F: Future>(&self, future: F) -> Result<F::Output, LeadershipLost> {
        let guarded = Guarded {
            leadership: self,
            future: Box::pin(future),
        };
        tokio::select! {
            biased;
            () = self.lost() => Err(LeadershipLost),
            result = guarded => result,
        }
    }

    /// Moves the deadline, unless leadership was lost before.
    pub(crate) fn extend(&self, deadline: u64) -> Result<(), LeadershipLost> {
        let moved = self
            .deadline
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |before| {
                (now() < before).then_some(before.max(deadline))
            });
        self.changes.send_replace(());
        moved.map(drop).map_err(|_| LeadershipLost)
    }

    pub(crate) fn give_up(&self) {
        self.deadline.store(0, Ordering::Release);
        self.changes.send_replace(());
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("remaining", &self.remaining())
            .finish()
    }
}

struct Guarded<'a, F> {
    leadership: &'a Leadership,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Guarded<'_, F> {
    type Output = Result<F::Output, LeadershipLost>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.leadership.is_held() {
            return Poll::Ready(Err(LeadershipLost));
        }
        self.future.as_mut().poll(context).map(Ok)
    }
}

/// Nanoseconds since the machine's start, with the time that it slept.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// A moment as long after another.
pub(crate) fn after(moment: u64, duration: Duration) -> u64 {
    moment.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2))
}

//! What is kept for a while, and then forgotten though nobody asks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// Things that are kept equally long, oldest first.
pub(super) struct Expiring<T> {
    lifetime: Duration,
    state: Arc<Mutex<State<T>>>,
}

struct State<T> {
    items: VecDeque<(Instant, T)>,
    /// Whether somebody will come to forget them.
    is_timed: bool,
}

impl<T: Send + 'static> Expiring<T> {
    pub(super) fn new(lifetime: Duration) -> Self {
        let state = State {
            items: VecDeque::new(),
            is_timed: false,
        };
        Self {
            lifetime,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Does something with those whose time is not over.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut VecDeque<(Instant, T)>) -> R) -> R {
        let mut state = lock(&self.state);
        state.forget(Instant::now());
        act(&mut state.items)
    }

    /// Keeps one more.
    pub(super) fn push(&self, item: T) {
        let mut state = lock(&self.state);
        state.forget(Instant::now());
        state
            .items
            .push_back((Instant::now() + self.lifetime, item));
        if !state.is_timed
            && let Ok(runtime) = Handle::try_current()
        {
            state.is_timed = true;
            runtime.spawn(forget_in_time(Arc::downgrade(&self.state)));
        }
    }

    #[cfg(test)]
    pub(super) fn forget(&self, now: Instant) {
        lock(&self.state).forget(now);
    }
}

impl<T> State<T> {
    fn forget(&mut self, now: Instant) {
        while self.items.front().is_some_and(|(end, _)| *end <= now) {
            self.items.pop_front();
        }
    }
}

async fn forget_in_time<T>(state: Weak<Mutex<State<T>>>) {
    loop {
        let next = {
            let Some(state) = state.upgrade() else { return };
            let mut state = lock(&state);
            state.forget(Instant::now());
            let Some((end, _)) = state.items.front() else {
                state.is_timed = false;
                return;
            };
            *end
        };
        tokio::time::sleep_until(next.into()).await;
    }
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn things_are_forgotten_though_nobody_asks() {
        let kept = Expiring::new(Duration::from_millis(20));
        for _ in 0..2 {
            let thing = Arc::new(());
            kept.push(Arc::clone(&thing));
            assert_eq!(Arc::strong_count(&thing), 2);
            while Arc::strong_count(&thing) > 1 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        let thing = Arc::new(());
        kept.push(Arc::clone(&thing));
        kept.with(|items| assert_eq!(items.len(), 1));
    }
}

//! How long to wait, and for what.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// How long to wait, and for what. None of it delays a change while the datastore answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    /// Before the first retry; it doubles with each further one. A random part of up to a half is left out, so that the
    /// nodes of a cluster do not come back all at once.
    pub first_retry: Duration,
    /// The longest wait between two tries.
    pub longest_retry: Duration,
    /// The shortest time from one reading of all objects of a kind to the next.
    pub between_resyncs: Duration,
    /// How often a kind that cannot be watched is read.
    pub poll: Duration,
    /// How often to look for a kind that the datastore does not know.
    pub missing_kind: Duration,
    /// How long after a list that has none of the objects that were known a second one is asked whether that is so.
    pub second_list: Duration,
    /// How long without contact until the status says so.
    pub contact_lost: Duration,
}

/// The waits of one task.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first_retry: Duration::from_millis(200),
            longest_retry: Duration::from_secs(4),
            between_resyncs: Duration::from_millis(500),
            poll: Duration::from_secs(5),
            missing_kind: Duration::from_secs(30),
            second_list: Duration::from_secs(1),
            contact_lost: Duration::from_mins(10),
        }
    }
}

impl Backoff {
    pub(crate) fn new(pace: &Pace) -> Self {
        Self {
            first: pace.first_retry,
            longest: pace.longest_retry,
            failures: 0,
        }
    }

    /// It works again: the next wait is short.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The wait before the next try.
    pub(crate) fn next(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        let full = doubled.min(self.longest);
        // A fresh hasher has random keys.
        let random = RandomState::new().hash_one(0) % 1000;
        full / 2 + (full / 2000).saturating_mul(u32::try_from(random).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_start_over() {
        let pace = Pace::default();
        let mut backoff = Backoff::new(&pace);
        for failures in 0..100 {
            let full = pace
                .first_retry
                .saturating_mul(1 << failures.min(16))
                .min(pace.longest_retry);
            let wait = backoff.next();
            assert!(
                (full / 2..=full).contains(&wait),
                "wait {failures}: {wait:?}"
            );
        }
        backoff.reset();
        assert!(backoff.next() <= pace.first_retry);
    }
}

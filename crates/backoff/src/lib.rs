//! How long to wait before something that failed is tried again.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Doublings after which any delay has reached its limit.
const MOST_DOUBLINGS: u32 = 40;

/// Delays that double with each failure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// The longest.
    pub most: Duration,
    /// Up to which part of a delay is left out, at random, so that what failed together is not tried together.
    pub jitter: f64,
}

/// The delays of something that is tried until it succeeds.
#[derive(Debug, Clone)]
pub struct Retries {
    backoff: Backoff,
    failures: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(5),
            most: Duration::from_secs(30),
            jitter: 0.1,
        }
    }
}

impl Backoff {
    /// The delay after so many failures before this one.
    pub fn after(&self, failures: u32) -> Duration {
        self.drawn(failures, random())
    }

    /// The same, with a number from 0 to 1 that says how much is left out.
    fn drawn(&self, failures: u32, random: f64) -> Duration {
        let factor = 2_f64.powi(failures.min(MOST_DOUBLINGS).cast_signed());
        let grown = (self.first.as_secs_f64() * factor).min(self.most.as_secs_f64());
        let kept = 1.0 - self.jitter.clamp(0.0, 1.0) * random;
        Duration::try_from_secs_f64(grown * kept).map_or(self.most, |delay| delay.min(self.most))
    }
}

impl Retries {
    /// Nothing has failed yet.
    pub fn new(backoff: Backoff) -> Self {
        let failures = 0;
        Self { backoff, failures }
    }

    /// It works again: the next delay is the first.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// It failed: how long to wait before the next try.
    pub fn failed(&mut self) -> Duration {
        let delay = self.backoff.after(self.failures);
        self.failures = self.failures.saturating_add(1);
        delay
    }
}

/// A number from 0 to 1, different each time; good enough to spread load.
fn random() -> f64 {
    // A fresh hasher has random keys.
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a float holds")]
    let part = bits as f64 / (1_u64 << 53) as f64;
    part
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn delays_grow_to_their_limit(first in 1..1000_u64, most in 1..100_000_u64, jitter in 0.0..1.0_f64, failures in 0..2000_u32) {
            let backoff = Backoff {
                first: Duration::from_millis(first),
                most: Duration::from_millis(most),
                jitter,
            };
            let plain = Backoff { jitter: 0.0, ..backoff };
            prop_assert!(plain.after(failures) <= plain.after(failures + 1));
            prop_assert_eq!(plain.after(2000), plain.most);
            let full = plain.after(failures);
            let drawn = backoff.after(failures);
            prop_assert!(drawn <= full);
            prop_assert!(drawn.as_secs_f64() >= full.as_secs_f64() * (1.0 - jitter) - 1e-6);
        }
    }

    #[test]
    fn at_the_limit_delays_still_differ() {
        let backoff = Backoff {
            jitter: 0.5,
            ..Backoff::default()
        };
        let delays = [0.0, 0.5, 1.0].map(|random| backoff.drawn(100, random).as_secs());
        assert_eq!(delays, [30, 22, 15]);
    }

    #[test]
    fn a_success_starts_over() {
        let plain = Backoff {
            jitter: 0.0,
            ..Backoff::default()
        };
        let mut retries = Retries::new(plain);
        let mut next = || retries.failed().as_millis();
        assert_eq!([next(), next(), next()], [5, 10, 20]);
        retries.reset();
        assert_eq!(retries.failed().as_millis(), 5);
    }
}

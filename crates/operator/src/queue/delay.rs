//! How long a key waits before it is tried again.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::time::Instant;

/// Doublings after which any delay has reached its limit.
const MOST_DOUBLINGS: u32 = 40;

/// Delays that double with each failure of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// The longest.
    pub most: Duration,
    /// By which part a delay may differ from its value, so that what failed together is not tried together.
    pub jitter: f64,
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
    /// The delay after so many failures before this one. Never above `most`.
    pub fn after(&self, failures: u32) -> Duration {
        let factor = 2_f64.powi(failures.min(MOST_DOUBLINGS).cast_signed());
        let grown = (self.first.as_secs_f64() * factor).min(self.most.as_secs_f64());
        let spread = 1.0 + self.jitter.clamp(0.0, 1.0) * (2.0 * random() - 1.0);
        Duration::try_from_secs_f64(grown * spread).map_or(self.most, |delay| delay.min(self.most))
    }
}

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// In the long run.
    pub per_second: f64,
    /// At once, after a pause.
    pub burst: u32,
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            per_second: 10.0,
            burst: 100,
        }
    }
}

/// Tokens that come at a rate. It can be in debt: whoever reserves then waits until that is paid.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: Rate,
    tokens: f64,
    at: Option<Instant>,
}

impl Bucket {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate,
            tokens: f64::from(rate.burst),
            at: None,
        }
    }

    /// Takes one token, and says how long to wait for it.
    pub(super) fn reserve(&mut self, now: Instant) -> Duration {
        let Rate { per_second, burst } = self.rate;
        if let Some(at) = self.at {
            let come = now.saturating_duration_since(at).as_secs_f64() * per_second;
            self.tokens = (self.tokens + come).min(f64::from(burst));
        }
        self.at = Some(now);
        self.tokens -= 1.0;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.tokens / per_second).unwrap_or(Duration::MAX / 4)
    }
}

/// A number from 0 to 1, different each time; good enough to spread load.
pub(crate) fn random() -> f64 {
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a float holds")]
    let part = bits as f64 / (1_u64 << 53) as f64;
    part
}

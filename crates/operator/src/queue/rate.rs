//! How often something may happen.

use std::time::Duration;

use tokio::time::Instant;

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

//! `tortie demo`, run as users run it: what it shows, how it ends, and that nothing is left behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ending;
mod showing;
mod support;

//! What needs a real BIRD: whether it reads what is written for it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accepted;
mod random;

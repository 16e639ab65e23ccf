//! From resources to BIRD's configuration: confd's answers, and what follows from what is wrong.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod vectors;
mod world;

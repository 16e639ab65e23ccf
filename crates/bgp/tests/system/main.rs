//! What needs a real BIRD: whether it reads what is written for it, and what it does on nodes in network namespaces.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accepted;
mod bird;
mod explained;
mod random;

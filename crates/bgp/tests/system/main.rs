//! What needs root: real BIRD in network namespaces.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bird;

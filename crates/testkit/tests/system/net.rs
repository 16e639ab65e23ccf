//! Nodes and pods in network namespaces, packets between them, and packet filters that drop some.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogues;
mod fabric;
mod probes;
mod support;
mod topology;

//! The program, run as a user runs it, on every datastore.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod bgp_answers;
mod bgp_render;
mod calicoctl;
mod changes;
mod describe;
mod embedded;
mod etcd;
mod kubernetes;
mod offline;
mod program;
mod round_trip;
mod service;
mod sharing;
mod status;
mod watching;
mod which_datastore;
mod why;
mod yaml;

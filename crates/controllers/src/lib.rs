//! The controllers of a cluster, which Calico calls kube-controllers: they keep the datastore true to what Kubernetes says,
//! and clean up after what is gone.
//!
//! ```text
//! variables, KubeControllersConfiguration ──▶ settings ──▶ process: controllers that are on, started anew when these change
//!
//! Kubernetes ──caches──┐
//!                      ├─▶ one queue per controller ─▶ compare ─▶ write by compare-and-swap
//! datastore ──follow───┘
//! ```
//!
//! # Invariants
//! - A controller touches only what it recognises as its own: by name, by label or by reference.
//! - What was changed by hand is put right at once, and by a regular comparison of everything.
//! - Nothing is removed before everything is known, nor while the datastore or the API server cannot be reached.

mod compaction;
mod configuration;
mod digest;
mod feed;
mod follow;
mod health;
pub mod ip_pool;
pub mod ipam_gc;
pub mod load_balancer;
mod machines;
mod memory;
mod mirror;
mod node;
mod packed;
pub mod pod;
mod process;
mod refusal;
pub mod settings;
mod shared;
mod standalone;
pub mod tier;
mod workload_endpoint;

pub use machines::list_machines;
pub use process::{Error, Options, run};
pub use tortie_operator::LeaderElection;

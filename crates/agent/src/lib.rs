//! The node agent: it enforces on one machine what the datastore says.
//!
//! ```text
//! datastore ──sync──▶ engine ──messages──▶ data plane ──▶ kernel
//!                        one thread, woken by changes of the datastore and of interfaces
//! ```
//!
//! # Invariants
//! - Nothing is written to the kernel before all is known that the datastore held at the start.
//! - Losing the datastore changes nothing in the kernel; bad objects count as absent, and are said once.
//! - What the kernel has is compared with what it should have at the start, after every error and now and then.

mod agent;
mod cluster;
pub mod config;
mod derive;
mod files;
pub mod machine;
mod metrics;
mod node;
mod server;
mod status;

pub use agent::{Agent, Error, Options, Stop};
pub use derive::{TooFewMarks, engine_config, rules_config};
pub use files::replace_file;
pub use metrics::Metrics;
pub use server::{Health, serve};

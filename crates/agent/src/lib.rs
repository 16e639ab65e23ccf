//! The node agent: it enforces on one machine what the datastore says.
//!
//! ```text
//! datastore ──sync──▶ engine ──messages──▶ data plane ──▶ kernel
//!                        one thread, woken by changes of the datastore and of interfaces
//! ```
//!
//! # Invariants
//! - Nothing is written to the kernel before all is known that the datastore held at the start, nor while it says that it
//!   is not ready. Losing it changes nothing in the kernel.
//! - A configuration that the agent cannot run with is refused as a whole, and said; the one before it stays.
//! - What the kernel has is compared with what it should have at the start, after every error and now and then.

mod agent;
pub mod asked;
mod claim;
mod derive;
mod health;
pub mod host;
pub mod inputs;
mod last_good;
mod local;
mod metrics;
mod node_status;
mod overlay;
mod recording;
mod running;
mod server;
pub mod startup;
mod status;

pub use agent::{Agent, Error, Options, Stop};
pub use derive::engine_config;
pub use health::Health;
pub use local::{LocalAgent, Settings};
pub use metrics::Metrics;
pub use node_status::{
    DatastoreStatus, Ineffective, NodeStatus, Problem, RefusedObject, Report, Versions,
};
pub use recording::{Recording, RecordingFile};

//! BGP: what a node tells its neighbours, and what it takes from them, as BIRD's configuration.
//!
//! ```text
//! resources ─▶ Inputs ─▶ Plan ─▶ render: text for BIRD 2, or confd's files for BIRD 1.6
//! ```
//!
//! # Invariants
//! - Inputs, plan and text are pure: no I/O, no clock, no panic on data. The same objects give the same text, in whatever order
//!   they came.
//! - An object that cannot be read, or a field of one, is a [`Problem`] and takes no other down.
//! - No text of an object reaches the configuration but through the types of [`text`].

pub mod bird;
mod cluster;
pub mod doctor;
pub mod explain;
mod family;
pub mod inputs;
pub mod plan;
mod problem;
mod reason;
pub mod render;
pub mod speaker;
pub mod text;

pub use cluster::Cluster;
pub use family::{Family, PerFamily};
pub use inputs::{Identity, Inputs, Update};
pub use plan::Plan;
pub use problem::Problem;
pub use reason::Reason;

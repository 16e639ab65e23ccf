//! BIRD: what it is asked and told through its control socket, its configuration file, and its process.
//!
//! ```text
//! text ─▶ ConfigFile: checked by BIRD's parser ─▶ Reload: configure, confirm or undo ─▶ file in place
//!                                                      │
//! Daemon: start, take over, watch, restart ─────▶ Socket ─▶ Reply ─▶ answers as types ─▶ status
//! ```
//!
//! # Invariants
//! - BIRD outlives this process, and is found again by its socket.
//! - The file that BIRD would start with is one that BIRD has taken, or at least read without an objection.
//! - What BIRD answers is never trusted to have a form: it becomes an error, and never a panic.

pub mod answer;
mod command;
pub mod config_file;
pub mod daemon;
mod error;
pub mod reload;
pub mod reply;
pub mod socket;
pub mod status;

pub use command::{Configure, Destination, Routes, Side, Switch};
pub use config_file::ConfigFile;
pub use daemon::Daemon;
pub use error::{Error, Problem, Result};
pub use reply::Reply;
pub use socket::{Connection, Limits, Socket};

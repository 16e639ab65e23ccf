//! The CNI plugins: `calico` and `calico-ipam`, which connect containers to the network and give them addresses, and those
//! of the CNI project that clusters use beside them.
//!
//! A runtime calls a plugin as a program: it says in the environment what is to be done ([`Request`]), hands over the
//! network's configuration ([`NetworkConfig`]) and gets a [`CniResult`] or an [`Error`] back. [`plugin::main`] is that
//! program; [`add()`], [`del()`], [`check()`], [`status()`] and [`gc()`] do the work.
//!
//! # Invariants
//! - The calling thread is in the node's network namespace, and stays there.
//! - After a failed ADD nothing is left: no interface, no address, no endpoint.
//! - ADD and DEL may be repeated.
//! - Nothing that a runtime, an annotation or another plugin says makes a plugin panic.

mod add;
mod agent;
mod annotations;
mod check;
mod cluster;
mod config;
mod context;
mod datastore;
mod del;
mod endpoint;
mod error;
mod gates;
mod gc;
mod gone;
mod identity;
pub mod install;
mod ipam;
mod labels;
mod logging;
mod machine;
mod network;
pub mod plugin;
mod plugins;
mod profile;
mod request;
mod result;
mod status;
pub mod upgrade;
mod version;
mod wait;

pub use add::add;
pub use check::check;
pub use config::NetworkConfig;
pub use context::Context;
pub use datastore::Datastore;
pub use del::del;
pub use error::{Code, Error, Result};
pub use gc::gc;
pub use identity::Identity;
pub use network::{Waiting, delete_by_program_name};
pub use plugin::Plugin;
pub use request::{Arguments, Command, Request};
pub use result::{Address, CniResult, Interface, Route};
pub use status::status;
pub use version::{CniVersion, UnknownVersion};

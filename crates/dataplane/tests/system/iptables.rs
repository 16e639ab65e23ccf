//! The iptables driver against the real programs, both kinds of iptables and both IP versions, each test in network
//! namespaces of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changes;
mod choosing;
mod drift;
mod errors;
mod hooks;
mod sets;
mod support;
mod writing;

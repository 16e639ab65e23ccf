//! The CNI plugins, called as a container runtime calls them, on real datastores and in real network namespaces.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod addresses;
mod connecting;
mod containerd;
mod failing;
mod gone;
mod install;
mod kubernetes;
mod machines;
mod other_commands;
mod plugins;
mod site;
mod tls;
mod turns;

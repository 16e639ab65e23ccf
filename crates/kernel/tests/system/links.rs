//! Links, routes, neighbours, notifications and settings on the real kernel, in network namespaces of the tests' own, beside
//! the program `ip`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod interfaces;
mod monitor;
mod routes;
mod support;
mod sysctls;
mod tunnels;

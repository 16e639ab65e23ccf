//! Links, routes, neighbours, notifications and settings on the real kernel, in network namespaces of the tests' own, beside
//! the program `ip`.

mod interfaces;
mod monitor;
mod routes;
mod support;
mod sysctls;

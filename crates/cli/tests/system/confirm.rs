//! `tortie apply --confirm` and `tortie confirm`, with real processes on all datastores.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod elsewhere;
mod embedded;
mod ends;
mod etcd;
mod kubernetes;
mod reboot;
mod site;

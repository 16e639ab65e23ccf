//! A server that stands alone, asked over real connections.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit;
mod creation;
mod deletion;
mod heavy;
mod limits;
mod lists;
mod roles;
mod support;

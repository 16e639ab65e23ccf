//! `tortie up` as a process: real clients, real packets, hostile input, and kills in the middle of writes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bgp;
mod churn;
mod compared;
mod custom;
mod disk;
mod elsewhere;
mod ending;
mod hostile;
mod killed;
mod kubectl;
mod objects;
mod packets;
mod playground;
mod readme;
mod released;
mod roles;
mod server;
mod status;

//! From resources to BIRD's configuration: confd's answers, and what follows from what is wrong.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agree;
mod answers;
mod concern;
mod doctor;
mod explain;
mod problems;
#[path = "../system/random.rs"]
mod random;
mod services;
mod sessions;
mod vectors;
mod world;

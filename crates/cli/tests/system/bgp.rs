//! BGP with real packets: nodes with BIRD, agents and pods, and routers of other people around them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dying;
mod gobgp;
mod kills;
mod kubernetes;
mod mesh;
mod outside;
mod peers;
mod rack;
mod reflectors;
mod router;
mod workload;

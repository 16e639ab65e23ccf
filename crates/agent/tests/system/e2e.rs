//! The agent with real packets: pods, machines and the node are network namespaces, and what holds is what arrives.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has nothing better to do than to say where"
)]

#[macro_use]
mod planes;

mod agent;
mod etcd;
mod flow;
mod objects;
mod setting;
mod traffic;

mod appearing;
mod chaos;
mod continuity;
mod datastore;
mod host_endpoints;
mod pods;
mod readiness;
mod recipes;
mod recording;
mod refused;
mod repair;
mod sets;
mod status;

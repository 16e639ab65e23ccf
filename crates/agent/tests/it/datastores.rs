//! Following real datastores: what the consumer is told adds up to what they hold, also when they fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod embedded;
mod etcd;
mod faults;
mod faulty_store;
mod kubernetes;
mod proxy;
mod refusing_api;
mod scenario;
mod world;

//! The drivers and the client; modules `etcd` and `kubernetes` need those servers.

mod embedded;
mod etcd;
mod kubernetes;
mod modify;
mod socket;
mod validation_vectors;

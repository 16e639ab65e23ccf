//! The drivers; modules `etcd` and `kubernetes` need those servers.

mod embedded;
mod etcd;
mod kubernetes;
mod socket;

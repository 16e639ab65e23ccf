//! The client, on embedded stores and on etcd.

mod deletion;
mod modify;
mod validation_vectors;

//! The client, on embedded stores and on etcd.

mod modify;
mod validation_vectors;

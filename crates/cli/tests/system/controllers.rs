//! `tortie controllers` with a real kube-apiserver, and a real etcd of its own as the datastore. Objects are made by
//! `kubectl`, and what comes of them is read from etcd as it is stored.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has nothing better to do than to say where"
)]

mod copies;
mod faults;
mod leader;
mod migration;
mod nodes;
mod program;
mod settings;
mod site;
mod soak;

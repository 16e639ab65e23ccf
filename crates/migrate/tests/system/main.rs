//! What needs a real kube-apiserver: each move by itself.

#[path = "../../../controllers/tests/system/cluster.rs"]
mod cluster;
mod datastore_migration;
mod flannel;

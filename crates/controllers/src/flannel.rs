//! What nodes say of themselves while a cluster is moved from flannel to Calico's network, node by node.

/// The label that says which network a node is in while the cluster is being moved.
pub const NETWORK_LABEL: &str = "projectcalico.org/node-network-during-migration";

/// The value of [`NETWORK_LABEL`] for nodes that have been moved.
pub const CALICO: &str = "calico";

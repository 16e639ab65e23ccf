//! Moves a cluster from flannel's network to Calico's, node by node, while pods on both keep reaching each other: Calico
//! takes over flannel's addresses, its VXLAN number, port and tunnel ends.
//!
//! ```text
//! check ─▶ VXLAN off ─▶ pool, Felix ─▶ each node: blocks, tunnel end ─▶ VXLAN on
//!       ─▶ each node: drain ─▶ flannel off ─▶ Calico on ─▶ back in service ─▶ flannel's DaemonSet, labels and selectors go
//! ```
//!
//! # Invariants
//! - How far a node has come is in its labels, so that a process that starts anew goes on where the last one stopped.
//! - One node at a time is out of service, those of the control plane and that of this process last, always in one order.
//! - Nothing of flannel is removed from a node before everything is known that Calico needs in its place.

mod addresses;
mod cluster;
mod command;
mod migration;
mod order;
mod settings;
mod vtep;

pub use self::migration::{Error, Outcome, run};
pub use self::settings::Settings;

/// The label that says which network a node is in while the cluster is being moved.
pub const NETWORK_LABEL: &str = "projectcalico.org/node-network-during-migration";

/// The value of [`NETWORK_LABEL`] for nodes that have been moved.
pub const CALICO: &str = "calico";

/// The value of [`NETWORK_LABEL`] for nodes that are still in flannel's network.
const FLANNEL: &str = "flannel";

/// The value of [`NETWORK_LABEL`] for nodes that are in neither.
const NEITHER: &str = "none";

/// The label of nodes that are being moved.
const IN_PROGRESS_LABEL: &str = "projectcalico.org/node-flannel-migration-in-progress";

//! The data plane: what the engine says must be enforced, brought into the kernel and kept there.
//!
//! A [`DesiredState`] takes the engine's messages and works out which chains, sets and maps change; a [`Driver`] makes
//! the changes in the kernel, with nftables or with iptables.

mod apply;
mod change;
mod cluster;
mod desired;
pub mod iptables;
mod left_over;
mod local;
mod mtu;
pub mod nftables;
mod refusals;
mod watch;

pub use apply::{Dataplane, Done};
pub use change::{
    Batch, ChainKey, Drift, Driver, Error, MapChange, Members, Object, Owner, Part, Refused,
    SetChange, SetKind,
};
pub use cluster::{ClusterNetwork, ClusterOptions};
pub use desired::{DesiredState, InterfaceState, Interfaces, PolicyCost};
pub use left_over::{OurRoutes, Removed, remove_everything, remove_left_overs};
pub use local::{LocalNetwork, RouteOptions, WorkloadState};
pub use mtu::{MtuOptions, Mtus};

//! What Tortie calls things in the kernel: chains, IP sets and policy groups.
//!
//! ```
//! use tortie_rules::{Dataplane, Direction, PolicyId, PolicyKind, policy_chain_name};
//!
//! let id = PolicyId {
//!     kind: PolicyKind::NetworkPolicy,
//!     namespace: "shop".to_owned(),
//!     name: "web".to_owned(),
//! };
//! assert_eq!(id.to_string(), "np/shop/web");
//! assert_eq!(
//!     policy_chain_name(&id, Direction::Ingress, Dataplane::Iptables),
//!     "cali-pi-np/shop/web"
//! );
//! ```
//!
//! # Invariants
//! - No I/O, no clock, no global state: a name depends on nothing but the arguments.
//! - The names are Calico's. A node that changes from Calico to Tortie already has chains and sets
//!   under them, and rule hashes start from them, so they must not change.

mod chain_name;
mod ip_set_name;
mod policy_group;

pub use chain_name::{
    ANY_INTERFACE, Dataplane, Direction, EndpointChain, endpoint_chain_name, policy_chain_name,
    profile_chain_name,
};
pub use ip_set_name::{ip_set_name, temp_ip_set_name};
pub use policy_group::PolicyGroup;
pub use tortie_api::names::{IpVersion, PolicyId, PolicyKind};

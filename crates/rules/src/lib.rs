//! What the kernel is told: chains, rules, sets and maps as values, what they are called, and their text for iptables
//! and nftables.
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
pub mod config;
mod dispatch;
mod endpoint;
mod endpoint_mark;
mod fixed;
mod ip_set_name;
pub mod iptables;
mod nflog;
pub mod nftables;
mod policy;
mod policy_group;
mod renderer;
pub mod rule;
mod text;

pub use chain_name::{
    ANY_INTERFACE, Dataplane, Direction, EndpointChain, behind_header_chain_name,
    endpoint_chain_name, policy_chain_name, profile_chain_name,
};
pub use config::{Config, TooFewMarks};
pub use dispatch::{HostDispatch, HostInterfaces, VerdictMap};
pub use endpoint::{TierGroups, Workload};
pub use endpoint_mark::EndpointMarks;
pub use fixed::{Hook, masquerade_ports};
pub use ip_set_name::{ip_set_name, temp_ip_set_name};
pub use policy::{Layouts, MAX_POLICY_RULES};
pub use policy_group::PolicyGroup;
pub use renderer::{Renderer, SetLayout, fixed_set, networks_set_name};
pub use rule::{Chain, Rule, Table};
pub use text::{HASH_PREFIX, RuleHasher};
pub use tortie_api::names::{IpVersion, PolicyId, PolicyKind};

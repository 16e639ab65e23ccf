//! `IPPool`: a range from which workloads, tunnels or load balancers get addresses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::meta::Condition;

/// What the controllers found out about the pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct IpPoolStatus {
    /// Current conditions; `Allocatable` tells whether addresses can be handed out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Range of the pool, who may use it, and how its traffic travels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["cidr"]))]
pub struct IpPoolSpec {
    /// Address range of the pool; cannot be changed later.
    #[schemars(extend("format" = "cidr", "maxLength" = 48, "x-check" = "net"))]
    pub cidr: String,
    /// When traffic to pods of this pool is wrapped in VXLAN. Default `Never`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub vxlan_mode: Option<VxlanMode>,
    /// When traffic to pods of this pool is wrapped in IPIP; IPv4 only. Default `Never`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub ipip_mode: Option<IpipMode>,
    /// Whether pods of this pool leave the pools under the node's address. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub nat_outgoing: bool,
    /// Stops new assignments; addresses already given out stay in use. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub disabled: bool,
    /// Keeps routes of this pool from being announced over BGP. Default `false`.
    #[serde(rename = "disableBGPExport", skip_serializing_if = "is_default")]
    pub disable_bgp_export: bool,
    /// Prefix length of the blocks nodes claim; fixed once set. Default 26 (IPv4) or 122 (IPv6).
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 128))]
    pub block_size: i64,
    /// Nodes that may take addresses from the pool. Default `all()`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-default" = "all()", "maxLength" = 1024, "x-check" = "selector"))]
    pub node_selector: String,
    /// Namespaces whose pods may take addresses; empty means all. Not with use `Tunnel`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub namespace_selector: String,
    /// What the addresses may be used for. Default `Workload` and `Tunnel`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 10, "x-kubernetes-list-type" = "set"))]
    pub allowed_uses: Vec<IpPoolAllowedUse>,
    /// Whether addresses are handed out without being asked for by name. Default `Automatic`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-default" = "Automatic"))]
    pub assignment_mode: Option<AssignmentMode>,
}

/// Purposes addresses of a pool can serve.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum IpPoolAllowedUse {
    /// Addresses for pods and other workloads.
    Workload,
    /// Addresses for the tunnel devices of nodes.
    Tunnel,
    /// Addresses for `LoadBalancer` services; excludes the other uses.
    LoadBalancer,
}

/// When packets between nodes are wrapped in VXLAN.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum VxlanMode {
    /// Send pod traffic without VXLAN.
    Never,
    /// Wrap all pod traffic between nodes.
    Always,
    /// Wrap only traffic to nodes in another subnet.
    CrossSubnet,
}

/// When packets between nodes are wrapped in IPIP.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum IpipMode {
    /// Send pod traffic without IPIP.
    Never,
    /// Wrap all pod traffic between nodes.
    Always,
    /// Wrap only traffic to nodes in another subnet.
    CrossSubnet,
}

/// How addresses leave a pool.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum AssignmentMode {
    /// Any workload the pool is open to may get an address from it.
    Automatic,
    /// Only workloads or services that ask for the pool or an address in it get one.
    Manual,
}

//! `BGPPeer`: a BGP session between cluster nodes and a router, another node or a workload.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::meta::SecretKeySelector;
use crate::scalar::{AsNumber, GoDuration};

/// Which nodes open the session, to whom, and with which session options.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BgpPeerSpec {
    /// Name of the one node that peers; with no node and no selector, all nodes do.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 253, "x-check" = "name"))]
    pub node: String,
    /// Selects by label the nodes that peer; excludes `node`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub node_selector: String,
    /// Address of the remote side, optionally with a port, such as `10.0.0.1:1179`.
    #[serde(rename = "peerIP", skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 64, "x-check" = "IP:port"))]
    pub peer_ip: String,
    /// AS number of the remote side; left out when `peerSelector` picks nodes.
    #[serde(skip_serializing_if = "is_default")]
    pub as_number: AsNumber,
    /// AS number the node uses for this peering instead of its own.
    #[serde(rename = "localASNumber", skip_serializing_if = "is_default")]
    pub local_as_number: Option<AsNumber>,
    /// Selects cluster nodes as remote sides by label; excludes `peerIP`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub peer_selector: String,
    /// Old switch for `nextHopMode: Keep` towards peers in another AS; prefer `nextHopMode`.
    #[serde(skip_serializing_if = "is_default")]
    pub keep_original_next_hop: bool,
    /// Which next hop the node puts into routes sent to this peer. Default `Auto`.
    #[serde(skip_serializing_if = "is_default")]
    pub next_hop_mode: Option<NextHopMode>,
    /// MD5 password for the session.
    #[serde(skip_serializing_if = "is_default")]
    pub password: Option<BgpPassword>,
    /// Which local address the session starts from. Default `UseNodeIP`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub source_address: Option<SourceAddress>,
    /// How long the peer keeps routes while the node restarts gracefully. Default 120s.
    #[serde(skip_serializing_if = "is_default")]
    pub max_restart_time: Option<GoDuration>,
    /// Interval between keepalive messages; the daemon chooses when left out.
    #[serde(skip_serializing_if = "is_default")]
    pub keepalive_time: Option<GoDuration>,
    /// How often the local AS may appear in the path of a received route before it is dropped.
    #[serde(
        rename = "numAllowedLocalASNumbers",
        skip_serializing_if = "is_default"
    )]
    pub num_allowed_local_as_numbers: Option<i32>,
    /// Number of hops to the peer; when above 0, packets with a lower TTL than that implies are
    /// dropped.
    #[serde(skip_serializing_if = "is_default")]
    pub ttl_security: Option<u8>,
    /// Gateway for a static route to `peerIP` when the peer is not directly connected.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 64, "x-check" = "ip"))]
    pub reachable_by: String,
    /// Names of `BGPFilter` objects applied to this peering, in order.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "x-check" = "name"))]
    pub filters: Vec<String>,
    /// Selects local workloads to peer with; needs `asNumber` and excludes other peer choices.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub local_workload_selector: String,
    /// Whether the selected remote nodes get the matching session back. Default `Auto`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-unlisted" = true))]
    pub reverse_peering: Option<ReversePeering>,
}

/// Where a BGP session password is kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BgpPassword {
    /// Key in a Kubernetes secret, in the namespace of the node agent, that holds the password.
    #[serde(skip_serializing_if = "is_default")]
    pub secret_key_ref: Option<SecretKeySelector>,
}

/// Choice of local address for a BGP session.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum SourceAddress {
    /// Start the session from the node's own BGP address.
    UseNodeIP,
    /// Let the kernel choose the address from its routes.
    None,
}

/// Handling of the next hop in routes sent to a peer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum NextHopMode {
    /// Follow the usual BGP rules for internal and external sessions.
    Auto,
    /// Always announce the node itself as next hop.
    #[serde(rename = "Self")]
    SelfAddress,
    /// Pass on the next hop the route already has.
    Keep,
}

/// Creation of the session in the opposite direction.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum ReversePeering {
    /// Remote cluster nodes get the matching peer without a second `BGPPeer` object.
    Auto,
    /// Only the direction written down exists; the other one needs its own object.
    Manual,
}

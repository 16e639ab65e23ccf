//! `CalicoNodeStatus`: request for, and report of, the BGP state of one node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::meta::Time;

/// What to report about which node, and how often.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CalicoNodeStatusSpec {
    /// Name of the node that fills in the status.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "name"))]
    pub node: String,
    /// Parts of the report to collect; others stay empty.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-check" = "unique"))]
    pub classes: Vec<NodeStatusClassType>,
    /// Seconds between two updates, at most 86400; 0 stops updates.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gte=0,lte=86400"))]
    pub update_period_seconds: Option<u32>,
}

/// The latest report of the node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CalicoNodeStatusStatus {
    /// When the node last wrote this report.
    #[schemars(extend("x-nullable" = true))]
    pub last_updated: Option<Time>,
    /// State of the BGP daemons; filled for class `Agent`.
    pub agent: CalicoNodeAgentStatus,
    /// State of the BGP sessions; filled for class `BGP`.
    pub bgp: CalicoNodeBgpStatus,
    /// Routes known to the BGP daemons; filled for class `Routes`.
    pub routes: CalicoNodeBgpRouteStatus,
}

/// State of the BGP daemons of the node, one per address family.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CalicoNodeAgentStatus {
    /// The daemon that handles IPv4 routes.
    pub bird_v4: BgpDaemonStatus,
    /// The daemon that handles IPv6 routes.
    pub bird_v6: BgpDaemonStatus,
}

/// Counts and details of the BGP sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["numberEstablishedV4", "numberNotEstablishedV4", "numberEstablishedV6", "numberNotEstablishedV6"]))]
pub struct CalicoNodeBgpStatus {
    /// How many IPv4 sessions are up.
    pub number_established_v4: i64,
    /// How many IPv4 sessions are configured but not up.
    pub number_not_established_v4: i64,
    /// How many IPv6 sessions are up.
    pub number_established_v6: i64,
    /// How many IPv6 sessions are configured but not up.
    pub number_not_established_v6: i64,
    /// One entry per configured IPv4 peer.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub peers_v4: Vec<CalicoNodePeer>,
    /// One entry per configured IPv6 peer.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub peers_v6: Vec<CalicoNodePeer>,
}

/// Routes held by the BGP daemons.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CalicoNodeBgpRouteStatus {
    /// IPv4 routes, used and unused.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub routes_v4: Vec<CalicoNodeRoute>,
    /// IPv6 routes, used and unused.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub routes_v6: Vec<CalicoNodeRoute>,
}

/// Health and identity of one BGP daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BgpDaemonStatus {
    /// Whether the daemon is up and configured.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub state: Option<BgpDaemonState>,
    /// Version the daemon reports about itself.
    #[serde(skip_serializing_if = "is_default")]
    pub version: String,
    /// Router ID the daemon uses towards its peers.
    #[serde(rename = "routerID", skip_serializing_if = "is_default")]
    pub router_id: String,
    /// When the daemon started, as text in its own format.
    #[serde(skip_serializing_if = "is_default")]
    pub last_boot_time: String,
    /// When the daemon last loaded new configuration, as text in its own format.
    #[serde(skip_serializing_if = "is_default")]
    pub last_reconfiguration_time: String,
}

/// State of one BGP session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CalicoNodePeer {
    /// Address of the remote side.
    #[serde(rename = "peerIP", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "ip"))]
    pub peer_ip: String,
    /// What made the session exist: the mesh, or a node or global peer object.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub r#type: Option<BgpPeerType>,
    /// Step of the BGP state machine the session is in.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub state: Option<BgpSessionState>,
    /// When the session entered this state, as text from the daemon.
    #[serde(skip_serializing_if = "is_default")]
    pub since: String,
}

/// One route known to a BGP daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CalicoNodeRoute {
    /// Whether the kernel uses the route or only the daemon knows it.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub r#type: Option<CalicoNodeRouteType>,
    /// Prefix the route leads to.
    #[serde(skip_serializing_if = "is_default")]
    pub destination: String,
    /// Next hop of the route; empty for a directly connected one.
    #[serde(skip_serializing_if = "is_default")]
    pub gateway: String,
    /// Interface packets leave through.
    #[serde(skip_serializing_if = "is_default")]
    pub interface: String,
    /// Where the daemon got the route.
    #[serde(skip_serializing_if = "is_default")]
    pub learned_from: CalicoNodeRouteLearnedFrom,
}

/// Origin of a route.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CalicoNodeRouteLearnedFrom {
    /// Kind of origin.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub source_type: Option<CalicoNodeRouteSourceType>,
    /// Address of the BGP peer that sent the route; empty for local origins.
    #[serde(rename = "peerIP", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "ip"))]
    pub peer_ip: String,
}

/// Whether a route is in use.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum CalicoNodeRouteType {
    /// The route is installed and carries traffic.
    #[serde(rename = "FIB")]
    Fib,
    /// The daemon knows the route, but the kernel does not use it.
    #[serde(rename = "RIB")]
    Rib,
}

/// Kinds of route origin.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum CalicoNodeRouteSourceType {
    /// Read from the kernel's routing table.
    Kernel,
    /// Written in the daemon's configuration.
    Static,
    /// Network of an interface of the node.
    Direct,
    /// Sent by another node over the node mesh.
    NodeMesh,
    /// Sent by a peer that a `BGPPeer` object configures.
    BGPPeer,
}

/// Parts of a node report that can be asked for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum NodeStatusClassType {
    /// Health of the BGP daemons.
    Agent,
    /// State of the BGP sessions.
    #[serde(rename = "BGP")]
    Bgp,
    /// Routes of the BGP daemons.
    Routes,
}

/// Why a BGP session exists.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BgpPeerType {
    /// The node-to-node mesh created it.
    NodeMesh,
    /// A `BGPPeer` for this node or a selection of nodes created it.
    NodePeer,
    /// A `BGPPeer` for all nodes created it.
    GlobalPeer,
}

/// Whether a BGP daemon can be used.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BgpDaemonState {
    /// The daemon runs and has its configuration.
    Ready,
    /// The daemon is down, starting, or waiting for configuration.
    NotReady,
}

/// Step of the BGP state machine.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BgpSessionState {
    /// Nothing is being tried.
    Idle,
    /// Waiting for the TCP connection to come up.
    Connect,
    /// Between connection attempts, or listening for the peer to connect.
    Active,
    /// Connected; the opening message went out and the answer is awaited.
    OpenSent,
    /// Both opening messages passed; the first keepalive is awaited.
    OpenConfirm,
    /// The session is up and exchanges routes.
    Established,
    /// The session is being shut down.
    Close,
}

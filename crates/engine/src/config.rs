//! What the engine is told before it starts.

use serde::{Deserialize, Serialize};
use tortie_config::{self as parameters, ProgramClusterRoutes, RouteSource, SourceSpoofing};

use crate::input::WorkloadEndpoint;

/// Everything the engine can be told before it starts. Later changes of these parameters need a new engine; what the
/// datastore says about pools and nodes does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The node that the engine works for.
    pub node: String,
    /// Which endpoints count as local.
    pub scope: Scope,
    /// What becomes of members of a set that another member covers.
    pub overlaps: Overlaps,
    /// Whether endpoints may ask to send from foreign addresses; those that ask are ignored otherwise.
    pub allow_source_spoofing: bool,
    /// Whether IPIP is in use; the pools decide if nothing is said.
    pub ipip_enabled: Option<bool>,
    /// Whether VXLAN over IPv4 is in use; the pools decide if nothing is said.
    pub vxlan_enabled: Option<bool>,
    /// Whether the data plane is eBPF, which needs routes for everything.
    pub bpf_enabled: bool,
    /// Whether WireGuard is in use, over IPv4 or IPv6.
    pub wireguard_enabled: bool,
    /// Which routes between nodes are the data plane's own, rather than learnt by BGP. Those of pools with VXLAN always are.
    pub cluster_routes: ProgramClusterRoutes,
    /// When the data plane is told of routes at all.
    #[serde(default)]
    pub routes_sent: RoutesSent,
    /// Where routes to workloads come from.
    pub route_source: RouteSource,
}

/// What becomes of members of a set that another member covers. Interval sets in the kernel refuse a network inside
/// another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Overlaps {
    /// They are sent as all others.
    Sent,
    /// They are left out until what covers them goes.
    #[default]
    LeftOut,
    /// Networks are left out and single addresses sent, for a data plane that keeps these in sets of their own: an address
    /// that moved from one set to the other could be missed by a packet that is just between the two.
    AddressesSent,
}

/// When the data plane is told of routes at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RoutesSent {
    /// If there are some that it programs.
    #[default]
    IfOwn,
    /// If there is a pool: it keeps those that it has programmed until BGP has them.
    WithAnyPool,
}

/// Which endpoints count as local.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Those on the engine's node.
    #[default]
    ThisNode,
    /// Those on any node, to answer questions about the whole cluster.
    AllNodes,
}

// === impl Config ===

impl Config {
    /// What follows from the parameters of a node.
    pub fn new(node: impl Into<String>, parameters: &parameters::Config) -> Self {
        Self {
            node: node.into(),
            scope: Scope::default(),
            overlaps: Overlaps::default(),
            allow_source_spoofing: parameters.policy.source_spoofing == SourceSpoofing::Any,
            ipip_enabled: parameters.encap.ipip,
            vxlan_enabled: parameters.encap.vxlan,
            bpf_enabled: false,
            wireguard_enabled: false,
            cluster_routes: parameters.routes.program_cluster_routes,
            routes_sent: RoutesSent::IfOwn,
            route_source: parameters.routes.source,
        }
    }

    /// What follows for a node where nothing is set.
    pub fn for_node(node: impl Into<String>) -> Self {
        Self::new(node, &parameters::Config::default())
    }

    /// Whether an endpoint on `node` counts as local.
    pub(crate) fn is_local(&self, node: &str) -> bool {
        self.scope == Scope::AllNodes || self.node == node
    }

    /// Whether a workload's endpoint is to be used; one that is not counts as absent.
    pub(crate) fn admits(&self, endpoint: &WorkloadEndpoint) -> bool {
        !endpoint.interface.is_empty()
            && (self.allow_source_spoofing || endpoint.allow_spoofed_source_prefixes.is_empty())
    }
}

// === impl Overlaps ===

impl Overlaps {
    /// Whether a member is left out if another covers it.
    pub(crate) fn leaves_out(self, is_single_address: bool) -> bool {
        match self {
            Self::Sent => false,
            Self::LeftOut => true,
            Self::AddressesSent => !is_single_address,
        }
    }
}

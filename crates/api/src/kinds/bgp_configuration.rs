//! `BGPConfiguration`: cluster-wide or per-node settings for the BGP routing daemon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::kinds::bgp_peer::BgpPassword;
use crate::scalar::{AsNumber, GoDuration};

/// BGP settings; the object is named `default` for the cluster or `node.<name>` for one node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BgpConfigurationSpec {
    /// Lowest severity the BGP daemon writes to its standard output. Default `Info`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-default" = "Info", "pattern" = "^(?i)(Trace|Debug|Info|Warning|Error|Fatal)?$"))]
    pub log_severity_screen: String,
    /// Whether every node opens a BGP session to every other node. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub node_to_node_mesh_enabled: Option<bool>,
    /// AS number for nodes that do not set their own. Default 64512.
    #[serde(skip_serializing_if = "is_default")]
    pub as_number: Option<AsNumber>,
    /// Ranges whose `LoadBalancer` service addresses are announced to BGP peers.
    #[serde(rename = "serviceLoadBalancerIPs", skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub service_load_balancer_ips: Vec<ServiceIpBlock>,
    /// Ranges whose service external IPs are announced; addresses outside them stay private.
    #[serde(rename = "serviceExternalIPs", skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub service_external_ips: Vec<ServiceIpBlock>,
    /// Cluster IP ranges announced to BGP peers, so that outside clients can reach services.
    #[serde(rename = "serviceClusterIPs", skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub service_cluster_ips: Vec<ServiceIpBlock>,
    /// Whether load balancer ranges are announced whole or address by address. Default `Enabled`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-default" = "Enabled"))]
    pub service_load_balancer_aggregation: Option<ServiceLoadBalancerAggregation>,
    /// BGP community values given a name for use in `prefixAdvertisements`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 500, "x-kubernetes-list-type" = "atomic"))]
    pub communities: Vec<Community>,
    /// Communities to attach to announced routes, chosen by prefix.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 500, "x-kubernetes-list-type" = "atomic"))]
    pub prefix_advertisements: Vec<PrefixAdvertisement>,
    /// TCP port on which the BGP daemon accepts sessions. Default 179.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gt=0"))]
    pub listen_port: u16,
    /// MD5 password for all sessions of the node mesh; only allowed while the mesh is on.
    #[serde(skip_serializing_if = "is_default")]
    pub node_mesh_password: Option<BgpPassword>,
    /// How long mesh peers keep routes while a node restarts gracefully. Default 120s.
    #[serde(skip_serializing_if = "is_default")]
    pub node_mesh_max_restart_time: Option<GoDuration>,
    /// Which local addresses the BGP daemon listens on. Default `None`.
    #[serde(skip_serializing_if = "is_default")]
    pub bind_mode: Option<BindMode>,
    /// Interfaces, `*` wildcards allowed, whose connected networks the BGP daemon leaves out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-check" = "ignoredInterface"))]
    pub ignored_interfaces: Vec<String>,
    /// IPv4 address a node shows to local workloads that peer with it over BGP.
    #[serde(
        rename = "localWorkloadPeeringIPV4",
        skip_serializing_if = "is_default"
    )]
    #[schemars(extend("x-check" = "ipv4"))]
    pub local_workload_peering_ipv4: String,
    /// IPv6 address a node shows to local workloads that peer with it over BGP.
    #[serde(
        rename = "localWorkloadPeeringIPV6",
        skip_serializing_if = "is_default"
    )]
    #[schemars(extend("x-check" = "ipv6"))]
    pub local_workload_peering_ipv6: String,
    /// Pod routes to other nodes that BGP installs; must fit Felix's setting. Default
    /// `EnabledNoEncapOnly`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("enum" = ["Enabled", "Disabled", "EnabledIPIPOnly", "EnabledNoEncapOnly"]))]
    pub program_cluster_routes: Option<String>,
    /// Kernel metric of ordinary IPv4 routes, equal to Felix's setting. Default 1024.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 1, "maximum" = 2_147_483_646, "x-check" = "gte=1,lte=2147483646"))]
    pub ipv4_normal_route_priority: Option<i64>,
    /// Kernel metric of ordinary IPv6 routes, equal to Felix's setting. Default 1024.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 1, "maximum" = 2_147_483_646, "x-check" = "gte=1,lte=2147483646"))]
    pub ipv6_normal_route_priority: Option<i64>,
}

/// One range of service addresses to announce.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceIpBlock {
    /// Range in CIDR form; a /32 or /128 stands for one service address.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("format" = "cidr", "x-check" = "net"))]
    pub cidr: String,
}

/// A BGP community value with a readable name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Community {
    /// Name by which prefix advertisements refer to this value.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 253, "x-check" = "name"))]
    pub name: String,
    /// Standard `a:b` (16-bit parts) or large `a:b:c` (32-bit parts) community.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 40, "pattern" = r"^(\d+):(\d+)$|^(\d+):(\d+):(\d+)$"))]
    pub value: String,
}

/// Communities for the routes inside one prefix.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PrefixAdvertisement {
    /// Announced routes inside this prefix get the communities.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("format" = "cidr", "x-check" = "net"))]
    pub cidr: String,
    /// Names from the `communities` list or literal values to attach.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 50, "x-kubernetes-list-type" = "atomic"))]
    pub communities: Vec<String>,
}

/// Choice of local addresses for the BGP listener.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BindMode {
    /// Listen on all addresses of the host.
    None,
    /// Listen only on the node's own BGP address.
    NodeIP,
}

/// How ranges of load balancer addresses appear in BGP.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum ServiceLoadBalancerAggregation {
    /// Announce each configured range as one route.
    Enabled,
    /// Announce only host routes for the addresses that services hold.
    Disabled,
}

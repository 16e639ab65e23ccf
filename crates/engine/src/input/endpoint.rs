//! What carries labels and addresses: endpoints of workloads and hosts, and network sets.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tortie_api::scalar::Protocol;

use super::Labels;
use crate::is_default;

/// The identity of a workload's interface in the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadEndpointKey {
    /// The node that it is on.
    pub node: String,
    /// Who made the workload, such as `k8s`.
    pub orchestrator: String,
    /// The workload; `namespace/pod` for Kubernetes.
    pub workload: String,
    /// The interface inside the workload, such as `eth0`.
    pub endpoint: String,
}

/// The identity of a host endpoint in the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostEndpointKey {
    /// The node that it is on.
    pub node: String,
    pub name: String,
}

/// An interface of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadEndpoint {
    /// The host side of the interface.
    pub interface: String,
    /// The MAC address of the workload's side.
    #[serde(skip_serializing_if = "is_default")]
    pub mac: String,
    /// Its own labels; those of its profiles come on top.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// Its profiles, in order.
    #[serde(skip_serializing_if = "is_default")]
    pub profiles: Vec<String>,
    /// Its IPv4 addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub ipv4_nets: Vec<IpNet>,
    /// Its IPv6 addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub ipv6_nets: Vec<IpNet>,
    /// Floating addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub nats: Vec<IpNat>,
    /// Its ports with names.
    #[serde(skip_serializing_if = "is_default")]
    pub ports: Vec<EndpointPort>,
    /// Foreign source ranges that it may send from.
    #[serde(skip_serializing_if = "is_default")]
    pub allow_spoofed_source_prefixes: Vec<IpNet>,
    /// Annotations that the data plane looks at.
    #[serde(skip_serializing_if = "is_default")]
    pub annotations: BTreeMap<String, String>,
    /// Limits on its traffic.
    #[serde(skip_serializing_if = "is_default")]
    pub qos: Option<QosControls>,
}

/// An interface, or all interfaces, of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HostEndpoint {
    /// The interface; `*` for all of them, empty to find it by its addresses.
    pub interface: String,
    /// Its addresses, as far as they are known beforehand.
    #[serde(skip_serializing_if = "is_default")]
    pub expected_ips: Vec<IpAddr>,
    /// Its own labels; those of its profiles come on top.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// Its profiles, in order.
    #[serde(skip_serializing_if = "is_default")]
    pub profiles: Vec<String>,
    /// Its ports with names.
    #[serde(skip_serializing_if = "is_default")]
    pub ports: Vec<EndpointPort>,
    /// The DSCP value for packets that leave the cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub dscp: Option<u8>,
}

/// Networks with labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkSet {
    /// Its own labels; those of its profiles come on top.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// Its networks.
    #[serde(skip_serializing_if = "is_default")]
    pub nets: Vec<IpNet>,
    /// Its profiles: that of its namespace.
    #[serde(skip_serializing_if = "is_default")]
    pub profiles: Vec<String>,
}

/// A port of an endpoint with a name that rules can use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointPort {
    pub name: String,
    pub protocol: Protocol,
    /// The number.
    pub port: u16,
}

/// A floating address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IpNat {
    /// The address that clients use.
    pub external: IpAddr,
    /// The address of the endpoint.
    pub internal: IpAddr,
}

/// Limits on the traffic of a workload; 0 means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QosControls {
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_bandwidth: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub egress_bandwidth: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_burst: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub egress_burst: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_packet_rate: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub egress_packet_rate: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_max_connections: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub egress_max_connections: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_peakrate: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub egress_peakrate: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_minburst: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub egress_minburst: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_packet_burst: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub egress_packet_burst: i64,
    #[serde(skip_serializing_if = "is_default")]
    pub dscp: Option<u8>,
}

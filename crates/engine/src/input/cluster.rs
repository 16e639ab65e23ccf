//! Everything about the cluster that is not policy: nodes, pools, blocks, services, configuration.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tortie_api::ip_pool::IpPoolAllowedUse;
use tortie_api::scalar::Protocol;
use tortie_config::Given;

use super::{Labels, WorkloadEndpointKey};
use crate::is_default;

/// The name of an object in a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectName {
    pub namespace: String,
    pub name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Node {
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// Its IPv4 address for BGP, with the prefix length of its subnet.
    #[serde(skip_serializing_if = "is_default")]
    pub bgp_ipv4: Option<IpNet>,
    /// Its IPv6 address for BGP, with the prefix length of its subnet.
    #[serde(skip_serializing_if = "is_default")]
    pub bgp_ipv6: Option<IpNet>,
    /// Its AS number, where it is not the cluster's.
    #[serde(skip_serializing_if = "is_default")]
    pub as_number: Option<u32>,
    /// All addresses that it is known by.
    #[serde(skip_serializing_if = "is_default")]
    pub addresses: Vec<NodeAddress>,
    /// The address of its IPIP device.
    #[serde(skip_serializing_if = "is_default")]
    pub ipip_tunnel: Option<IpAddr>,
    /// The address of its IPv4 VXLAN device.
    #[serde(skip_serializing_if = "is_default")]
    pub vxlan_tunnel_v4: Option<IpAddr>,
    /// The MAC address of its IPv4 VXLAN device; computed from the name where empty.
    #[serde(skip_serializing_if = "is_default")]
    pub vxlan_mac_v4: String,
    /// The address of its IPv6 VXLAN device.
    #[serde(skip_serializing_if = "is_default")]
    pub vxlan_tunnel_v6: Option<IpAddr>,
    /// The MAC address of its IPv6 VXLAN device; computed from the name where empty.
    #[serde(skip_serializing_if = "is_default")]
    pub vxlan_mac_v6: String,
    /// Its WireGuard devices.
    #[serde(skip_serializing_if = "is_default")]
    pub wireguard: Option<Wireguard>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAddress {
    pub address: IpAddr,
    /// What it is for.
    pub kind: NodeAddressKind,
}

/// What an address of a node is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeAddressKind {
    /// The node's agent uses it.
    CalicoNodeIP,
    /// Reachable inside the cluster.
    InternalIP,
    /// Reachable from outside.
    ExternalIP,
    /// Not said.
    Other,
}

/// The WireGuard devices of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Wireguard {
    /// The public key of the IPv4 device; empty if there is none.
    #[serde(skip_serializing_if = "is_default")]
    pub public_key: String,
    /// The address of the IPv4 device.
    #[serde(skip_serializing_if = "is_default")]
    pub interface_ipv4: Option<IpAddr>,
    /// The public key of the IPv6 device; empty if there is none.
    #[serde(skip_serializing_if = "is_default")]
    pub public_key_v6: String,
    /// The address of the IPv6 device.
    #[serde(skip_serializing_if = "is_default")]
    pub interface_ipv6: Option<IpAddr>,
}

/// A pool of addresses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IpPool {
    /// When traffic is wrapped in IPIP.
    #[serde(skip_serializing_if = "is_default")]
    pub ipip: EncapMode,
    /// When traffic is wrapped in VXLAN.
    #[serde(skip_serializing_if = "is_default")]
    pub vxlan: EncapMode,
    /// Whether traffic to outside all pools leaves under the node's address.
    #[serde(skip_serializing_if = "is_default")]
    pub masquerade: bool,
    /// No new addresses from it.
    #[serde(skip_serializing_if = "is_default")]
    pub disabled: bool,
    /// What its addresses may be used for.
    #[serde(skip_serializing_if = "is_default")]
    pub allowed_uses: Vec<IpPoolAllowedUse>,
}

/// When traffic between nodes is wrapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncapMode {
    #[default]
    Never,
    Always,
    /// Only to nodes in another subnet.
    CrossSubnet,
}

/// A block of addresses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Block {
    /// The node that it belongs to.
    #[serde(skip_serializing_if = "is_default")]
    pub node: Option<String>,
    /// Its addresses that are in use on a known node.
    #[serde(skip_serializing_if = "is_default")]
    pub allocations: Vec<Allocation>,
}

/// An address in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Allocation {
    pub address: IpAddr,
    /// The node where it is used.
    pub node: String,
}

/// Endpoints behind a service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointSlice {
    /// The name of the service; it is in the namespace of the slice.
    pub service: String,
    /// Addresses of the endpoints.
    #[serde(skip_serializing_if = "is_default")]
    pub addresses: Vec<IpAddr>,
    #[serde(skip_serializing_if = "is_default")]
    pub ports: Vec<SlicePort>,
}

/// A port of the endpoints behind a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SlicePort {
    pub protocol: Protocol,
    /// The number.
    pub port: u16,
}

/// A Kubernetes service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Service {
    /// `ClusterIP`, `NodePort`, `LoadBalancer` or `ExternalName`.
    pub r#type: String,
    /// Addresses inside the cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub cluster_ips: Vec<String>,
    /// The load balancer's address that was asked for.
    #[serde(skip_serializing_if = "is_default")]
    pub load_balancer_ip: String,
    /// The load balancer's addresses as assigned.
    #[serde(skip_serializing_if = "is_default")]
    pub load_balancer_ingress_ips: Vec<String>,
    /// Addresses outside the cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub external_ips: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub ports: Vec<ServicePort>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// The protocol, as Kubernetes writes it.
    pub protocol: String,
    /// The number.
    pub port: u16,
    /// The port on every node; 0 for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub node_port: u16,
}

/// Parameters for nodes, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Configuration {
    /// The nodes that they are for, where the name of the object does not say so.
    #[serde(skip_serializing_if = "is_default")]
    pub node_selector: String,
    /// When they were made, in seconds of Unix time: of several that select a node, the oldest count.
    #[serde(skip_serializing_if = "is_default")]
    pub created: Option<i64>,
    /// The parameters that are set.
    pub parameters: BTreeMap<String, Given>,
}

/// The cluster as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Cluster {
    /// Parameters about the cluster: `ClusterGUID`, `ClusterType`, `CalicoVersion`, `Variant`.
    pub parameters: BTreeMap<String, Given>,
    /// Whether nodes may use the datastore; not while it is being migrated.
    #[serde(skip_serializing_if = "is_default")]
    pub datastore_ready: Option<bool>,
}

/// The cluster's BGP configuration, as far as data planes need it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BgpConfiguration {
    /// Ranges of services' cluster addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub service_cluster_cidrs: Vec<String>,
    /// Ranges of services' external addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub service_external_cidrs: Vec<String>,
    /// Ranges of load balancers' addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub service_load_balancer_cidrs: Vec<String>,
    /// The address that local workloads peer with over IPv4.
    #[serde(skip_serializing_if = "is_default")]
    pub local_workload_peering_ip_v4: String,
    /// The address that local workloads peer with over IPv6.
    #[serde(skip_serializing_if = "is_default")]
    pub local_workload_peering_ip_v6: String,
}

/// A BGP peer, as far as it concerns workloads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BgpPeer {
    /// The one node that it is for.
    #[serde(skip_serializing_if = "is_default")]
    pub node: String,
    /// The nodes that it is for.
    #[serde(skip_serializing_if = "is_default")]
    pub node_selector: String,
    /// The workloads that it peers with.
    #[serde(skip_serializing_if = "is_default")]
    pub local_workload_selector: String,
}

/// A virtual machine on its way from one node to another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LiveMigration {
    /// Its unique identifier.
    pub uid: String,
    /// The workload that moves.
    #[serde(skip_serializing_if = "is_default")]
    pub source: Option<MigrationSource>,
    /// The workload that it becomes.
    #[serde(skip_serializing_if = "is_default")]
    pub target: Option<MigrationTarget>,
}

/// What moves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MigrationSource {
    /// All endpoints of a workload.
    Workload {
        node: String,
        orchestrator: String,
        workload: String,
    },
    Endpoint(WorkloadEndpointKey),
}

/// What it becomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MigrationTarget {
    /// The endpoints with such labels.
    Selector(String),
    Endpoint(WorkloadEndpointKey),
}

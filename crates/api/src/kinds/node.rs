//! `Node`: what the dataplane and routing need to know about one host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::scalar::AsNumber;

/// Addresses and identity of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSpec {
    /// BGP identity of the node; absent when the node does not take part in BGP.
    #[serde(skip_serializing_if = "is_default")]
    pub bgp: Option<NodeBgpSpec>,
    /// IPv4 address of the node's VXLAN device.
    #[serde(rename = "ipv4VXLANTunnelAddr", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "ipv4"))]
    pub ipv4_vxlan_tunnel_addr: String,
    /// MAC address of the IPv4 VXLAN device; derived from the node name when empty.
    #[serde(rename = "vxlanTunnelMACAddr", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "mac"))]
    pub vxlan_tunnel_mac_addr: String,
    /// IPv6 address of the node's IPv6 VXLAN device.
    #[serde(rename = "ipv6VXLANTunnelAddr", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "ipv6"))]
    pub ipv6_vxlan_tunnel_addr: String,
    /// MAC address of the IPv6 VXLAN device; derived from the node name when empty.
    #[serde(rename = "vxlanTunnelMACAddrV6", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "mac"))]
    pub vxlan_tunnel_mac_addr_v6: String,
    /// Names under which orchestrators know this node.
    #[serde(skip_serializing_if = "is_default")]
    pub orch_refs: Vec<OrchRef>,
    /// Addresses of the node's WireGuard devices.
    #[serde(skip_serializing_if = "is_default")]
    pub wireguard: Option<NodeWireguardSpec>,
    /// All known addresses of the node, with their roles.
    #[serde(skip_serializing_if = "is_default")]
    pub addresses: Vec<NodeAddress>,
    /// Network interfaces of the node and their addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub interfaces: Vec<NodeInterface>,
}

/// One address of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["address"]))]
pub struct NodeAddress {
    /// Address, with or without a prefix length.
    pub address: String,
    /// Role of the address: `CalicoNodeIP`, `InternalIP` or `ExternalIP`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "oneof=CalicoNodeIP InternalIP ExternalIP"))]
    pub r#type: String,
}

/// One network interface of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeInterface {
    /// Name the kernel gives the interface.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "name"))]
    pub name: String,
    /// Addresses configured on the interface.
    #[serde(skip_serializing_if = "is_default")]
    pub addresses: Vec<String>,
}

/// Facts the node reports about itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatus {
    /// Public key of the IPv4 WireGuard device; other nodes encrypt to it.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "wireguardPublicKey"))]
    pub wireguard_public_key: String,
    /// Public key of the IPv6 WireGuard device; other nodes encrypt to it.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "wireguardPublicKey"))]
    pub wireguard_public_key_v6: String,
    /// Pod ranges Kubernetes assigned to the node; used with host-local IPAM.
    #[serde(rename = "podCIDRs", skip_serializing_if = "is_default")]
    pub pod_cidrs: Vec<String>,
}

/// Name of a node in one orchestrator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["orchestrator"]))]
pub struct OrchRef {
    /// Name the orchestrator uses for the node.
    #[serde(skip_serializing_if = "is_default")]
    pub node_name: String,
    /// Which orchestrator, such as `k8s`.
    pub orchestrator: String,
}

/// BGP identity of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeBgpSpec {
    /// AS number of this node; the cluster's number when left out.
    #[serde(skip_serializing_if = "is_default")]
    pub as_number: Option<AsNumber>,
    /// IPv4 address of the node with the prefix length of its subnet.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "cidrv4"))]
    pub ipv4_address: String,
    /// IPv6 address of the node with the prefix length of its subnet.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "cidrv6"))]
    pub ipv6_address: String,
    /// IPv4 address of the node's IPIP device.
    #[serde(rename = "ipv4IPIPTunnelAddr", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "ipv4"))]
    pub ipv4_ipip_tunnel_addr: String,
    /// Makes the node a route reflector with this cluster ID, written like an IPv4 address.
    #[serde(rename = "routeReflectorClusterID", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "ipv4"))]
    pub route_reflector_cluster_id: String,
}

/// Addresses of the WireGuard devices of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeWireguardSpec {
    /// Address of the IPv4 WireGuard device.
    #[serde(rename = "interfaceIPv4Address", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "ipv4"))]
    pub interface_ipv4_address: String,
    /// Address of the IPv6 WireGuard device.
    #[serde(rename = "interfaceIPv6Address", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "ipv6"))]
    pub interface_ipv6_address: String,
}

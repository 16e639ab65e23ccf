//! Routes, tunnels, nodes and pools.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Serialize, Serializer};
use tortie_api::ip_pool::IpPoolAllowedUse;

use crate::input::{EncapMode, Labels};
use crate::is_default;

/// A route, or what is known of a range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the fields of the message")]
pub struct Route {
    /// The destination.
    pub dst: IpNet,
    /// What is there.
    #[serde(skip_serializing_if = "is_default")]
    pub types: RouteTypes,
    /// The kind of pool that the destination is in.
    #[serde(skip_serializing_if = "is_default")]
    pub ip_pool_type: PoolType,
    /// The node where the destination is.
    #[serde(skip_serializing_if = "is_default")]
    pub dst_node_name: String,
    /// The address of that node.
    #[serde(skip_serializing_if = "is_default")]
    pub dst_node_ip: Option<IpAddr>,
    /// Whether that node is reached without a tunnel, in a pool of mode `CrossSubnet`.
    #[serde(skip_serializing_if = "is_default")]
    pub same_subnet: bool,
    /// Whether traffic from there to outside all pools leaves under the node's address.
    #[serde(skip_serializing_if = "is_default")]
    pub nat_outgoing: bool,
    /// Whether it is the address of a workload on this node.
    #[serde(skip_serializing_if = "is_default")]
    pub local_workload: bool,
    /// The tunnel devices that have this address.
    #[serde(skip_serializing_if = "is_default")]
    pub tunnel_type: Option<TunnelType>,
    /// Whether the address is used on another node than the one its block belongs to.
    #[serde(skip_serializing_if = "is_default")]
    pub borrowed: bool,
}

/// What is at a destination, as a set of bits. None: only facts about a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RouteTypes(pub u8);

/// The kind of pool that a destination is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PoolType {
    /// Not in a pool for workloads.
    #[default]
    None,
    /// In a pool without encapsulation.
    NoEncap,
    /// In a pool with VXLAN.
    Vxlan,
    /// In a pool with IPIP.
    Ipip,
}

/// The tunnel devices that have an address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TunnelType {
    #[serde(skip_serializing_if = "is_default")]
    pub ipip: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub vxlan: bool,
    /// WireGuard.
    #[serde(skip_serializing_if = "is_default")]
    pub wireguard: bool,
}

/// A node's end of the VXLAN tunnels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Vtep {
    pub node: String,
    /// The MAC address of its IPv4 device.
    #[serde(skip_serializing_if = "is_default")]
    pub mac: String,
    /// The address of its IPv4 device.
    #[serde(skip_serializing_if = "is_default")]
    pub ipv4_addr: Option<IpAddr>,
    /// The node's own IPv4 address.
    #[serde(skip_serializing_if = "is_default")]
    pub parent_device_ip: Option<IpAddr>,
    /// The MAC address of its IPv6 device.
    #[serde(skip_serializing_if = "is_default")]
    pub mac_v6: String,
    /// The address of its IPv6 device.
    #[serde(skip_serializing_if = "is_default")]
    pub ipv6_addr: Option<IpAddr>,
    /// The node's own IPv6 address.
    #[serde(rename = "parentDeviceIpv6", skip_serializing_if = "is_default")]
    pub parent_device_ipv6: Option<IpAddr>,
}

/// A node of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// Its name.
    pub hostname: String,
    /// Its IPv4 address with the prefix of its subnet.
    #[serde(skip_serializing_if = "is_default")]
    pub ipv4_addr: String,
    /// Its IPv6 address with the prefix of its subnet.
    #[serde(skip_serializing_if = "is_default")]
    pub ipv6_addr: String,
    /// Its AS number.
    #[serde(skip_serializing_if = "is_default")]
    pub asnumber: String,
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
}

/// A pool of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IpamPool {
    /// Its range.
    pub cidr: IpNet,
    /// Whether traffic to outside all pools leaves under the node's address.
    #[serde(skip_serializing_if = "is_default")]
    pub masquerade: bool,
    /// When traffic is wrapped in IPIP.
    #[serde(skip_serializing_if = "is_default")]
    pub ipip_mode: EncapMode,
    /// When traffic is wrapped in VXLAN.
    #[serde(skip_serializing_if = "is_default")]
    pub vxlan_mode: EncapMode,
    /// What its addresses may be used for.
    #[serde(skip_serializing_if = "is_default")]
    pub allowed_uses: Vec<IpPoolAllowedUse>,
}

/// Which kinds of tunnel are in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the fields of the message")]
pub struct Encapsulation {
    pub ipip_enabled: bool,
    /// VXLAN over IPv4.
    pub vxlan_enabled: bool,
    /// VXLAN over IPv6.
    pub vxlan_enabled_v6: bool,
    /// Routes without a tunnel.
    pub no_encap_enabled: bool,
}

/// The cluster's BGP configuration, as far as data planes need it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GlobalBgpConfig {
    /// Ranges of services' cluster addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub service_cluster_cidrs: Vec<String>,
    /// Ranges of services' external addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub service_external_cidrs: Vec<String>,
    /// Ranges of load balancers' addresses.
    #[serde(
        rename = "serviceLoadbalancerCidrs",
        skip_serializing_if = "is_default"
    )]
    pub service_load_balancer_cidrs: Vec<String>,
    /// The address that local workloads peer with over IPv4.
    #[serde(skip_serializing_if = "is_default")]
    pub local_workload_peering_ip_v4: String,
    /// The address that local workloads peer with over IPv6.
    #[serde(skip_serializing_if = "is_default")]
    pub local_workload_peering_ip_v6: String,
}

// === impl RouteTypes ===

impl RouteTypes {
    /// A workload on another node.
    pub const REMOTE_WORKLOAD: Self = Self(1);
    /// Another node itself.
    pub const REMOTE_HOST: Self = Self(2);
    /// A workload on this node.
    pub const LOCAL_WORKLOAD: Self = Self(4);
    /// This node itself.
    pub const LOCAL_HOST: Self = Self(8);
    /// A tunnel device of another node.
    pub const REMOTE_TUNNEL: Self = Self(16);
    /// A tunnel device of this node.
    pub const LOCAL_TUNNEL: Self = Self(32);

    const NAMES: [(Self, &'static str); 6] = [
        (Self::REMOTE_WORKLOAD, "REMOTE_WORKLOAD"),
        (Self::REMOTE_HOST, "REMOTE_HOST"),
        (Self::LOCAL_WORKLOAD, "LOCAL_WORKLOAD"),
        (Self::LOCAL_HOST, "LOCAL_HOST"),
        (Self::REMOTE_TUNNEL, "REMOTE_TUNNEL"),
        (Self::LOCAL_TUNNEL, "LOCAL_TUNNEL"),
    ];

    /// Whether all of `other` is in it.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOrAssign for RouteTypes {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Serialize for RouteTypes {
    /// A single type by its name, a combination by its number.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match Self::NAMES.iter().find(|(types, _)| types == self) {
            Some((_, name)) => serializer.serialize_str(name),
            None => serializer.serialize_u8(self.0),
        }
    }
}

//! Interfaces, routes, tunnels.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use crate::choice::{ProgramClusterRoutes, RouteSource};
use crate::resolve::Values;
use crate::value::Pattern;

const DEFAULT_METADATA_ADDRESS: &str = "127.0.0.1";
const DEFAULT_METADATA_PORT: u16 = 8775;

/// Network interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// What names of workload interfaces start with; never empty.
    pub prefixes: Vec<String>,
    /// Interfaces that count as absent.
    pub exclude: Vec<Pattern>,
    /// Time between checks of all interfaces, if there are any.
    pub refresh_interval: Option<Duration>,
    /// Interfaces of the host whose MTU limits that of workloads.
    pub mtu_pattern: Option<Pattern>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteConfig {
    /// Time between checks that routes are still right, if there are any.
    pub refresh_interval: Option<Duration>,
    /// Source address of this host on routes to workloads.
    pub device_source: Option<Ipv4Addr>,
    /// Source address of this host on IPv6 routes to workloads.
    pub device_source_v6: Option<Ipv6Addr>,
    /// Protocol number that marks our routes in the kernel.
    pub protocol: u8,
    /// Whether others' routes to workload interfaces are removed.
    pub remove_external: bool,
    /// Routes to other nodes that the agent programs, rather than BGP.
    pub program_cluster_routes: ProgramClusterRoutes,
    /// What routes to other nodes are made from.
    pub source: RouteSource,
    /// Whether all routes are left alone.
    pub sync_disabled: bool,
    /// Metric of IPv4 routes to workloads.
    pub normal_priority_v4: u32,
    /// Metric of IPv6 routes to workloads.
    pub normal_priority_v6: u32,
}

/// Tunnels between nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a parameter of its own"
)]
pub struct EncapConfig {
    /// Whether VXLAN is used; pools decide without it.
    pub vxlan: Option<bool>,
    /// UDP port of VXLAN.
    pub vxlan_port: u16,
    /// Number of the VXLAN network.
    pub vxlan_id: u32,
    /// MTU of the VXLAN device; 0 to find it out.
    pub vxlan_mtu: u32,
    /// MTU of the IPv6 VXLAN device; 0 to find it out.
    pub vxlan_mtu_v6: u32,
    /// Address of this node's VXLAN device.
    pub vxlan_address: Option<Ipv4Addr>,
    /// Address of this node's IPv6 VXLAN device.
    pub vxlan_address_v6: Option<Ipv6Addr>,
    /// Whether IP-in-IP is used; pools decide without it.
    pub ipip: Option<bool>,
    /// Address of this node's IP-in-IP device.
    pub ipip_address: Option<Ipv4Addr>,
    /// MTU of the IP-in-IP device; 0 to find it out.
    pub ipip_mtu: u32,
    /// Whether IPv4 between nodes must be encrypted.
    pub encrypts: bool,
    /// Whether IPv6 between nodes must be encrypted.
    pub encrypts_v6: bool,
    /// Whether it may go in clear text all the same, because this agent cannot encrypt. No parameter says so.
    pub allows_cleartext: bool,
    /// Whether workloads may send VXLAN packets of their own.
    pub allow_vxlan_from_workloads: bool,
    /// Whether workloads may send IP-in-IP packets of their own.
    pub allow_ipip_from_workloads: bool,
}

/// `OpenStack`'s metadata server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataConfig {
    /// Its address or name; without it, workloads have no way to it.
    pub address: Option<String>,
    pub port: u16,
}

// === impl InterfaceConfig ===

impl InterfaceConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            prefixes: values.get("InterfacePrefix"),
            exclude: values.get("InterfaceExclude"),
            refresh_interval: values.get("InterfaceRefreshInterval"),
            mtu_pattern: values.get("MTUIfacePattern"),
        }
    }
}

// === impl RouteConfig ===

impl RouteConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            refresh_interval: values.get("RouteRefreshInterval"),
            device_source: values.get("DeviceRouteSourceAddress"),
            device_source_v6: values.get("DeviceRouteSourceAddressIPv6"),
            protocol: values.get("DeviceRouteProtocol"),
            remove_external: values.get("RemoveExternalRoutes"),
            program_cluster_routes: values.get("ProgramClusterRoutes"),
            source: values.get("RouteSource"),
            sync_disabled: values.get("RouteSyncDisabled"),
            normal_priority_v4: values.get("IPv4NormalRoutePriority"),
            normal_priority_v6: values.get("IPv6NormalRoutePriority"),
        }
    }
}

// === impl EncapConfig ===

impl EncapConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            vxlan: values.get("VXLANEnabled"),
            vxlan_port: values.get("VXLANPort"),
            vxlan_id: values.get("VXLANVNI"),
            vxlan_mtu: values.get("VXLANMTU"),
            vxlan_mtu_v6: values.get("VXLANMTUV6"),
            vxlan_address: values.get("IPv4VXLANTunnelAddr"),
            vxlan_address_v6: values.get("IPv6VXLANTunnelAddr"),
            ipip: values.get("IpInIpEnabled"),
            ipip_address: values.get("IpInIpTunnelAddr"),
            ipip_mtu: values.get("IpInIpMtu"),
            encrypts: values.get("WireguardEnabled"),
            encrypts_v6: values.get("WireguardEnabledV6"),
            allows_cleartext: false,
            allow_vxlan_from_workloads: values.get("AllowVXLANPacketsFromWorkloads"),
            allow_ipip_from_workloads: values.get("AllowIPIPPacketsFromWorkloads"),
        }
    }
}

// === impl MetadataConfig ===

impl MetadataConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            address: values.get("MetadataAddr"),
            port: values.get("MetadataPort"),
        }
    }

    /// Whether there is a server other than the one that nobody asked for.
    pub(super) fn is_changed(&self) -> bool {
        let elsewhere = |address: &String| address != DEFAULT_METADATA_ADDRESS;
        self.address.as_ref().is_some_and(elsewhere)
            || ![0, DEFAULT_METADATA_PORT].contains(&self.port)
    }
}

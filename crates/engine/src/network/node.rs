//! What follows from one node: its addresses for routes, its metadata, its ends of tunnels.

use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::names::{IpVersion, vtep_mac};

use super::route_table::UseKind;
use crate::input::{Node, NodeAddressKind};
use crate::message::{Host, Vtep};

/// What routes need to know of a node.
///
/// A node without any address of its own does not take part in routing, not even with its tunnel devices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RouteNode {
    /// Its IPv4 address, with the prefix length of its subnet.
    ipv4: Option<IpNet>,
    /// Its IPv6 address, with the prefix length of its subnet.
    ipv6: Option<IpNet>,
    /// All addresses of the node itself, in order.
    pub(super) hosts: Vec<IpNet>,
    /// The addresses of its tunnel devices, in order.
    pub(super) tunnels: Vec<(IpNet, UseKind)>,
}

// === impl RouteNode ===

impl RouteNode {
    pub(super) fn new(node: &Node) -> Option<Self> {
        let mut ipv4 = usable(node.bgp_ipv4, IpVersion::V4);
        let mut ipv6 = usable(node.bgp_ipv6, IpVersion::V6);
        if ipv4.is_none() && ipv6.is_none() {
            // Unlike in the metadata, an address for BGP of either version rules out the others.
            ipv4 = listed_address(node, IpVersion::V4);
            ipv6 = listed_address(node, IpVersion::V6);
        }
        if ipv4.is_none() && ipv6.is_none() {
            return None;
        }
        let listed = node.addresses.iter().map(|listed| listed.address);
        let mut hosts: Vec<IpNet> = listed
            .chain(ipv4.map(|net| net.addr()))
            .chain(ipv6.map(|net| net.addr()))
            .filter(|address| !address.is_unspecified())
            .map(IpNet::from)
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        Some(Self {
            ipv4,
            ipv6,
            hosts,
            tunnels: tunnels(node),
        })
    }

    /// The node's address of the same version as a range.
    pub(super) fn address_for(&self, range: IpNet) -> Option<IpAddr> {
        self.net_for(range).map(|net| net.addr())
    }

    /// Whether an address is in the subnet of the node. An address without subnet is in one of its own.
    pub(super) fn has_in_subnet(&self, address: IpAddr) -> bool {
        self.net_for(address.into())
            .is_some_and(|net| net.prefix_len() > 0 && net.contains(&address))
    }

    /// Whether the addresses and subnets are the same, whatever else changed.
    pub(super) fn same_addresses(&self, other: &Self) -> bool {
        self.ipv4 == other.ipv4 && self.ipv6 == other.ipv6
    }

    fn net_for(&self, range: IpNet) -> Option<IpNet> {
        match range {
            IpNet::V4(_) => self.ipv4,
            IpNet::V6(_) => self.ipv6,
        }
    }
}

fn tunnels(node: &Node) -> Vec<(IpNet, UseKind)> {
    let wireguard = node.wireguard.as_ref();
    let mut tunnels: Vec<(IpNet, UseKind)> = [
        (node.ipip_tunnel, UseKind::IpipTunnel),
        (node.vxlan_tunnel_v4, UseKind::VxlanTunnel),
        (node.vxlan_tunnel_v6, UseKind::VxlanTunnel),
        (
            wireguard.and_then(|wireguard| wireguard.interface_ipv4),
            UseKind::WireguardTunnel,
        ),
        (
            wireguard.and_then(|wireguard| wireguard.interface_ipv6),
            UseKind::WireguardTunnel,
        ),
    ]
    .into_iter()
    .filter_map(|(address, kind)| Some((IpNet::from(address?), kind)))
    .collect();
    tunnels.sort_unstable();
    tunnels.dedup();
    tunnels
}

/// The metadata of a node.
pub(super) fn host(name: &str, node: &Node) -> Host {
    let address = |bgp: Option<IpNet>, version: IpVersion| {
        usable(bgp, version)
            .or_else(|| listed_address(node, version))
            .map_or_else(String::new, |net| net.to_string())
    };
    Host {
        hostname: name.to_owned(),
        ipv4_addr: address(node.bgp_ipv4, IpVersion::V4),
        ipv6_addr: address(node.bgp_ipv6, IpVersion::V6),
        asnumber: node
            .as_number
            .map_or_else(String::new, |number| number.to_string()),
        labels: node.labels.clone(),
    }
}

/// The node's end of the VXLAN tunnels: for each IP version that has both an address of the device and one for BGP.
pub(super) fn vtep(name: &str, node: &Node) -> Option<Vtep> {
    let half = |device: Option<IpAddr>, bgp: Option<IpNet>, mac: &str, version: IpVersion| {
        let parent = usable(bgp, version)?.addr();
        let mac = if mac.is_empty() {
            vtep_mac(name, version)
        } else {
            mac.to_owned()
        };
        Some((device?, parent, mac))
    };
    let v4 = half(
        node.vxlan_tunnel_v4,
        node.bgp_ipv4,
        &node.vxlan_mac_v4,
        IpVersion::V4,
    );
    let v6 = half(
        node.vxlan_tunnel_v6,
        node.bgp_ipv6,
        &node.vxlan_mac_v6,
        IpVersion::V6,
    );
    if v4.is_none() && v6.is_none() {
        return None;
    }
    let mut vtep = Vtep {
        node: name.to_owned(),
        ..Vtep::default()
    };
    if let Some((device, parent, mac)) = v4 {
        vtep.ipv4_addr = Some(device);
        vtep.parent_device_ip = Some(parent);
        vtep.mac = mac;
    }
    if let Some((device, parent, mac)) = v6 {
        vtep.ipv6_addr = Some(device);
        vtep.parent_device_ipv6 = Some(parent);
        vtep.mac_v6 = mac;
    }
    Some(vtep)
}

/// The first of the node's listed addresses, those inside the cluster first.
fn listed_address(node: &Node, version: IpVersion) -> Option<IpNet> {
    [NodeAddressKind::InternalIP, NodeAddressKind::ExternalIP]
        .into_iter()
        .find_map(|kind| {
            node.addresses
                .iter()
                .filter(|listed| listed.kind == kind)
                .find_map(|listed| usable(Some(listed.address.into()), version))
        })
}

/// An address, unless it is of the wrong version or says nothing.
fn usable(net: Option<IpNet>, version: IpVersion) -> Option<IpNet> {
    net.filter(|net| {
        let right_version = match net {
            IpNet::V4(_) => version == IpVersion::V4,
            IpNet::V6(_) => version == IpVersion::V6,
        };
        right_version && !net.addr().is_unspecified()
    })
}

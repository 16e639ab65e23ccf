//! The addresses of a node, in the order in which its host endpoints list them.

use ipnet::IpNet;
use tortie_api::Node;
use tortie_api::net::{parse_cidr_or_ip, parse_ip};

/// The type of addresses that nodes use among each other.
const INTERNAL: &str = "InternalIP";

/// All addresses of a node that can be read: of BGP, of tunnel devices, internal ones, and those of interfaces.
pub(super) fn of(node: &Node) -> Vec<String> {
    let spec = &node.spec;
    let mut addresses = Vec::new();
    if let Some(bgp) = &spec.bgp {
        for network in [&bgp.ipv4_address, &bgp.ipv6_address] {
            let address = parse_cidr_or_ip(network).map(|network| network.ip().to_string());
            addresses.extend(address);
        }
        addresses.push(bgp.ipv4_ipip_tunnel_addr.clone());
    }
    addresses.push(spec.ipv4_vxlan_tunnel_addr.clone());
    addresses.push(spec.ipv6_vxlan_tunnel_addr.clone());
    if let Some(wireguard) = &spec.wireguard {
        addresses.push(wireguard.interface_ipv4_address.clone());
        addresses.push(wireguard.interface_ipv6_address.clone());
    }
    let internal = spec
        .addresses
        .iter()
        .filter(|address| address.r#type == INTERNAL)
        .map(|address| &address.address);
    add(&mut addresses, internal);
    let interfaces = spec.interfaces.iter();
    add(
        &mut addresses,
        interfaces.flat_map(|interface| &interface.addresses),
    );
    addresses.retain(|address| parse_cidr_or_ip(address).is_some());
    addresses
}

/// Adds those that are not listed yet.
pub(super) fn add<'a>(listed: &mut Vec<String>, addresses: impl IntoIterator<Item = &'a String>) {
    for address in addresses {
        if !listed.contains(address) {
            listed.push(address.clone());
        }
    }
}

/// Those inside any of the networks.
pub(super) fn within(addresses: &[String], networks: &[IpNet]) -> Vec<String> {
    let parsed = addresses.iter().filter_map(|address| parse_ip(address));
    parsed
        .filter(|address| networks.iter().any(|network| network.contains(address)))
        .map(|address| address.to_string())
        .collect()
}

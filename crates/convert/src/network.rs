//! Pools, blocks and nodes.

use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::ip_pool::{IpPoolSpec, IpipMode, VxlanMode};
use tortie_api::ipam_block::IpamBlockSpec;
use tortie_api::node::NodeAddress as ApiNodeAddress;
use tortie_api::{Node as ApiNode, Path, Problems};

use super::read;
use tortie_engine::input::{
    Allocation, Block, EncapMode, IpPool, Node, NodeAddress, NodeAddressKind, Wireguard,
};

/// What the affinity of a block starts with, before the name of its node.
const AFFINITIES: [&str; 2] = ["host:", "virtual:"];

/// The attribute of an allocation that names the node where the address is used.
const NODE_ATTRIBUTE: &str = "node";

/// Converts a pool.
pub(super) fn pool(spec: &IpPoolSpec, problems: &mut Problems) -> Option<(IpNet, IpPool)> {
    let root = Path::ROOT;
    let at = root.field("spec");
    let range = read::range(&at.field("cidr"), &spec.cidr, problems)?;
    let pool = IpPool {
        ipip: match spec.ipip_mode {
            Some(IpipMode::Always) => EncapMode::Always,
            Some(IpipMode::CrossSubnet) => EncapMode::CrossSubnet,
            Some(IpipMode::Never) | None => EncapMode::Never,
        },
        vxlan: match spec.vxlan_mode {
            Some(VxlanMode::Always) => EncapMode::Always,
            Some(VxlanMode::CrossSubnet) => EncapMode::CrossSubnet,
            Some(VxlanMode::Never) | None => EncapMode::Never,
        },
        masquerade: spec.nat_outgoing,
        disabled: spec.disabled,
        allowed_uses: spec.allowed_uses.clone(),
    };
    Some((range, pool))
}

/// Converts a block; one that is marked as deleted counts as absent.
pub(super) fn block(
    spec: &IpamBlockSpec,
    problems: &mut Problems,
) -> Option<(IpNet, Option<Block>)> {
    let root = Path::ROOT;
    let at = root.field("spec");
    let range = read::range(&at.field("cidr"), &spec.cidr, problems)?;
    if spec.deleted {
        return Some((range, None));
    }
    let affinity = spec.affinity.as_deref().unwrap_or_default();
    let node = AFFINITIES
        .iter()
        .find_map(|start| affinity.strip_prefix(start))
        .filter(|node| !node.is_empty());
    let mut allocations = Vec::new();
    for (ordinal, attribute) in spec.allocations.iter().enumerate() {
        let Some(index) = *attribute else {
            continue;
        };
        let at = at.field("allocations");
        let attributes = usize::try_from(index)
            .ok()
            .and_then(|index| spec.attributes.get(index));
        let (Some(attributes), Some(address)) = (attributes, nth(range, ordinal)) else {
            problems.add(
                &at.index(ordinal),
                index,
                "must be the index of an attribute, at the place of an address of the block; \
                 it is ignored",
            );
            continue;
        };
        // Addresses of an owner that recorded no node have no place to go to.
        if let Some(node) = attributes.active_owner_attrs.get(NODE_ATTRIBUTE)
            && !node.is_empty()
        {
            let node = node.clone();
            allocations.push(Allocation { address, node });
        }
    }
    let block = Block {
        node: node.map(str::to_owned),
        allocations,
    };
    Some((range, Some(block)))
}

/// The address at a place of a range, if the range has that many.
fn nth(range: IpNet, place: usize) -> Option<IpAddr> {
    let address = match range.network() {
        IpAddr::V4(first) => {
            let place = u32::try_from(place).ok()?;
            IpAddr::V4(u32::from(first).checked_add(place)?.into())
        }
        IpAddr::V6(first) => {
            let place = u128::try_from(place).ok()?;
            IpAddr::V6(u128::from(first).checked_add(place)?.into())
        }
    };
    range.contains(&address).then_some(address)
}

/// Converts a node.
pub(super) fn node(node: &ApiNode, problems: &mut Problems) -> Option<Node> {
    let spec = &node.spec;
    let root = Path::ROOT;
    let at = root.field("spec");
    let at_bgp = at.field("bgp");
    let bgp = spec.bgp.clone().unwrap_or_default();
    let mut net = |field: &str, text: &str| {
        read::optional(text, |text| {
            let cidr = read::cidr(&at_bgp.field(field), text, problems)?;
            IpNet::new(cidr.ip(), cidr.prefix()).ok()
        })
    };
    let bgp_ipv4 = net("ipv4Address", &bgp.ipv4_address);
    let bgp_ipv6 = net("ipv6Address", &bgp.ipv6_address);
    let mut address = |at: &Path<'_>, field: &str, text: &str| {
        read::optional(text, |text| read::address(&at.field(field), text, problems))
    };
    let ipip_tunnel = address(&at_bgp, "ipv4IPIPTunnelAddr", &bgp.ipv4_ipip_tunnel_addr);
    let vxlan_tunnel_v4 = address(&at, "ipv4VXLANTunnelAddr", &spec.ipv4_vxlan_tunnel_addr);
    let vxlan_tunnel_v6 = address(&at, "ipv6VXLANTunnelAddr", &spec.ipv6_vxlan_tunnel_addr);
    let at_wireguard = at.field("wireguard");
    let wireguard = spec.wireguard.clone().unwrap_or_default();
    let interface_ipv4 = address(
        &at_wireguard,
        "interfaceIPv4Address",
        &wireguard.interface_ipv4_address,
    );
    let interface_ipv6 = address(
        &at_wireguard,
        "interfaceIPv6Address",
        &wireguard.interface_ipv6_address,
    );
    let addresses = addresses(&at.field("addresses"), &spec.addresses, problems);
    let wireguard = Wireguard {
        public_key: node.status.wireguard_public_key.clone(),
        interface_ipv4: interface_ipv4?,
        public_key_v6: node.status.wireguard_public_key_v6.clone(),
        interface_ipv6: interface_ipv6?,
    };
    Some(Node {
        labels: node.metadata.labels.clone(),
        bgp_ipv4: bgp_ipv4?,
        bgp_ipv6: bgp_ipv6?,
        as_number: bgp.as_number.map(|number| number.0),
        addresses: addresses?,
        ipip_tunnel: ipip_tunnel?,
        vxlan_tunnel_v4: vxlan_tunnel_v4?,
        vxlan_mac_v4: spec.vxlan_tunnel_mac_addr.clone(),
        vxlan_tunnel_v6: vxlan_tunnel_v6?,
        vxlan_mac_v6: spec.vxlan_tunnel_mac_addr_v6.clone(),
        wireguard: (wireguard != Wireguard::default()).then_some(wireguard),
    })
}

fn addresses(
    at: &Path<'_>,
    addresses: &[ApiNodeAddress],
    problems: &mut Problems,
) -> Option<Vec<NodeAddress>> {
    let mut converted = Vec::new();
    for (index, address) in addresses.iter().enumerate() {
        let at = at.index(index);
        let Some(cidr) = read::cidr(&at.field("address"), &address.address, problems) else {
            continue;
        };
        converted.push(NodeAddress {
            address: cidr.ip(),
            kind: match address.r#type.as_str() {
                "CalicoNodeIP" => NodeAddressKind::CalicoNodeIP,
                "InternalIP" => NodeAddressKind::InternalIP,
                "ExternalIP" => NodeAddressKind::ExternalIP,
                _ => NodeAddressKind::Other,
            },
        });
    }
    (converted.len() == addresses.len()).then_some(converted)
}

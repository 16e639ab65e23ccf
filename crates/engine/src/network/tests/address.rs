//! One rule of routes in each test: addresses of nodes and tunnel devices, and conflicts about addresses.

use super::*;
use crate::input::{NodeAddress, NodeAddressKind, Wireguard};

fn address(address: &str, kind: NodeAddressKind) -> NodeAddress {
    NodeAddress {
        address: ip(address),
        kind,
    }
}

#[test]
fn listed_addresses_of_a_node_are_hosts_and_stand_in_for_bgp() {
    let listed = |node: &mut Node| {
        node.addresses = vec![
            address("172.16.0.9", NodeAddressKind::ExternalIP),
            address("0.0.0.0", NodeAddressKind::InternalIP),
            address("192.168.0.2", NodeAddressKind::InternalIP),
            address("fd00::2", NodeAddressKind::ExternalIP),
        ];
    };
    let rest = || {
        vec![
            vxlan_pool("10.0.0.0/16"),
            block("10.0.0.0/26", Some("node-b"), &[]),
        ]
    };
    check(
        &[[rest(), vec![bare_node("node-b", listed)]].concat()],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.0/26 remote-workload in Vxlan at node-b 192.168.0.2",
            "172.16.0.9/32 remote-host in None at node-b 192.168.0.2",
            "192.168.0.2/32 remote-host in None at node-b 192.168.0.2",
            "fd00::2/128 remote-host in None at node-b fd00::2",
        ],
    );
    // With BGP over IPv4, the listed IPv6 address is no way to the node.
    check(
        &[
            [rest(), vec![bare_node("node-b", listed)]].concat(),
            [rest(), vec![node_with("node-b", "192.168.0.7/24", listed)]].concat(),
        ],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.0/26 remote-workload in Vxlan at node-b 192.168.0.7",
            "172.16.0.9/32 remote-host in None at node-b 192.168.0.7",
            "192.168.0.2/32 remote-host in None at node-b 192.168.0.7",
            "192.168.0.7/32 remote-host in None at node-b 192.168.0.7",
            "fd00::2/128 remote-host in None at node-b",
        ],
    );
}

#[test]
fn of_nodes_with_the_same_address_the_first_by_name_counts() {
    let pool = vxlan_pool("10.0.0.0/16");
    let c = node("node-c", "192.168.0.2/24");
    let b = node("node-b", "192.168.0.2/24");
    check(
        &[
            vec![pool.clone(), c.clone()],
            vec![pool.clone(), c.clone(), b.clone()],
        ],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "192.168.0.2/32 remote-host in None at node-b 192.168.0.2",
        ],
    );
    check(
        &[vec![pool.clone(), b, c.clone()], vec![pool, c]],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "192.168.0.2/32 remote-host in None at node-c 192.168.0.2",
        ],
    );
}

#[test]
fn tunnel_devices_have_their_own_type_and_not_that_of_their_block() {
    let tunnels = |node: &mut Node| {
        node.vxlan_tunnel_v4 = Some(ip("10.0.0.0"));
        node.ipip_tunnel = Some(ip("10.0.0.0"));
        node.wireguard = Some(Wireguard {
            interface_ipv4: Some(ip("10.0.2.0")),
            ..Wireguard::default()
        });
    };
    check(
        &[vec![
            vxlan_pool("10.0.0.0/16"),
            node_with("node-b", "192.168.0.2/24", tunnels),
            block("10.0.0.0/26", Some("node-b"), &[("10.0.0.0", "node-b")]),
            // Borrowed by a tunnel; then a dedicated block of one address.
            block("10.0.2.0/26", Some("node-c"), &[]),
            block("10.0.3.0/32", Some(LOCAL), &[]),
            node_with(LOCAL, "192.168.0.1/24", |node| {
                node.vxlan_tunnel_v4 = Some(ip("10.0.3.0"));
            }),
        ]],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.0/26 remote-workload in Vxlan at node-b 192.168.0.2",
            "10.0.0.0/32 remote-tunnel in Vxlan at node-b 192.168.0.2 ipip-device vxlan-device",
            "10.0.2.0/26 remote-workload in Vxlan at node-c",
            "10.0.2.0/32 remote-tunnel in Vxlan at node-b 192.168.0.2 wireguard-device borrowed",
            "10.0.3.0/32 local-workload local-tunnel in Vxlan at node-a 192.168.0.1 vxlan-device",
            "192.168.0.1/32 local-host in None at node-a 192.168.0.1",
            "192.168.0.2/32 remote-host in None at node-b 192.168.0.2",
        ],
    );
}

#[test]
fn a_node_inside_a_block_is_no_workload() {
    check(
        &[vec![
            vxlan_pool("10.0.0.0/16"),
            node("node-b", "10.0.0.5/16"),
            block("10.0.0.0/26", Some("node-b"), &[]),
            block("10.0.0.5/32", Some("node-b"), &[]),
        ]],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.0/26 remote-workload in Vxlan at node-b 10.0.0.5",
            "10.0.0.5/32 remote-host in Vxlan at node-b 10.0.0.5",
        ],
    );
}

#[test]
fn a_workload_outdoes_a_tunnel_of_its_node_and_the_first_node_the_others() {
    let tunnel = |node: &mut Node| node.vxlan_tunnel_v4 = Some(ip("10.0.0.1"));
    check(
        &[vec![
            vxlan_pool("10.0.0.0/16"),
            node_with(LOCAL, "192.168.0.1/24", tunnel),
            node_with("node-b", "192.168.0.2/24", tunnel),
            workload(LOCAL, "w1", &["10.0.0.1/32"]),
            workload(LOCAL, "w2", &["10.0.0.1/32", "10.0.0.1/32"]),
        ]],
        "route",
        &[
            "10.0.0.0/16 in Vxlan",
            "10.0.0.1/32 local-workload in Vxlan at node-a 192.168.0.1 live",
            "192.168.0.1/32 local-host in None at node-a 192.168.0.1",
            "192.168.0.2/32 remote-host in None at node-b 192.168.0.2",
        ],
    );
}

#[test]
fn nothing_is_told_about_the_address_that_stands_for_none() {
    check(
        &[vec![
            vxlan_pool("0.0.0.0/0"),
            vxlan_pool("::/128"),
            node_with("node-b", "192.168.0.2/24", |node| {
                node.ipip_tunnel = Some(ip("0.0.0.0"));
            }),
            node("node-c", "0.0.0.0/32"),
        ]],
        "route",
        &[
            "0.0.0.0/0 in Vxlan",
            "192.168.0.2/32 remote-host in Vxlan at node-b 192.168.0.2",
        ],
    );
}

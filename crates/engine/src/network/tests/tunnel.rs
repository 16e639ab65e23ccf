//! Ends of tunnels, metadata of nodes, pools, encapsulation.

use super::*;
use crate::input::{BgpConfiguration, NodeAddress, NodeAddressKind};
use tortie_api::ip_pool::IpPoolAllowedUse;
use tortie_config::ProgramClusterRoutes;

fn vxlan_node(name: &str, address: &str, device: &str) -> Update {
    node_with(name, address, |node| match ip(device) {
        device @ IpAddr::V4(_) => node.vxlan_tunnel_v4 = Some(device),
        device @ IpAddr::V6(_) => node.vxlan_tunnel_v6 = Some(device),
    })
}

#[test]
fn an_end_of_the_tunnels_needs_both_addresses_of_a_version() {
    let pool = vxlan_pool("10.0.0.0/16");
    let listed_only = bare_node("node-c", |node| {
        node.vxlan_tunnel_v4 = Some(ip("10.0.3.0"));
        node.addresses = vec![NodeAddress {
            address: ip("192.168.0.3"),
            kind: NodeAddressKind::InternalIP,
        }];
    });
    let v4 = r#"{"node":"node-b","mac":"66:89:3a:22:7a:ac","ipv4Addr":"10.0.2.0","parentDeviceIp":"192.168.0.2"}"#;
    check(
        &[
            vec![pool.clone(), vxlan_node("node-b", "fd00::2/64", "10.0.2.0")],
            vec![
                pool.clone(),
                vxlan_node("node-b", "192.168.0.9/24", "10.0.2.0"),
            ],
            vec![
                pool.clone(),
                vxlan_node("node-b", "192.168.0.2/24", "10.0.2.0"),
                node("node-d", "192.168.0.4/24"),
                listed_only,
            ],
        ],
        "vtep",
        &[v4],
    );
    let both = node_with("node-b", "192.168.0.2/24", |node| {
        node.bgp_ipv6 = Some(net("fd00::2/64"));
        node.vxlan_tunnel_v4 = Some(ip("10.0.2.0"));
        node.vxlan_mac_v4 = "66:00:00:00:00:01".to_owned();
        node.vxlan_tunnel_v6 = Some(ip("fd00:1::"));
    });
    check(
        &[
            vec![
                pool.clone(),
                vxlan_node("node-b", "192.168.0.2/24", "10.0.2.0"),
            ],
            vec![pool, both],
        ],
        "vtep",
        &[concat!(
            r#"{"node":"node-b","mac":"66:00:00:00:00:01","ipv4Addr":"10.0.2.0","#,
            r#""parentDeviceIp":"192.168.0.2","macV6":"66:35:be:36:cf:19","#,
            r#""ipv6Addr":"fd00:1::","parentDeviceIpv6":"fd00::2"}"#
        )],
    );
}

#[test]
fn ends_of_the_tunnels_come_and_go_with_vxlan() {
    let node = || vxlan_node("node-b", "192.168.0.2/24", "10.0.2.0");
    let ipip = pool("10.0.0.0/16", |pool| pool.ipip = EncapMode::Always);
    let vxlan = vec![vxlan_pool("10.0.0.0/16"), node()];
    check(&[vxlan.clone(), vec![ipip, node()]], "vtep", &[]);
    let off = Config {
        vxlan_enabled: Some(false),
        ..Config::for_node(LOCAL)
    };
    check_with(&off, &[vxlan], "vtep", &[]);
    let v6 = vec![vxlan_pool("fd00::/64"), node()];
    let line = r#"{"node":"node-b","mac":"66:89:3a:22:7a:ac","ipv4Addr":"10.0.2.0","parentDeviceIp":"192.168.0.2"}"#;
    check_with(&off, &[v6], "vtep", &[line]);
}

#[test]
fn encapsulation_follows_from_the_pools_and_what_is_configured() {
    let plain = || pool("10.1.0.0/16", |pool| pool.disabled = true);
    let ipip = || pool("10.0.0.0/16", |pool| pool.ipip = EncapMode::CrossSubnet);
    let v6 = || vxlan_pool("fd00::/64");
    check(&[vec![]], "encapsulation", &[""]);
    check(&[vec![ipip()], vec![plain()]], "encapsulation", &[""]);
    check(&[vec![plain()], vec![ipip()]], "encapsulation", &["ipip"]);
    check(
        &[vec![ipip()], vec![vxlan_pool("10.0.0.0/16"), v6()]],
        "encapsulation",
        &["vxlan vxlan-v6"],
    );
    check(&[vec![v6()]], "encapsulation", &["vxlan-v6"]);
    let config = Config {
        ipip_enabled: Some(true),
        vxlan_enabled: Some(false),
        cluster_routes: ProgramClusterRoutes::NoEncapOnly,
        ..Config::for_node(LOCAL)
    };
    let pools = vec![plain(), vxlan_pool("10.0.0.0/16")];
    check_with(&config, &[pools], "encapsulation", &["ipip no-encap"]);
}

#[test]
fn metadata_has_the_address_of_each_version_that_is_known_best() {
    let listed = |kinds: &[(&str, NodeAddressKind)]| -> Vec<NodeAddress> {
        let parse = |(address, kind): &(&str, NodeAddressKind)| NodeAddress {
            address: ip(address),
            kind: *kind,
        };
        kinds.iter().map(parse).collect()
    };
    let b = node_with("node-b", "192.168.0.2/24", |node| {
        node.addresses = listed(&[
            ("192.168.0.9", NodeAddressKind::InternalIP),
            ("fd00::8", NodeAddressKind::ExternalIP),
            ("fd00::9", NodeAddressKind::InternalIP),
        ]);
        node.as_number = Some(64512);
        node.labels = [("role".to_owned(), "db".to_owned())].into();
    });
    let c = bare_node("node-c", |node| {
        node.addresses = listed(&[("fd00::7", NodeAddressKind::CalicoNodeIP)]);
    });
    check(
        &[
            vec![
                node("node-b", "192.168.0.2/24"),
                node("node-d", "192.168.0.4/24"),
            ],
            vec![b, c],
        ],
        "host",
        &[
            concat!(
                r#"{"hostname":"node-b","ipv4Addr":"192.168.0.2/24","ipv6Addr":"fd00::9/128","#,
                r#""asnumber":"64512","labels":{"role":"db"}}"#
            ),
            r#"{"hostname":"node-c"}"#,
        ],
    );
}

#[test]
fn pools_are_known_by_their_range() {
    let v4 = pool("10.0.0.0/16", |pool| {
        pool.masquerade = true;
        pool.ipip = EncapMode::CrossSubnet;
        pool.allowed_uses = vec![IpPoolAllowedUse::Workload];
    });
    check(
        &[
            vec![vxlan_pool("10.0.0.0/16"), vxlan_pool("10.7.0.0/16")],
            vec![v4, vxlan_pool("fd00::/64")],
        ],
        "pool",
        &[
            concat!(
                r#"["10.0.0.0-16",{"cidr":"10.0.0.0/16","masquerade":true,"#,
                r#""ipipMode":"cross-subnet","allowedUses":["Workload"]}]"#
            ),
            r#"["fd00::-64",{"cidr":"fd00::/64","vxlanMode":"always"}]"#,
        ],
    );
}

#[test]
fn the_bgp_configuration_is_empty_again_when_it_goes() {
    let bgp = |cidr: &str| {
        vec![Update::BgpConfiguration(Some(BgpConfiguration {
            service_cluster_cidrs: vec![cidr.to_owned()],
            ..BgpConfiguration::default()
        }))]
    };
    let line = r#"{"serviceClusterCidrs":["10.96.0.0/12"]}"#;
    check(&[bgp("10.0.0.0/8"), bgp("10.96.0.0/12")], "bgp", &[line]);
    check(&[bgp("10.96.0.0/12"), vec![]], "bgp", &["{}"]);
}

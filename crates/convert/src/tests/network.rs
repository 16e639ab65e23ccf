//! Pools, blocks and nodes.

use ipnet::IpNet;
use serde_json::{Value, json};
use tortie_api::{Kind, Resource};

use super::{Converter, convert, only_update, problems, resource, value_of, with_metadata};
use crate::Fidelity;
use tortie_engine::input::Update;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// A pool that can be told from others by its mode.
fn pool(name: &str, cidr: &str, mode: &str) -> Resource {
    resource(
        Kind::IpPool,
        "",
        name,
        &json!({"cidr": cidr, "vxlanMode": mode}),
    )
}

/// Updates of pools in short: the range and the mode, or `-` for a removal.
fn short(updates: &[Update]) -> Vec<String> {
    let each = |update: &Update| match update {
        Update::IpPool(range, Some(pool)) => format!("{range} {:?}", pool.vxlan),
        Update::IpPool(range, None) => format!("{range} -"),
        other => panic!("{other:?}"),
    };
    updates.iter().map(each).collect()
}

#[test]
fn a_pool_is_known_by_its_range() {
    let spec = json!({
        "cidr": "10.0.1.0/16", "ipipMode": "CrossSubnet", "vxlanMode": "Never", "natOutgoing": true,
        "disabled": true, "allowedUses": ["Workload"], "blockSize": 26,
    });
    let update = only_update(&resource(Kind::IpPool, "", "p", &spec));
    assert!(matches!(&update, Update::IpPool(range, _) if *range == net("10.0.0.0/16")));
    let expected = json!({
        "ipip": "cross-subnet", "masquerade": true, "disabled": true, "allowedUses": ["Workload"],
    });
    assert_eq!(value_of(&update), expected);
    let update = only_update(&pool("p", "fd00::/64", "Always"));
    assert_eq!(value_of(&update), json!({"vxlan": "always"}));
}

#[test]
fn of_pools_with_one_range_the_lowest_name_counts() {
    let mut converter = Converter::new();
    let none: [&str; 0] = [];
    let range = "10.0.0.0/16";
    let mut set = |name, cidr, mode| short(&converter.set(&pool(name, cidr, mode)).updates);
    assert_eq!(set("b", range, "Always"), ["10.0.0.0/16 Always"]);
    assert_eq!(set("c", range, "Never"), none);
    assert_eq!(set("a", range, "CrossSubnet"), ["10.0.0.0/16 CrossSubnet"]);
    assert_eq!(set("b", range, "Never"), none);
    // A changed range frees the old one, for the next in line if there is one.
    assert_eq!(
        set("a", "10.1.0.0/16", "Always"),
        ["10.0.0.0/16 Never", "10.1.0.0/16 Always"]
    );
    assert_eq!(
        set("a", "10.2.0.0/16", "Always"),
        ["10.1.0.0/16 -", "10.2.0.0/16 Always"]
    );
    assert_eq!(set("c", "10.2.0.0/16", "Never"), none);

    let mut remove = |name| short(&converter.remove(Kind::IpPool, "", name));
    assert_eq!(remove("c"), none);
    assert_eq!(remove("a"), ["10.2.0.0/16 -"]);
    assert_eq!(remove("a"), none);
    assert_eq!(remove("b"), ["10.0.0.0/16 -"]);
}

#[test]
fn a_pool_that_becomes_invalid_keeps_its_range_until_it_is_gone() {
    let mut converter = Converter::new();
    converter.set(&pool("a", "10.0.0.0/16", "Always"));
    converter.set(&pool("b", "10.0.0.0/16", "Never"));
    let result = converter.set(&pool("a", "10.0.0.1", "Always"));
    assert_eq!(short(&result.updates), [""; 0]);
    assert_eq!(result.fidelity, Fidelity::Closed);
    assert_eq!(
        problems(&result),
        ["IPPool(a): spec.cidr = \"10.0.0.1\": must be a CIDR"]
    );
    let gone = converter.remove(Kind::IpPool, "", "a");
    assert_eq!(short(&gone), ["10.0.0.0/16 Never"]);
}

#[test]
fn a_block_names_the_nodes_that_use_its_addresses() {
    let spec = json!({
        "cidr": "10.0.0.64/29", "affinity": "host:n1",
        "allocations": [null, 0, 1, 2, 3, 9, null, 0, 0],
        "attributes": [
            {"handle_id": "a", "secondary": {"node": "n1", "pod": "p"}},
            {"secondary": {"node": "n2"}},
            {"secondary": {"pod": "p"}},
            {"alternateOwnerAttrs": {"node": "n3"}},
        ],
    });
    let result = convert(&resource(Kind::IpamBlock, "", "10-0-0-64-29", &spec));
    let expected = json!({"node": "n1", "allocations": [
        {"address": "10.0.0.65", "node": "n1"},
        {"address": "10.0.0.66", "node": "n2"},
        {"address": "10.0.0.71", "node": "n1"},
    ]});
    assert_eq!(value_of(&result.updates[0]), expected);
    let text = problems(&result).join("\n");
    assert!(text.contains("spec.allocations[5] = 9"), "{text}");
    assert!(text.contains("spec.allocations[8] = 0"), "{text}");
    assert_eq!(result.problems.len(), 2, "{text}");
}

#[test]
fn the_node_of_a_block_is_in_its_affinity() {
    let check = |affinity: Value, expected: Value| {
        let spec = json!({"cidr": "fd00::/122", "affinity": affinity});
        let update = only_update(&resource(Kind::IpamBlock, "", "b", &spec));
        assert_eq!(value_of(&update), expected);
    };
    check(json!("host:n.1"), json!({"node": "n.1"}));
    check(
        json!("virtual:load-balancer"),
        json!({"node": "load-balancer"}),
    );
    check(json!("other:n"), json!({}));
    check(json!(null), json!({}));
}

#[test]
fn a_block_is_removed_by_the_range_that_it_had() {
    let block = |spec: Value| resource(Kind::IpamBlock, "", "b", &spec);
    let mut converter = Converter::new();
    converter.set(&block(json!({"cidr": "10.0.0.0/26"})));
    let deleted = converter.set(&block(json!({"cidr": "10.0.0.0/26", "deleted": true})));
    assert_eq!(deleted.updates, [Update::Block(net("10.0.0.0/26"), None)]);
    let moved = converter
        .set(&block(json!({"cidr": "10.0.1.0/26"})))
        .updates;
    assert_eq!(moved[0], Update::Block(net("10.0.0.0/26"), None));
    assert!(matches!(&moved[1], Update::Block(range, Some(_)) if *range == net("10.0.1.0/26")));
    let invalid = converter.set(&block(json!({"cidr": "x"})));
    assert_eq!(invalid.updates, []);
    assert_eq!(
        converter.remove(Kind::IpamBlock, "", "b"),
        [Update::Block(net("10.0.1.0/26"), None)]
    );
}

#[test]
fn a_node_has_addresses_and_tunnels() {
    let object = json!({
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {
            "bgp": {
                "ipv4Address": "192.168.0.1/24", "ipv6Address": "fd00::1", "asNumber": "1.1",
                "ipv4IPIPTunnelAddr": "10.0.0.1",
            },
            "ipv4VXLANTunnelAddr": "10.0.0.2", "vxlanTunnelMACAddr": "66:00:00:00:00:01",
            "ipv6VXLANTunnelAddr": "fd00::2", "vxlanTunnelMACAddrV6": "66:00:00:00:00:02",
            "wireguard": {"interfaceIPv4Address": "10.0.0.3", "interfaceIPv6Address": "fd00::3"},
            "addresses": [
                {"address": "192.168.0.1/24", "type": "CalicoNodeIP"},
                {"address": "192.168.0.2", "type": "InternalIP"},
                {"address": "192.168.0.3", "type": "ExternalIP"},
                {"address": "192.168.0.4"},
            ],
        },
        "status": {"wireguardPublicKey": "k4", "wireguardPublicKeyV6": "k6"},
    });
    let update = only_update(&Resource::decode_stored(Kind::Node, &object).unwrap());
    let expected = json!({
        "labels": {"a": "b"}, "bgpIpv4": "192.168.0.1/24", "bgpIpv6": "fd00::1/128",
        "asNumber": 65537, "ipipTunnel": "10.0.0.1",
        "vxlanTunnelV4": "10.0.0.2", "vxlanMacV4": "66:00:00:00:00:01",
        "vxlanTunnelV6": "fd00::2", "vxlanMacV6": "66:00:00:00:00:02",
        "wireguard": {
            "publicKey": "k4", "interfaceIpv4": "10.0.0.3",
            "publicKeyV6": "k6", "interfaceIpv6": "fd00::3",
        },
        "addresses": [
            {"address": "192.168.0.1", "kind": "CalicoNodeIP"},
            {"address": "192.168.0.2", "kind": "InternalIP"},
            {"address": "192.168.0.3", "kind": "ExternalIP"},
            {"address": "192.168.0.4", "kind": "Other"},
        ],
    });
    assert_eq!(value_of(&update), expected);
    let update = only_update(&resource(Kind::Node, "", "n", &json!({})));
    assert_eq!(value_of(&update), json!({}));
}

#[test]
fn a_node_with_an_address_that_is_none_is_absent() {
    let spec = json!({
        "bgp": {"ipv4Address": "a", "ipv4IPIPTunnelAddr": "b"}, "ipv6VXLANTunnelAddr": "c",
        "wireguard": {"interfaceIPv6Address": "d"}, "addresses": [{"address": "e"}],
    });
    let metadata = json!({"name": "n"});
    let result = convert(&with_metadata(Kind::Node, &metadata, &spec));
    assert_eq!(value_of(&result.updates[0]), Value::Null);
    let fields = result
        .problems
        .iter()
        .map(|each| each.problem.field.as_str());
    let expected = [
        "spec.bgp.ipv4Address",
        "spec.bgp.ipv4IPIPTunnelAddr",
        "spec.ipv6VXLANTunnelAddr",
        "spec.wireguard.interfaceIPv6Address",
        "spec.addresses[0].address",
    ];
    assert_eq!(fields.collect::<Vec<_>>(), expected);
}

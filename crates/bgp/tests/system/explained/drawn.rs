//! Worlds of two nodes, drawn at random.

use std::net::IpAddr;

use serde_json::{Value, json};
use tortie_testkit::Random;

/// The nodes, of which the first one has all blocks.
pub(crate) const NODES: [&str; 2] = ["a", "b"];

/// Routes of the first node's kernel that BIRD has not made.
pub(crate) const KERNEL_ROUTES: [&str; 6] = [
    "203.0.113.0/24",
    "10.65.1.7/32 metric 512",
    "10.65.2.9/32 metric 1024",
    "10.66.9.0/24 metric 100",
    "10.71.0.0/16 metric 5000",
    "fd65:0:0:1::9/128 metric 512",
];

/// What is asked about.
pub(crate) const PREFIXES: [&str; 14] = [
    "10.65.1.0/26",
    "10.65.2.0/26",
    "10.65.3.0/26",
    "10.66.1.0/26",
    "10.66.2.0/26",
    "10.70.0.0/26",
    "10.70.1.0/26",
    "10.96.0.0/16",
    "10.97.0.0/16",
    "10.65.0.0/16",
    "fd65:0:0:1::/122",
    "fd65:0:0:2::/122",
    "fd66::/122",
    "203.0.112.0/24",
];

const BLOCKS: [&str; 10] = [
    "10.65.1.0/26",
    "10.65.2.0/26",
    "10.65.3.0/26",
    "10.66.1.0/26",
    "10.66.2.0/26",
    "10.70.0.0/26",
    "10.70.1.0/26",
    "fd65:0:0:1::/122",
    "fd65:0:0:2::/122",
    "fd66::/122",
];

pub(crate) fn world(random: &mut Random, addresses: [(IpAddr, IpAddr); 2]) -> Vec<Value> {
    let is_internal = random.once_in(2);
    let mut world = Vec::new();
    for (index, (name, (v4, v6))) in NODES.iter().zip(addresses).enumerate() {
        let mut bgp = json!({"ipv4Address": format!("{v4}/24"), "ipv6Address": format!("{v6}/64")});
        if !is_internal {
            bgp["asNumber"] = json!(65001 + index);
        }
        let wireguard = json!({"interfaceIPv4Address": "10.200.0.1"});
        let mut spec = json!({"bgp": bgp});
        if random.once_in(4) {
            spec["wireguard"] = wireguard;
        }
        world.push(object("Node", name, spec));
    }
    for (name, cidr) in [
        ("small", "10.65.0.0/16"),
        ("other", "10.66.0.0/16"),
        ("six", "fd65::/32"),
    ] {
        let mut spec = json!({"cidr": cidr, "disableBGPExport": random.once_in(4), "ipipMode": "Never", "vxlanMode": "Never"});
        match random.below(4) {
            0 if name != "six" => spec["ipipMode"] = json!("Always"),
            1 => spec["vxlanMode"] = json!("Always"),
            _ => {}
        }
        world.push(object("IPPool", name, spec));
    }
    for block in BLOCKS {
        let state = *pick(
            random,
            &[
                "confirmed",
                "confirmed",
                "confirmed",
                "pending",
                "pendingDeletion",
            ],
        );
        let name = format!("a-{}", block.replace(['.', '/', ':'], "-"));
        let spec = json!({"node": NODES[0], "cidr": block, "state": state, "deleted": false});
        world.push(object("BlockAffinity", &name, spec));
    }
    world.push(object("BGPFilter", "one", filter(random)));
    world.push(object("BGPFilter", "two", filter(random)));
    world.push(object("BGPConfiguration", "default", configuration(random)));
    let mut peer = json!({
        "nodeSelector": "all()", "peerSelector": "all()",
        "filters": pick(random, &[vec!["one"], vec!["two"], vec!["one", "two"], vec![]]),
    });
    if random.once_in(3) {
        peer["numAllowedLocalASNumbers"] = json!(1);
    }
    if random.once_in(3) {
        peer["nextHopMode"] = json!("Self");
    }
    world.push(object("BGPPeer", "both", peer));
    world
}

fn configuration(random: &mut Random) -> Value {
    let mut spec = json!({
        "nodeToNodeMeshEnabled": false,
        "serviceClusterIPs": [{"cidr": "10.96.0.0/16"}],
        "serviceExternalIPs": [{"cidr": "10.97.0.0/16"}],
        "programClusterRoutes": pick(random, &["EnabledNoEncapOnly", "Disabled", "Enabled", "EnabledNoEncapOnly"]),
    });
    if random.once_in(2) {
        spec["prefixAdvertisements"] = json!([
            {"cidr": "10.65.0.0/16", "communities": ["64512:100", "1:2:3"]},
            {"cidr": "fd65::/32", "communities": ["64512:600"]},
        ]);
    }
    if random.once_in(3) {
        spec["ipv4NormalRoutePriority"] = json!(2048);
    }
    spec
}

fn filter(random: &mut Random) -> Value {
    let mut list = |cidrs: &[&str], bits: u8, is_export: bool| -> Vec<Value> {
        let count = random.below(4);
        (0..count)
            .map(|_| rule(random, cidrs, bits, is_export))
            .collect()
    };
    let v4 = [
        "10.65.0.0/16",
        "10.65.1.0/26",
        "10.66.0.0/16",
        "10.70.0.0/26",
        "10.0.0.0/8",
        "10.96.0.0/16",
        "203.0.113.0/24",
    ];
    let v6 = ["fd65::/32", "fd65:0:0:1::/122", "fd66::/122", "::/0"];
    json!({
        "exportV4": list(&v4, 32, true), "importV4": list(&v4, 32, false),
        "exportV6": list(&v6, 128, true), "importV6": list(&v6, 128, false),
    })
}

fn rule(random: &mut Random, cidrs: &[&str], bits: u8, is_export: bool) -> Value {
    let accepts = random.once_in(2);
    let mut rule = json!({"action": if accepts { "Accept" } else { "Reject" }});
    if !random.once_in(8) {
        rule["cidr"] = json!(pick(random, cidrs));
        rule["matchOperator"] = json!(pick(random, &["In", "In", "Equal", "NotIn", "NotEqual"]));
        let is_range = ["In", "NotIn"].contains(&rule["matchOperator"].as_str().unwrap());
        if is_range && random.once_in(3) {
            rule["prefixLength"] = json!({"min": bits - 6, "max": bits});
        }
    }
    match random.below(8) {
        0 => rule["peerType"] = json!(pick(random, &["eBGP", "iBGP"])),
        1 => rule["source"] = json!("RemotePeers"),
        2 => {
            rule["communities"] =
                json!({"values": [pick(random, &["64512:100", "64512:7", "1:2:3"])]});
        }
        3 => rule["asPathPrefix"] = json!([65001]),
        4 => rule["priority"] = json!(pick(random, &[512, 1024])),
        // Objects do not tell by which interface a peer is reached.
        5 if is_export => rule["interface"] = json!("eth*"),
        _ => {}
    }
    if accepts {
        rule["operations"] = match random.below(6) {
            0 => json!([{"addCommunity": {"value": "64512:7"}}]),
            1 => json!([{"setPriority": {"value": 512}}, {"addCommunity": {"value": "9:9:9"}}]),
            2 => json!([{"prependASPath": {"prefix": [65002, 64999]}}]),
            _ => json!([]),
        };
    }
    rule
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "specs are written where they are used"
)]
fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "projectcalico.org/v3", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn pick<'a, T>(random: &mut Random, from: &'a [T]) -> &'a T {
    let at = random.below(from.len() as u64);
    &from[usize::try_from(at).unwrap()]
}

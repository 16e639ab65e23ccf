//! Resources with what nobody should write, beside what is right, so that much of both is in each world.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tortie_api::kinds::bgp_configuration::{
    BgpConfigurationSpec, BindMode, Community, PrefixAdvertisement, ServiceIpBlock,
};
use tortie_api::kinds::bgp_filter::{
    BgpFilterAction, BgpFilterAddCommunity, BgpFilterCommunityMatch, BgpFilterMatchOperator,
    BgpFilterMatchSource, BgpFilterOperation, BgpFilterPeerType, BgpFilterPrefixLengthV4,
    BgpFilterPrependAsPath, BgpFilterRuleV4, BgpFilterRuleV6, BgpFilterSetPriority, BgpFilterSpec,
};
use tortie_api::kinds::bgp_peer::{BgpPassword, BgpPeerSpec, NextHopMode, SourceAddress};
use tortie_api::kinds::block_affinity::{BlockAffinitySpec, BlockAffinityState};
use tortie_api::kinds::ip_pool::{IpPoolSpec, IpipMode, VxlanMode};
use tortie_api::kinds::node::{NodeBgpSpec, NodeSpec};
use tortie_api::meta::SecretKeySelector;
use tortie_api::scalar::{AsNumber, GoDuration};
use tortie_api::{Node, Object, Resource, Spec};
use tortie_bgp::Update;
use tortie_bgp::inputs::{SecretRef, SecretText, WorkloadPeer};

/// Texts that end statements, names, comments and lines, or begin others.
const HOSTILE: [&str; 16] = [
    "",
    " ",
    "\"",
    "'",
    "x\"; } protocol bgp evil { neighbor 203.0.113.66 as 1; } #",
    "x'() { accept; } function 'y",
    "a\nb",
    "a\r\n}",
    "# comment",
    "/* comment",
    "*/",
    "{",
    "}; };",
    "a b",
    "é\u{202e}\0",
    "all",
];

const NAMES: [&str; 5] = ["node1", "node2", "alpha", "beta-1.x", "gamma"];

const ADDRESSES: [&str; 14] = [
    "192.0.2.1",
    "192.0.2.2",
    "192.0.2.3:1790",
    "2001:db8::1",
    "2001:db8::2",
    "[2001:db8::3]:179",
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "::",
    "fe80::1",
    "ff02::1",
    "::ffff:192.0.2.9",
    "127.0.0.1",
];

const NETWORKS: [&str; 14] = [
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.64/26",
    "10.1.2.3/26",
    "192.0.2.9/32",
    "0.0.0.0/0",
    "10.0.0.0/33",
    "fd00::/8",
    "fd00:1::40/122",
    "fd00::1/128",
    "::/0",
    "::ffff:10.0.0.0/104",
    "fe80::/10",
    "224.0.0.0/4",
];

const SELECTORS: [&str; 6] = [
    "",
    "all()",
    "a == 'b'",
    "!has(a)",
    "has(",
    "a == \"b\"; } protocol",
];

const COMMUNITIES: [&str; 10] = [
    "65000:1",
    "65535:65281",
    "65536:1",
    "1:2:4294967295",
    "1:2:4294967296",
    "named",
    "0:0",
    "1:2)); reject; (",
    "01:02",
    "1",
];

fn text() -> BoxedStrategy<String> {
    let hostile = select(&HOSTILE[..]).prop_map(str::to_owned);
    prop_oneof![
        hostile,
        any::<String>(),
        "[a-z]{1,80}",
        Just("n".repeat(253))
    ]
    .boxed()
}

fn one_of(texts: &'static [&'static str]) -> BoxedStrategy<String> {
    let known = select(texts).prop_map(str::to_owned);
    prop_oneof![12 => known, 1 => text()].boxed()
}

/// Empty, but now and then one of these.
fn seldom(texts: &'static [&'static str]) -> BoxedStrategy<String> {
    prop_oneof![9 => Just(String::new()), 1 => one_of(texts)].boxed()
}

fn as_number() -> BoxedStrategy<AsNumber> {
    let numbers = [0, 1, 23456, 64512, 64512, 64512, 65000, u32::MAX];
    select(numbers.to_vec()).prop_map(AsNumber).boxed()
}

fn duration() -> BoxedStrategy<GoDuration> {
    let seconds = [-1, 0, 1, 90, 240, 241, 4095, 4096, 100_000];
    select(seconds.to_vec())
        .prop_map(GoDuration::from_secs)
        .boxed()
}

fn port() -> BoxedStrategy<u16> {
    select(vec![0, 1, 179, 1790, 65535]).boxed()
}

fn named<S: Spec>(name: &str, spec: S) -> Update
where
    Resource: From<Object<S>>,
{
    Update::Resource(Object::new("", name, spec).into())
}

fn node() -> impl Strategy<Value = Update> {
    let bgp = (
        option::of(as_number()),
        one_of(&[
            "192.0.2.1/24",
            "192.0.2.2/24",
            "192.0.2.2",
            "fe80::1/64",
            "0.0.0.0/0",
        ]),
        one_of(&[
            "2001:db8::1/64",
            "2001:db8::2/64",
            "192.0.2.1/24",
            "fe80::1/64",
        ]),
        seldom(&["10.0.0.1", "0.0.0.0", "1"]),
    );
    let name = one_of(&["node2", "node2", "node1", "alpha"]);
    (name, bgp, one_of(&["b", "c"])).prop_map(|(name, bgp, label)| {
        let (as_number, ipv4_address, ipv6_address, route_reflector_cluster_id) = bgp;
        let bgp = NodeBgpSpec {
            as_number,
            ipv4_address,
            ipv6_address,
            route_reflector_cluster_id,
            ..NodeBgpSpec::default()
        };
        let spec = NodeSpec {
            bgp: Some(bgp),
            ..NodeSpec::default()
        };
        let mut node = Node::new("", &name, spec);
        node.metadata.labels.insert("a".to_owned(), label);
        Update::Resource(node.into())
    })
}

fn peer() -> impl Strategy<Value = Update> {
    let who = (
        one_of(&["", "node1", "node2"]),
        seldom(&SELECTORS),
        one_of(&ADDRESSES),
        as_number(),
        seldom(&SELECTORS),
        seldom(&SELECTORS),
    );
    let how = (
        option::of(as_number()),
        any::<bool>(),
        option::of(select(vec![
            NextHopMode::Auto,
            NextHopMode::SelfAddress,
            NextHopMode::Keep,
        ])),
        option::of(select(vec![SourceAddress::UseNodeIP, SourceAddress::None])),
        option::of(duration()),
        option::of(duration()),
        option::of(select(vec![-1, 0, 3, i32::MAX])),
        option::of(select(vec![0, 1, 255])),
        seldom(&["192.0.2.254", "2001:db8::fe", "fe80::2", "192.0.2.2"]),
    );
    let filters = vec(one_of(&NAMES), 0..3);
    let password = option::weighted(0.2, select(vec!["good", "bad", "missing"]));
    (one_of(&NAMES), who, how, filters, password).prop_map(|(name, who, how, filters, password)| {
        let mut spec = BgpPeerSpec {
            filters,
            ..BgpPeerSpec::default()
        };
        (
            spec.node,
            spec.node_selector,
            spec.peer_ip,
            spec.as_number,
            spec.peer_selector,
            spec.local_workload_selector,
        ) = who;
        (
            spec.local_as_number,
            spec.keep_original_next_hop,
            spec.next_hop_mode,
            spec.source_address,
            spec.max_restart_time,
            spec.keepalive_time,
            spec.num_allowed_local_as_numbers,
            spec.ttl_security,
            spec.reachable_by,
        ) = how;
        spec.password = password.map(|key| BgpPassword {
            secret_key_ref: Some(SecretKeySelector {
                key: key.to_owned(),
                ..SecretKeySelector::default()
            }),
        });
        named(&name, spec)
    })
}

fn configuration() -> impl Strategy<Value = Update> {
    let advertisement = (one_of(&NETWORKS), vec(one_of(&COMMUNITIES), 0..4));
    let range = || {
        let ranges = vec(one_of(&NETWORKS), 0..3);
        ranges.prop_map(|ranges| {
            ranges
                .into_iter()
                .map(|cidr| ServiceIpBlock { cidr })
                .collect()
        })
    };
    let ranges = (range(), range(), range());
    let rest = (
        option::of(as_number()),
        one_of(&["Info", "debug", "Fatal", ""]),
        port(),
        vec(one_of(&["eth0", "*", "veth-*"]), 0..3),
        option::of(select(vec![BindMode::NodeIP, BindMode::None])),
        option::of(one_of(&["Enabled", "Disabled", "EnabledIPIPOnly"])),
        option::of(select(vec![i64::MIN, 0, 1, 512, 2_147_483_646, i64::MAX])),
        option::of(duration()),
        one_of(&["169.254.7.1", "", "2001:db8::7"]),
    );
    let name = select(vec!["default", "node.node1", "node.node2", "other"]);
    let mesh = option::of(any::<bool>());
    (name, mesh, vec(advertisement, 0..3), ranges, rest).prop_map(
        |(name, node_to_node_mesh_enabled, advertisements, ranges, rest)| {
            let advertisements = advertisements.into_iter();
            let mut spec = BgpConfigurationSpec {
                node_to_node_mesh_enabled,
                communities: vec![Community {
                    name: "named".to_owned(),
                    value: "64999:7".to_owned(),
                }],
                prefix_advertisements: advertisements
                    .map(|(cidr, communities)| PrefixAdvertisement { cidr, communities })
                    .collect(),
                ..BgpConfigurationSpec::default()
            };
            (
                spec.service_cluster_ips,
                spec.service_external_ips,
                spec.service_load_balancer_ips,
            ) = ranges;
            (
                spec.as_number,
                spec.log_severity_screen,
                spec.listen_port,
                spec.ignored_interfaces,
                spec.bind_mode,
                spec.program_cluster_routes,
                spec.ipv4_normal_route_priority,
                spec.node_mesh_max_restart_time,
                spec.local_workload_peering_ipv4,
            ) = rest;
            named(name, spec)
        },
    )
}

fn rule() -> impl Strategy<Value = BgpFilterRuleV4> {
    use BgpFilterMatchOperator::{Equal, In, NotEqual, NotIn};
    let length = || option::of(select(vec![-1, 0, 7, 24, 32, 33, 128]));
    let operation = prop_oneof![
        4 => one_of(&COMMUNITIES).prop_map(|value| BgpFilterOperation {
            add_community: Some(BgpFilterAddCommunity { value: Some(value) }),
            ..BgpFilterOperation::default()
        }),
        2 => vec(as_number(), 0..3).prop_map(|prefix| BgpFilterOperation {
            prepend_as_path: Some(BgpFilterPrependAsPath { prefix }),
            ..BgpFilterOperation::default()
        }),
        2 => option::of(select(vec![0, 1, 512, 512, i64::MAX])).prop_map(|value| BgpFilterOperation {
            set_priority: Some(BgpFilterSetPriority { value }),
            ..BgpFilterOperation::default()
        }),
        1 => Just(BgpFilterOperation::default()),
    ];
    let conditions = (
        prop_oneof![one_of(&NETWORKS), Just(String::new())],
        option::weighted(0.3, (length(), length())),
        option::of(Just(BgpFilterMatchSource::RemotePeers)),
        seldom(&["eth*", "sixteen-letters-"]),
        option::of(select(vec![Equal, NotEqual, In, NotIn])),
        option::of(select(vec![
            BgpFilterPeerType::Ebgp,
            BgpFilterPeerType::Ibgp,
        ])),
        option::weighted(0.3, vec(one_of(&COMMUNITIES), 1..3)),
        vec(as_number(), 0..3),
        option::weighted(0.3, select(vec![-1, 1, 512, 2_147_483_647])),
    );
    let action = select(vec![BgpFilterAction::Accept, BgpFilterAction::Reject]);
    (conditions, action, vec(operation, 0..3)).prop_map(|(conditions, action, operations)| {
        let (
            cidr,
            lengths,
            source,
            interface,
            match_operator,
            peer_type,
            communities,
            as_path_prefix,
            priority,
        ) = conditions;
        BgpFilterRuleV4 {
            cidr,
            prefix_length: lengths.map(|(min, max)| BgpFilterPrefixLengthV4 { min, max }),
            source,
            interface,
            match_operator,
            peer_type,
            communities: communities.map(|values| BgpFilterCommunityMatch { values }),
            as_path_prefix,
            priority,
            action,
            operations,
        }
    })
}

/// The same rule for the other IP version.
fn of_ipv6(rule: BgpFilterRuleV4) -> BgpFilterRuleV6 {
    let value = serde_json::to_value(rule).unwrap();
    serde_json::from_value(value).unwrap()
}

fn filter() -> impl Strategy<Value = Update> {
    let rules = || vec(rule(), 0..4);
    let rules = (rules(), rules(), rules(), rules());
    (one_of(&NAMES), rules).prop_map(|(name, (export_v4, import_v4, export_v6, import_v6))| {
        let of_ipv6 = |rules: Vec<_>| rules.into_iter().map(of_ipv6).collect();
        let spec = BgpFilterSpec {
            export_v4,
            import_v4,
            export_v6: of_ipv6(export_v6),
            import_v6: of_ipv6(import_v6),
        };
        named(&name, spec)
    })
}

fn pool() -> impl Strategy<Value = Update> {
    let ipip = option::of(select(vec![
        IpipMode::Always,
        IpipMode::CrossSubnet,
        IpipMode::Never,
    ]));
    let vxlan = option::weighted(0.2, Just(VxlanMode::Always));
    (text(), one_of(&NETWORKS), ipip, vxlan, any::<bool>()).prop_map(
        |(name, cidr, ipip_mode, vxlan_mode, disable_bgp_export)| {
            let spec = IpPoolSpec {
                cidr,
                ipip_mode,
                vxlan_mode,
                disable_bgp_export,
                ..IpPoolSpec::default()
            };
            named(&name, spec)
        },
    )
}

fn affinity() -> impl Strategy<Value = Update> {
    use BlockAffinityState::{Confirmed, Pending, PendingDeletion, Unset};
    let state = select(vec![Unset, Confirmed, Pending, PendingDeletion]);
    (text(), one_of(&NETWORKS), state).prop_map(|(name, cidr, state)| {
        let spec = BlockAffinitySpec {
            state,
            node: "node1".to_owned(),
            cidr,
            ..BlockAffinitySpec::default()
        };
        named(&name, spec)
    })
}

fn workload() -> impl Strategy<Value = Update> {
    let v4 = option::of(any::<u32>().prop_map(Ipv4Addr::from_bits));
    let v6 = option::of(any::<u128>().prop_map(Ipv6Addr::from_bits));
    (text(), one_of(&NAMES), v4, v6).prop_map(|(id, bgp_peer, ipv4, ipv6)| {
        let peer = WorkloadPeer {
            bgp_peer,
            ipv4,
            ipv6,
        };
        Update::WorkloadPeer(id, Some(peer))
    })
}

fn secret() -> impl Strategy<Value = Update> {
    (select(vec!["good", "bad"]), text()).prop_map(|(key, text)| {
        let secret = SecretRef {
            name: String::new(),
            key: key.to_owned(),
        };
        let text = if key == "good" { "pass;word'{" } else { &*text };
        Update::Secret(secret, Some(SecretText::new(text.as_bytes())))
    })
}

/// Any objects, of which some are right.
pub(crate) fn world() -> impl Strategy<Value = Vec<Update>> {
    let update = prop_oneof![
        2 => node(),
        4 => peer(),
        1 => configuration(),
        2 => filter(),
        1 => pool(),
        1 => affinity(),
        1 => workload(),
        1 => secret(),
    ];
    let local = named(
        "node1",
        NodeSpec {
            bgp: Some(NodeBgpSpec {
                ipv4_address: "192.0.2.1/24".to_owned(),
                ipv6_address: "2001:db8::1/64".to_owned(),
                ..NodeBgpSpec::default()
            }),
            ..NodeSpec::default()
        },
    );
    vec(update, 1..24).prop_map(move |mut updates| {
        updates.insert(0, local.clone());
        updates
    })
}

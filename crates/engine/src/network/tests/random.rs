//! Random clusters in random order: what has been sent equals what a new start would send.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::input::{NodeAddress, NodeAddressKind};
use tortie_config::{ProgramClusterRoutes, RouteSource};

const NODES: [&str; 4] = [LOCAL, "node-b", "node-c", "node-d"];
/// Ranges inside each other, and apart; IPv6 too.
const RANGES: [&str; 9] = [
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.0.0.0/16",
    "10.0.1.0/24",
    "10.0.1.0/26",
    "10.0.1.5/32",
    "192.168.0.0/16",
    "fd00::/64",
    "fd00::/122",
];
const ADDRESSES: [&str; 9] = [
    "0.0.0.0",
    "10.0.1.5",
    "10.0.1.6",
    "10.0.1.200",
    "10.0.2.1",
    "192.168.0.1",
    "192.168.0.2",
    "fd00::5",
    "::",
];
const NODE_NETS: [&str; 6] = [
    "192.168.0.1/24",
    "192.168.0.2/24",
    "192.168.1.2/16",
    "10.0.1.6/32",
    "192.168.9.9/0",
    "0.0.0.0/24",
];

fn some_node() -> impl Strategy<Value = &'static str> {
    select(&NODES[..])
}

fn some_address() -> impl Strategy<Value = IpAddr> {
    select(&ADDRESSES[..]).prop_map(ip)
}

fn maybe<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.7, value)
}

fn node_update() -> impl Strategy<Value = Update> {
    let kind = select(&[NodeAddressKind::InternalIP, NodeAddressKind::ExternalIP][..]);
    let listed = (some_address(), kind).prop_map(|(address, kind)| NodeAddress { address, kind });
    let node = (
        maybe(select(&NODE_NETS[..]).prop_map(net)),
        prop::option::of(select(&["fd00::5/64", "fd00:1::2/64"][..]).prop_map(net)),
        prop::collection::vec(listed, 0..3),
        prop::option::of(some_address()),
        prop::option::of(some_address()),
        prop::option::of(some_address()),
    )
        .prop_map(|(bgp_ipv4, bgp_ipv6, addresses, ipip, vxlan, vxlan_v6)| {
            Box::new(Node {
                bgp_ipv4,
                bgp_ipv6,
                addresses,
                ipip_tunnel: ipip,
                vxlan_tunnel_v4: vxlan,
                vxlan_tunnel_v6: vxlan_v6,
                ..Node::default()
            })
        });
    (some_node(), maybe(node)).prop_map(|(name, node)| Update::Node(name.to_owned(), node))
}

fn pool_update() -> impl Strategy<Value = Update> {
    let mode = || select(&[EncapMode::Never, EncapMode::Always, EncapMode::CrossSubnet][..]);
    let pool = (mode(), mode(), any::<bool>()).prop_map(|(ipip, vxlan, masquerade)| IpPool {
        ipip,
        vxlan,
        masquerade,
        ..IpPool::default()
    });
    (select(&RANGES[..]), prop::option::of(pool))
        .prop_map(|(range, pool)| Update::IpPool(net(range), pool))
}

fn block_update() -> impl Strategy<Value = Update> {
    let allocation = (some_address(), some_node()).prop_map(|(address, node)| Allocation {
        address,
        node: node.to_owned(),
    });
    let block = (maybe(some_node()), prop::collection::vec(allocation, 0..4)).prop_map(
        |(node, allocations)| Block {
            node: node.map(str::to_owned),
            allocations,
        },
    );
    (select(&RANGES[2..]), maybe(block)).prop_map(|(range, block)| Update::Block(net(range), block))
}

fn workload_update() -> impl Strategy<Value = Update> {
    let nets = prop::collection::vec(
        prop_oneof![
            4 => some_address().prop_map(IpNet::from),
            1 => Just(net("10.0.1.0/26")),
        ],
        0..3,
    );
    (some_node(), select(&["w1", "w2"][..]), maybe(nets)).prop_map(|(node, name, nets)| {
        let texts: Option<Vec<String>> =
            nets.map(|nets| nets.iter().map(ToString::to_string).collect());
        let present = workload(
            node,
            name,
            &texts
                .iter()
                .flatten()
                .map(String::as_str)
                .collect::<Vec<_>>(),
        );
        if texts.is_some() {
            present
        } else {
            absent(&present)
        }
    })
}

/// Updates, with a flush where there is none.
fn ops() -> impl Strategy<Value = Vec<Option<Update>>> {
    let update = prop_oneof![
        node_update(),
        pool_update(),
        block_update(),
        workload_update()
    ];
    prop::collection::vec(
        prop_oneof![4 => update.prop_map(Some), 1 => Just(None)],
        1..60,
    )
}

fn config() -> impl Strategy<Value = Config> {
    let cluster_routes = select(
        &[
            ProgramClusterRoutes::Disabled,
            ProgramClusterRoutes::Enabled,
        ][..],
    );
    let source =
        prop_oneof![3 => Just(RouteSource::CalicoIpam), 1 => Just(RouteSource::WorkloadIps)];
    (cluster_routes, source).prop_map(|(cluster_routes, route_source)| Config {
        cluster_routes,
        route_source,
        ..Config::for_node(LOCAL)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_sent_is_what_a_new_start_would_send(config in config(), ops in ops()) {
        let mut network = Network::new(&config);
        let mut data_plane = DataPlane::default();
        let mut state: BTreeMap<String, Update> = BTreeMap::new();
        for op in ops.into_iter().chain([None]) {
            if let Some(update) = op {
                network.on_update(&update);
                state.insert(format!("{:?}", absent(&update)), update);
            } else {
                flush(&mut network, true, &mut data_plane);
                let fresh = run(&config, &[state.values().cloned().collect()]);
                prop_assert_eq!(&data_plane, &fresh);
            }
        }
    }
}

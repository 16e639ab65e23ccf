//! Random endpoints, network sets, services and the rest of a world.

use std::net::IpAddr;

use ipnet::IpNet;
use proptest::prelude::*;
use proptest::sample::select;
use tortie_api::scalar::Protocol;
use tortie_engine::Update;
use tortie_engine::input::{
    BgpPeer, EndpointPort, EndpointSlice, HostEndpoint, HostEndpointKey, Labels, LiveMigration,
    MigrationSource, MigrationTarget, NetworkSet, Node, ObjectName, Policy, PolicyId, PolicyKind,
    Profile, SlicePort, WorkloadEndpoint, WorkloadEndpointKey,
};

use crate::random::policy;

/// The node that the engine works for.
pub(crate) const LOCAL: &str = "here";
const REMOTE: &str = "there";

/// An object that changes, or goes.
pub(crate) fn update() -> impl Strategy<Value = Update> {
    prop_oneof![
        8 => policy::policy(),
        2 => policy::tier(),
        3 => policy::profile(),
        8 => workload(),
        2 => host(),
        3 => network_set(),
        2 => slice(),
        1 => peer(),
        1 => node(),
        1 => migration(),
    ]
}

/// Often something, sometimes nothing.
pub(crate) fn maybe<T: Clone + std::fmt::Debug>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.75, value)
}

pub(crate) fn labels() -> impl Strategy<Value = Labels> {
    let name = select(vec!["a", "b", "c"]).prop_map(str::to_owned);
    let value = select(vec!["x", "y", "xy", ""]).prop_map(str::to_owned);
    prop::collection::btree_map(name, value, 0..3)
}

pub(crate) fn profile_name() -> impl Strategy<Value = String> {
    select(vec!["p0", "p1", "p2", "kns.n", "ksa.n.s"]).prop_map(str::to_owned)
}

/// Names of profiles; the same one twice, too.
fn profiles() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(profile_name(), 0..3)
}

fn address() -> impl Strategy<Value = IpAddr> {
    select(vec![
        "10.0.0.1", "10.0.0.2", "10.0.0.5", "10.1.0.7", "fd00::1", "fd00::2",
    ])
    .prop_map(|text| text.parse().expect("an address"))
}

pub(crate) fn net() -> impl Strategy<Value = IpNet> {
    select(vec![
        "10.0.0.0/30",
        "10.0.0.0/29",
        "10.0.0.4/30",
        "10.0.0.0/8",
        "10.0.0.1/32",
        "0.0.0.0/0",
        "0.0.0.0/1",
        "fd00::/64",
        "fd00::1/128",
        "::/0",
    ])
    .prop_map(|text| text.parse().expect("a network"))
}

fn ports() -> impl Strategy<Value = Vec<EndpointPort>> {
    let protocol = select(vec![Protocol::Tcp, Protocol::Udp, Protocol::Sctp]);
    let port = (select(vec!["http", "dns"]), protocol, 1..3_u16);
    let port = port.prop_map(|(name, protocol, port)| EndpointPort {
        name: name.to_owned(),
        protocol,
        port,
    });
    prop::collection::vec(port, 0..3)
}

fn node_name() -> impl Strategy<Value = String> {
    select(vec![LOCAL, REMOTE]).prop_map(str::to_owned)
}

fn workload_key(node: &str, name: &str) -> WorkloadEndpointKey {
    WorkloadEndpointKey {
        node: node.to_owned(),
        orchestrator: "k8s".to_owned(),
        workload: format!("n/{name}"),
        endpoint: "eth0".to_owned(),
    }
}

fn any_workload_key() -> impl Strategy<Value = WorkloadEndpointKey> {
    let name = select(vec!["w0", "w1", "w2", "c3", "c4"]);
    (node_name(), name).prop_map(|(node, name)| workload_key(&node, name))
}

fn workload() -> impl Strategy<Value = Update> {
    let addresses = prop::collection::vec(address(), 0..3);
    let interface = prop_oneof![9 => Just("cali1".to_owned()), 1 => Just(String::new())];
    let value = (labels(), profiles(), addresses, ports(), interface).prop_map(
        |(mut labels, profiles, addresses, ports, interface)| {
            let nets = addresses.into_iter().map(IpNet::from);
            let (ipv4_nets, ipv6_nets) = nets.partition(|net| matches!(net, IpNet::V4(_)));
            if ipv4_nets != Vec::<IpNet>::new() {
                labels.insert(
                    "projectcalico.org/orchestrator".to_owned(),
                    "k8s".to_owned(),
                );
            }
            Box::new(WorkloadEndpoint {
                interface,
                labels,
                profiles,
                ipv4_nets,
                ipv6_nets,
                ports,
                ..WorkloadEndpoint::default()
            })
        },
    );
    (any_workload_key(), maybe(value)).prop_map(|(key, value)| Update::WorkloadEndpoint(key, value))
}

fn host() -> impl Strategy<Value = Update> {
    let key = (node_name(), select(vec!["h0", "w0"])).prop_map(|(node, name)| HostEndpointKey {
        node,
        name: name.to_owned(),
    });
    let addresses = prop::collection::vec(address(), 0..3);
    let value = (labels(), profiles(), addresses, ports()).prop_map(
        |(labels, profiles, expected_ips, ports)| {
            Box::new(HostEndpoint {
                interface: "eth0".to_owned(),
                expected_ips,
                labels,
                profiles,
                ports,
                dscp: None,
            })
        },
    );
    (key, maybe(value)).prop_map(|(key, value)| Update::HostEndpoint(key, value))
}

fn network_set() -> impl Strategy<Value = Update> {
    let name = select(vec!["s0", "s1", "n/s0"]).prop_map(str::to_owned);
    let value = (labels(), prop::collection::vec(net(), 0..4), profiles());
    let value = value.prop_map(|(labels, nets, profiles)| NetworkSet {
        labels,
        nets,
        profiles,
    });
    (name, maybe(value)).prop_map(|(name, value)| Update::NetworkSet(name, value))
}

fn slice() -> impl Strategy<Value = Update> {
    let name = (select(vec!["n", "m"]), select(vec!["e0", "e1"]));
    let port = (select(vec![Protocol::Tcp, Protocol::Udp]), 1..3_u16);
    let port = port.prop_map(|(protocol, port)| SlicePort { protocol, port });
    let value = (
        select(vec!["web", "db"]),
        prop::collection::vec(address(), 0..3),
        prop::collection::vec(port, 0..3),
    );
    let value = value.prop_map(|(service, addresses, ports)| EndpointSlice {
        service: service.to_owned(),
        addresses,
        ports,
    });
    (name, maybe(value)).prop_map(|((namespace, name), value)| {
        let name = ObjectName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        Update::EndpointSlice(name, value)
    })
}

fn peer() -> impl Strategy<Value = Update> {
    let value = (policy::selector(), select(vec!["", "has(a)", "a == 'x'"]));
    let value = value.prop_map(|(workloads, nodes)| BgpPeer {
        node: String::new(),
        node_selector: nodes.to_owned(),
        local_workload_selector: workloads,
    });
    let name = select(vec!["b0", "b1"]).prop_map(str::to_owned);
    (name, maybe(value)).prop_map(|(name, value)| Update::BgpPeer(name, value))
}

fn node() -> impl Strategy<Value = Update> {
    let value = labels().prop_map(|labels| {
        Box::new(Node {
            labels,
            ..Node::default()
        })
    });
    (node_name(), maybe(value)).prop_map(|(name, value)| Update::Node(name, value))
}

fn migration() -> impl Strategy<Value = Update> {
    let source = any_workload_key().prop_map(MigrationSource::Endpoint);
    let target = prop_oneof![
        any_workload_key().prop_map(MigrationTarget::Endpoint),
        policy::selector().prop_map(MigrationTarget::Selector),
    ];
    let value = (
        select(vec!["u0", "u1"]),
        prop::option::of(source),
        prop::option::of(target),
    );
    let value = value.prop_map(|(uid, source, target)| LiveMigration {
        uid: uid.to_owned(),
        source,
        target,
    });
    (select(vec!["g0", "g1"]), maybe(value)).prop_map(|(name, value)| {
        let name = ObjectName {
            namespace: "n".to_owned(),
            name: name.to_owned(),
        };
        Update::LiveMigration(name, value)
    })
}

/// More pods on another node than the engine looks at one by one, with labels of their own and inherited ones; and a
/// local pod, so that policies have something to apply to.
pub(crate) fn crowd() -> Vec<Update> {
    let labels = |pairs: &[(&str, &str)]| -> Labels {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    };
    let endpoint = |number: u8| WorkloadEndpoint {
        interface: "cali1".to_owned(),
        labels: match number % 4 {
            0 => labels(&[("a", "x")]),
            1 => labels(&[("b", "y"), ("c", "xy")]),
            _ => labels(&[]),
        },
        profiles: match number % 5 {
            0 => vec!["p0".to_owned()],
            1 => vec!["p1".to_owned(), "kns.n".to_owned()],
            2 => vec!["kns.n".to_owned(), "p0".to_owned()],
            _ => vec![],
        },
        ipv4_nets: vec![IpNet::from(IpAddr::from([10, 1, 0, number]))],
        ..WorkloadEndpoint::default()
    };
    let workload = |node: &str, name: &str, number| {
        let value = Some(Box::new(endpoint(number)));
        Update::WorkloadEndpoint(workload_key(node, name), value)
    };
    let profile = |name: &str, pairs: &[(&str, &str)]| {
        let profile = Profile {
            labels: labels(pairs),
            ..Profile::default()
        };
        Update::Profile(name.to_owned(), Some(profile))
    };
    let first = PolicyId {
        kind: PolicyKind::GlobalNetworkPolicy,
        namespace: String::new(),
        name: "q".to_owned(),
    };
    let pods = (0..150).map(|number| workload(REMOTE, &format!("c{number}"), number));
    pods.chain([
        workload(LOCAL, "w0", 200),
        profile("p0", &[("b", "x")]),
        profile("kns.n", &[("a", "y"), ("c", "x")]),
        Update::Policy(first, Some(Policy::default())),
    ])
    .collect()
}

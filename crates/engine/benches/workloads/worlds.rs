//! The worlds that are measured: those of Felix's own benchmark of its calculation graph.

use std::net::Ipv4Addr;

use ipnet::{IpNet, Ipv4Net};
use tortie_api::rule::{Action, PolicyType};
use tortie_api::scalar::{Port, Protocol};
use tortie_engine::Update;
use tortie_engine::input::{
    Entity, Labels, NetworkSet, Policy, PolicyId, PolicyKind, Profile, Rule, WorkloadEndpoint,
    WorkloadEndpointKey,
};

/// The node that the engine works for.
pub(crate) const LOCAL: &str = "localhost";
const REMOTE: &str = "remotehost";
const NAMESPACES: usize = 100;
const NAMESPACE_NAME: &str = "pcns.projectcalico.org/name";

/// Labels of which every endpoint has one. Indexes 0 and 1, and 20 and 30, are equal.
const MARKERS: [&str; 31] = [
    "MARK_AA",
    "MARK_AA",
    "MARK_BBB",
    "tortie/MarkCcc1",
    "tortie/MarkDdd",
    "tortie/MarkEe",
    "tortie/MarkFf",
    "tortie/MarkGggg12",
    "tortie/MARK_HHHH1",
    "tortie/MARK_III1",
    "MarkJjjjjjjjj",
    "xMARK_AA",
    "xMARK_BBB",
    "xtortie/MarkCcc1",
    "xtortie/MarkDdd",
    "xtortie/MarkEe",
    "xtortie/MarkFf",
    "xtortie/MarkGggg12",
    "xtortie/MARK_HHHH1",
    "xtortie/MARK_III1",
    "yxMarkJjjjjjjjj",
    "yxMARK_AA",
    "yxMARK_BBB",
    "yxtortie/MarkCcc1",
    "yxtortie/MarkDdd",
    "yxtortie/MarkEe",
    "yxtortie/MarkFf",
    "yxtortie/MarkGggg12",
    "yxtortie/MARK_HHHH1",
    "yxtortie/MARK_III1",
    "yxMarkJjjjjjjjj",
];

/// Updates, and deletions that follow once all is in sync.
pub(crate) struct World {
    pub(crate) updates: Vec<Update>,
    pub(crate) deletions: Vec<Update>,
}

type MakeWorld = Box<dyn Fn() -> World>;

/// The worlds of which a snapshot is measured, three sizes and more of each kind.
pub(crate) fn all() -> Vec<(&'static str, MakeWorld)> {
    let mut all: Vec<(&'static str, MakeWorld)> = Vec::new();
    let mut add = |name, make: fn() -> World| all.push((name, Box::new(make)));
    add("tags(2.5k,200,0,100)", || tags(2_500, 200, 0, 100));
    add("tags(25k,200,0,1k)", || tags(25_000, 200, 0, 1_000));
    add("tags(250k,200,0,10k)", || tags(250_000, 200, 0, 10_000));
    add("tags(250k,200,200,10k)", || tags(250_000, 200, 200, 10_000));
    add("netsets(10k,200,0,100)", || {
        network_sets(10_000, 200, 0, 100)
    });
    add("netsets(10k,200,0,1k)", || {
        network_sets(10_000, 200, 0, 1_000)
    });
    add("netsets(10k,200,0,10k)", || {
        network_sets(10_000, 200, 0, 10_000)
    });
    add("netsets(10k,200,200,10k)", || {
        network_sets(10_000, 200, 200, 10_000)
    });
    add("customers(1k)", || customers(1_000));
    add("customers(10k)", || customers(10_000));
    add("customers(100k)", || customers(100_000));
    all
}

/// The worlds in which single updates are measured.
pub(crate) fn for_single_updates() -> Vec<(&'static str, MakeWorld)> {
    vec![
        ("single(2.5k)", Box::new(|| tags(2_500, 200, 0, 100))),
        ("single(25k)", Box::new(|| tags(25_000, 200, 0, 1_000))),
        ("single(250k)", Box::new(|| tags(250_000, 200, 0, 10_000))),
    ]
}

fn tags(remote: usize, local: usize, deleted: usize, policies: usize) -> World {
    let mut updates: Vec<Update> = (0..policies).map(tag_policy).collect();
    updates.extend((0..NAMESPACES).map(namespace));
    updates.extend((0..remote).map(|n| endpoint(REMOTE, n, n + 1)));
    updates.extend((0..local).map(|n| endpoint(LOCAL, n, remote + n + 1)));
    World {
        updates,
        deletions: (0..deleted).map(deletion).collect(),
    }
}

fn network_sets(remote: usize, local: usize, deleted: usize, sets: usize) -> World {
    const SIZES: [usize; 10] = [1, 1, 1, 1, 2, 3, 4, 5, 100, 1000];
    let mut updates: Vec<Update> = (0..NAMESPACES).map(namespace).collect();
    updates.extend((0..remote).map(|n| endpoint(REMOTE, n, n + 1)));
    let mut next = 0;
    for n in 0..sets {
        let name = format!("network-set-{n}");
        let size = SIZES[n % SIZES.len()];
        updates.push(Update::NetworkSet(
            name.clone(),
            Some(NetworkSet {
                labels: labels([("network-set-name", name.clone())]),
                nets: (next..next + size)
                    .map(|n| address(0x2000_0000, n))
                    .collect(),
                profiles: Vec::new(),
            }),
        ));
        next += size;
        updates.push(policy(
            format!("network-set-pol-{n}"),
            "all()".to_owned(),
            vec![from_selector(format!("network-set-name == '{name}'"))],
        ));
    }
    updates.extend((0..local).map(|n| endpoint(LOCAL, n, remote + n + 1)));
    World {
        updates,
        deletions: (0..deleted).map(deletion).collect(),
    }
}

fn customers(count: usize) -> World {
    let stride = (count / 100).max(1);
    let mut updates: Vec<Update> = (0..count).map(customer_policy).collect();
    updates.extend((0..count).map(customer_namespace));
    let is_local = |n: &usize| n.is_multiple_of(stride) && n / stride < 100;
    let (local, remote): (Vec<usize>, Vec<usize>) = (0..count).partition(is_local);
    updates.extend(remote.into_iter().map(|n| customer_pod(REMOTE, n)));
    updates.extend(local.into_iter().map(|n| customer_pod(LOCAL, n)));
    World {
        updates,
        deletions: Vec::new(),
    }
}

/// A pod that was in the world of tags, with another value of a label that no selector asks for and another marker.
pub(crate) fn relabelled_remote_pod(sample: usize) -> Update {
    endpoint(REMOTE, sample * 7, sample * 7 + 2)
}

pub(crate) fn new_local_pod(sample: usize) -> Update {
    endpoint(LOCAL, 100_000 + sample, 1_000_000 + sample)
}

/// A policy of the world of tags with another rule.
pub(crate) fn edited_policy(sample: usize) -> Update {
    let n = sample % 100;
    policy(
        format!("tag-pol-{n}"),
        format!("has({})", MARKERS[n % MARKERS.len()]),
        vec![from_selector(format!(
            "has({})",
            MARKERS[(sample + 9) % MARKERS.len()]
        ))],
    )
}

/// Many selectors that only differ in one label.
pub(crate) fn many_selectors(count: usize) -> Vec<Update> {
    let rules = (0..count).map(|n| from_selector(format!("alpha == 'beta' && has(ipset-{n})")));
    let rules: Vec<Rule> = rules.collect();
    let mut updates: Vec<Update> = rules
        .chunks(100)
        .enumerate()
        .map(|(n, rules)| policy(format!("many-{n}"), "all()".to_owned(), rules.to_vec()))
        .collect();
    updates.push(endpoint(LOCAL, 0, 0));
    updates
}

/// An endpoint that matches one of [`many_selectors`].
pub(crate) fn endpoint_with_set_label(sample: usize, selectors: usize) -> Update {
    let own = labels([
        ("alpha", "beta".to_owned()),
        (&*format!("ipset-{}", sample % selectors), "x".to_owned()),
    ]);
    workload(
        REMOTE,
        "wep-1".to_owned(),
        address(0x0a00_0000, 1),
        own,
        Vec::new(),
    )
}

/// Endpoints in groups of ten with an `app` label of their own.
pub(crate) fn many_endpoints(count: usize) -> Vec<Update> {
    let of_group = |n: usize| {
        let own = labels([
            ("app", format!("app-{}", n / 10)),
            ("alpha", "beta".to_owned()),
        ]);
        workload(
            REMOTE,
            format!("wep-{n}"),
            address(0x0a00_0000, n),
            own,
            Vec::new(),
        )
    };
    let mut updates: Vec<Update> = (0..count).map(of_group).collect();
    updates.push(endpoint(LOCAL, 0, 0));
    updates
}

/// A policy with a selector that matches one group of [`many_endpoints`].
pub(crate) fn policy_with_new_selector(sample: usize) -> Update {
    policy(
        "changing".to_owned(),
        "all()".to_owned(),
        vec![from_selector(format!("app == 'app-{}'", sample % 10))],
    )
}

fn tag_policy(n: usize) -> Update {
    let marker = |n: usize| MARKERS[n % MARKERS.len()];
    let rules = (0..5).map(|j| from_selector(format!("has({})", marker(n + j))));
    policy(
        format!("tag-pol-{n}"),
        format!("has({})", marker(n)),
        rules.collect(),
    )
}

fn namespace(n: usize) -> Update {
    let name = format!("namespace-{n}");
    Update::Profile(
        format!("kns.{name}"),
        Some(Profile {
            labels: labels([(NAMESPACE_NAME, name)]),
            ..Profile::default()
        }),
    )
}

fn endpoint(node: &str, n: usize, seed: usize) -> Update {
    let mut own: Labels = [10, 11, 20, 30, 40]
        .map(|k| (format!("one-in-{k}"), format!("value-{}", seed % k)))
        .into();
    own.insert(MARKERS[seed % MARKERS.len()].to_owned(), "true".to_owned());
    let profiles = vec![format!("kns.namespace-{}", n % NAMESPACES)];
    workload(
        node,
        format!("wep-{n}"),
        address(0x0a00_0000, seed),
        own,
        profiles,
    )
}

fn deletion(n: usize) -> Update {
    Update::WorkloadEndpoint(key(LOCAL, format!("wep-{n}")), None)
}

fn customer_policy(n: usize) -> Update {
    let namespace = format!("customer-{n}");
    let selector = format!("{NAMESPACE_NAME} == '{namespace}'");
    let entity = Entity {
        selector: selector.clone(),
        ..Entity::default()
    };
    let dns = Entity {
        nets: vec![Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 10), 32).into()],
        ports: vec![Port::single(53)],
        ..Entity::default()
    };
    Update::Policy(
        PolicyId {
            kind: PolicyKind::NetworkPolicy,
            name: "isolation".to_owned(),
            namespace,
        },
        Some(Policy {
            tier: "default".to_owned(),
            selector,
            types: vec![PolicyType::Ingress, PolicyType::Egress],
            inbound: vec![Rule {
                action: Action::Allow,
                source: entity.clone(),
                ..Rule::default()
            }],
            outbound: vec![
                Rule {
                    action: Action::Allow,
                    destination: entity,
                    ..Rule::default()
                },
                Rule {
                    action: Action::Allow,
                    protocol: Some(Protocol::Udp),
                    destination: dns,
                    ..Rule::default()
                },
            ],
            ..Policy::default()
        }),
    )
}

fn customer_namespace(n: usize) -> Update {
    let name = format!("customer-{n}");
    Update::Profile(
        format!("kns.{name}"),
        Some(Profile {
            labels: labels([
                (NAMESPACE_NAME, name),
                ("namespace-id", unique(n, 20)),
                ("production", n.is_multiple_of(2).to_string()),
            ]),
            ..Profile::default()
        }),
    )
}

fn customer_pod(node: &str, n: usize) -> Update {
    let pick = |options: &[&str]| options[n % options.len()].to_owned();
    let own = labels([
        ("pod-id", unique(n * 5, 20)),
        ("instance-id", unique(n * 5 + 1, 20)),
        ("short-id", unique(n * 5 + 2, 10)),
        ("config-hash", unique(n * 5 + 3, 20)),
        ("version-tag", unique(n * 5 + 4, 8)),
        ("enabled", (n % 2).to_string()),
        ("debug", (n / 2 % 2).to_string()),
        ("canary", (n / 4 % 2).to_string()),
        ("managed", (n / 8 % 2).to_string()),
        ("environment", pick(&["dev", "staging", "prod"])),
        ("tier", pick(&["frontend", "backend", "middleware", "data"])),
        ("region", pick(&["north", "south", "east", "west"])),
        (
            "team",
            pick(&["platform", "payments", "identity", "growth", "infra"]),
        ),
        ("managed-by", "controller".to_owned()),
        ("tenant-id", unique(n % 5_000, 10)),
    ]);
    let name = format!(
        "customer-{n}/app-{:09x}-{:05x}",
        n * 7 + 3,
        (n * 17 + 5) & 0xffff
    );
    workload(
        node,
        name,
        address(0x0a00_0000, n),
        own,
        vec![format!("kns.customer-{n}")],
    )
}

fn workload(
    node: &str,
    name: String,
    address: IpNet,
    labels: Labels,
    profiles: Vec<String>,
) -> Update {
    Update::WorkloadEndpoint(
        key(node, name),
        Some(Box::new(WorkloadEndpoint {
            interface: "cali0123456789a".to_owned(),
            labels,
            profiles,
            ipv4_nets: vec![address],
            ..WorkloadEndpoint::default()
        })),
    )
}

fn key(node: &str, workload: String) -> WorkloadEndpointKey {
    WorkloadEndpointKey {
        node: node.to_owned(),
        orchestrator: "k8s".to_owned(),
        workload,
        endpoint: "eth0".to_owned(),
    }
}

fn policy(name: String, selector: String, inbound: Vec<Rule>) -> Update {
    Update::Policy(
        PolicyId {
            kind: PolicyKind::GlobalNetworkPolicy,
            namespace: String::new(),
            name,
        },
        Some(Policy {
            tier: "default".to_owned(),
            selector,
            inbound,
            ..Policy::default()
        }),
    )
}

fn from_selector(selector: String) -> Rule {
    Rule {
        action: Action::Allow,
        source: Entity {
            selector,
            ..Entity::default()
        },
        ..Rule::default()
    }
}

fn labels<const N: usize>(labels: [(&str, String); N]) -> Labels {
    labels.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The address `n` after a first one.
fn address(first: u32, n: usize) -> IpNet {
    let n = u32::try_from(n).expect("fewer addresses than IPv4 has");
    Ipv4Net::new_assert(Ipv4Addr::from_bits(first + n), 32).into()
}

/// A text that no other number gives.
fn unique(n: usize, length: usize) -> String {
    let mut state = n as u64 + 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(b"abcdef0123456789"[(state >> 60) as usize])
    };
    (0..length).map(|_| next()).collect()
}

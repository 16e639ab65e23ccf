//! The few words that worlds are made of: names, labels, selectors, addresses and ports.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use tortie_api::scalar::{Port, Protocol};

use super::some;

pub(crate) const NAMESPACES: [&str; 3] = ["blue", "green", "red"];
pub(crate) const NODES: [&str; 2] = ["n1", "n2"];
pub(crate) const ACCOUNTS: [&str; 2] = ["cook", "waiter"];
pub(crate) const TIERS: [&str; 3] = ["t1", "t2", "t3"];
/// The last one is never made.
pub(crate) const PROFILES: [&str; 2] = ["prof1", "prof2"];
pub(crate) const MISSING_PROFILE: &str = "prof3";
/// In the order of policies a name goes before another that it begins unless what follows is before `/`.
pub(crate) const POLICIES: [&str; 5] = ["p", "p-x", "p.x", "p0", "q"];
pub(crate) const SERVICES: [&str; 2] = ["svc1", "svc2"];
pub(crate) const PORT_NAMES: [&str; 3] = ["dns", "http", "web"];
pub(crate) const PORTS: [u16; 6] = [22, 53, 80, 81, 443, 8080];

pub(crate) const NETS4: [&str; 8] = [
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.0.0.0/30",
    "10.0.0.4/31",
    "10.0.0.2/32",
    "10.0.0.3",
    "128.0.0.0/1",
    "1.1.1.1/32",
];
pub(crate) const NETS6: [&str; 5] = [
    "::/0",
    "fd00::/16",
    "fd00::/126",
    "fd00::2",
    "2001:db8::/32",
];

const KEYS: [&str; 3] = ["app", "env", "role"];
const VALUES: [&str; 3] = ["a", "ab", "b"];

pub(crate) type Labels = BTreeMap<String, String>;

pub(crate) fn labels() -> impl Strategy<Value = Labels> + Clone {
    btree_map(some(&KEYS), some(&VALUES), 0..4)
}

/// Kubernetes gives each namespace a label with its name; it is among those that selectors ask for here.
pub(crate) fn namespace_labels() -> impl Strategy<Value = Labels> {
    btree_map(some(&["env", "team"]), some(&VALUES), 0..3)
}

/// One condition.
fn term(keys: &'static [&'static str], values: &'static [&'static str]) -> BoxedStrategy<String> {
    let compare = select(vec!["==", "!=", "contains", "starts with", "ends with"]);
    let member = select(vec!["in", "not in"]);
    let has = select(vec!["has", "!has", "!!has"]);
    prop_oneof![
        6 => (some(keys), compare, some(values)).prop_map(|(key, is, value)| format!("{key} {is} '{value}'")),
        2 => (some(keys), member, vec(some(values), 0..3))
            .prop_map(|(key, is, values)| format!("{key} {is} {{{}}}", quoted(&values))),
        2 => (some(keys), has).prop_map(|(key, has)| format!("{has}({key})")),
        2 => Just("all()".to_owned()),
    ]
    .boxed()
}

fn quoted(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
    values.join(", ")
}

fn selector_over(
    keys: &'static [&'static str],
    values: &'static [&'static str],
) -> impl Strategy<Value = String> + Clone {
    let term = || term(keys, values);
    prop_oneof![
        6 => term(),
        1 => (term(), term()).prop_map(|(a, b)| format!("{a} && {b}")),
        2 => (term(), term()).prop_map(|(a, b)| format!("{a} || {b}")),
        1 => (term(), term()).prop_map(|(a, b)| format!("!({a} && {b})")),
        1 => term().prop_map(|a| format!("!({a})")),
    ]
    .boxed()
}

/// A selector of endpoints and network sets, sometimes by labels that Calico gives.
pub(crate) fn selector() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        12 => selector_over(&KEYS, &VALUES),
        1 => selector_over(&["projectcalico.org/namespace"], &NAMESPACES),
        1 => selector_over(&["projectcalico.org/serviceaccount"], &ACCOUNTS),
        1 => selector_over(&["projectcalico.org/orchestrator"], &["k8s", "openstack"]),
    ]
}

pub(crate) fn namespace_selector() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        2 => selector_over(&["env", "team"], &VALUES),
        1 => selector_over(&["projectcalico.org/name"], &NAMESPACES),
    ]
}

pub(crate) fn account_selector() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        2 => selector_over(&KEYS, &VALUES),
        1 => selector_over(&["projectcalico.org/name"], &ACCOUNTS),
    ]
}

/// Protocols with ports, by name and number.
pub(crate) fn port_protocol() -> impl Strategy<Value = Protocol> + Clone {
    select(vec![
        Protocol::Tcp,
        Protocol::Tcp,
        Protocol::Number(6),
        Protocol::Udp,
        Protocol::Number(17),
        Protocol::Sctp,
        Protocol::Number(132),
    ])
}

/// Any protocol.
pub(crate) fn protocol() -> impl Strategy<Value = Protocol> + Clone {
    prop_oneof![
        6 => port_protocol(),
        3 => select(vec![
            Protocol::Icmp,
            Protocol::Number(1),
            Protocol::Icmpv6,
            Protocol::Number(58),
            Protocol::UdpLite,
            Protocol::Number(47),
        ]),
    ]
}

/// Ports as rules name them.
pub(crate) fn ports() -> impl Strategy<Value = Vec<Port>> + Clone {
    let port = prop_oneof![
        3 => select(PORTS.to_vec()).prop_map(Port::single),
        1 => select(vec![Port::Range(1, 65535), Port::Range(80, 81), Port::Range(79, 443), Port::Range(1024, 65535)]),
        2 => some(&PORT_NAMES).prop_map(|name| Port::Named(name.into())),
    ];
    vec(port, 1..3)
}

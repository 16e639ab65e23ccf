//! Random policies, profiles and tiers.

use proptest::prelude::*;
use proptest::sample::select;
use tortie_api::rule::{Action, PolicyType, ServiceMatch};
use tortie_api::scalar::{Port, Protocol};
use tortie_engine::Update;
use tortie_engine::input::{
    DefaultAction, Entity, Policy, PolicyId, PolicyKind, Profile, Rule, Tier,
};

use crate::random::world::{labels, maybe, net, profile_name};

/// Selectors over the few labels; the last ones do not parse.
const SELECTORS: [&str; 22] = [
    "all()",
    "global()",
    "a == 'x'",
    "a=='x'",
    "a == 'y'",
    "a != 'x'",
    "b == 'x'",
    "has(a)",
    "has(b)",
    "!has(a)",
    "has(c) && a == 'x'",
    "a in {'x', 'y'}",
    "a not in {'x'}",
    "b in {'x', ''} && has(c)",
    "a == 'x' && a == 'y'",
    "a == 'x' || b == 'x'",
    "c starts with 'x'",
    "c ends with 'y' && !has(b)",
    "b contains 'x'",
    "!(a == 'x' && b == 'y')",
    "a ==",
    "has(a)) || (has(b)",
];

pub(crate) fn selector() -> impl Strategy<Value = String> {
    select(&SELECTORS[..]).prop_map(str::to_owned)
}

/// Mostly none.
fn rule_selector() -> impl Strategy<Value = String> {
    prop_oneof![2 => Just(String::new()), 3 => selector()]
}

fn port() -> impl Strategy<Value = Port> {
    prop_oneof![
        select(vec!["http", "dns"]).prop_map(|name| Port::Named(name.into())),
        (1..4_u16).prop_map(|number| Port::Range(number, number + 1)),
    ]
}

fn protocol() -> impl Strategy<Value = Protocol> {
    select(vec![
        Protocol::Tcp,
        Protocol::Udp,
        Protocol::Sctp,
        Protocol::Icmp,
        Protocol::Number(6),
        Protocol::Number(17),
    ])
}

fn service() -> impl Strategy<Value = ServiceMatch> {
    (select(vec!["n", "m"]), select(vec!["web", "db"])).prop_map(|(namespace, name)| ServiceMatch {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
    })
}

fn entity() -> impl Strategy<Value = Entity> {
    let full = (
        rule_selector(),
        prop_oneof![4 => Just(String::new()), 1 => selector()],
        prop::collection::vec(net(), 0..2),
        prop_oneof![3 => Just(Vec::new()), 2 => prop::collection::vec(port(), 0..3)],
        prop_oneof![5 => Just(Vec::new()), 1 => prop::collection::vec(port(), 0..2)],
        prop_oneof![6 => Just(None), 1 => service().prop_map(Some)],
    )
        .prop_map(
            |(selector, not_selector, nets, ports, not_ports, service)| Entity {
                selector,
                not_selector,
                nets,
                ports,
                not_ports,
                service,
                ..Entity::default()
            },
        );
    prop_oneof![1 => Just(Entity::default()), 2 => full]
}

fn rule() -> impl Strategy<Value = Rule> {
    let action = select(vec![Action::Allow, Action::Deny, Action::Pass, Action::Log]);
    (action, prop::option::of(protocol()), entity(), entity()).prop_map(
        |(action, protocol, source, destination)| Rule {
            action,
            protocol,
            source,
            destination,
            ..Rule::default()
        },
    )
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    prop::collection::vec(rule(), 0..3)
}

fn tier_name() -> impl Strategy<Value = String> {
    select(vec!["default", "t1", "t2"]).prop_map(str::to_owned)
}

fn order() -> impl Strategy<Value = Option<f64>> {
    select(vec![None, Some(-1.0), Some(1.0), Some(2.5)])
}

fn policy_id() -> impl Strategy<Value = PolicyId> {
    (
        select(&PolicyKind::ALL[..]),
        select(vec!["n", "m"]),
        select(vec!["q", "q-r"]),
    )
        .prop_map(|(kind, namespace, name)| PolicyId {
            kind,
            namespace: if kind.name().contains("Global") || kind.name().contains("Cluster") {
                String::new()
            } else {
                namespace.to_owned()
            },
            name: name.to_owned(),
        })
}

fn policy_value() -> impl Strategy<Value = Policy> {
    let types = select(vec![
        vec![],
        vec![PolicyType::Ingress],
        vec![PolicyType::Egress],
        vec![PolicyType::Ingress, PolicyType::Egress],
    ]);
    let selector = prop_oneof![1 => Just("all()".to_owned()), 2 => selector()];
    // 0 normal, 1 untracked, 2 before DNAT, 3 on forward.
    let point = prop_oneof![5 => Just(0), 1 => Just(1), 1 => Just(2), 2 => Just(3)];
    (
        (tier_name(), order(), selector, types),
        (rules(), rules(), point, prop::bool::weighted(0.1)),
    )
        .prop_map(
            |((tier, order, selector, types), (inbound, outbound, point, always))| Policy {
                tier,
                order,
                selector,
                types,
                inbound,
                outbound,
                untracked: point == 1,
                pre_dnat: point == 2,
                apply_on_forward: point == 3,
                assume_needed_on_every_node: always,
            },
        )
}

pub(crate) fn policy() -> impl Strategy<Value = Update> {
    (policy_id(), maybe(policy_value())).prop_map(|(id, policy)| Update::Policy(id, policy))
}

pub(crate) fn tier() -> impl Strategy<Value = Update> {
    let action = select(vec![DefaultAction::Deny, DefaultAction::Pass]);
    let value = (order(), action).prop_map(|(order, default_action)| Tier {
        order,
        default_action,
    });
    (tier_name(), maybe(value)).prop_map(|(name, tier)| Update::Tier(name, tier))
}

pub(crate) fn profile() -> impl Strategy<Value = Update> {
    let some_rules = || prop_oneof![2 => Just(Vec::new()), 1 => rules()];
    let value =
        (labels(), some_rules(), some_rules()).prop_map(|(labels, inbound, outbound)| Profile {
            labels,
            inbound,
            outbound,
        });
    (profile_name(), maybe(value)).prop_map(|(name, profile)| Update::Profile(name, profile))
}

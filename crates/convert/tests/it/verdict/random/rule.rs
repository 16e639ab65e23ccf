//! Rules with every kind of condition. What validation would refuse is taken out again.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use tortie_api::rule::{
    Action, EntityRule, HttpMatch, IcmpFields, PolicyType, Rule, ServiceAccountMatch, ServiceMatch,
};
use tortie_api::scalar::{Port, Protocol};

use super::words::{
    ACCOUNTS, NAMESPACES, NETS4, NETS6, SERVICES, account_selector, namespace_selector, ports,
    protocol, selector,
};
use super::{maybe, some};

/// A rule of a policy in a namespace.
pub(super) fn of_policy(direction: PolicyType) -> impl Strategy<Value = Rule> {
    rule().prop_map(move |rule| in_direction(rule, direction, true))
}

/// A rule of a global policy.
pub(super) fn of_global_policy(direction: PolicyType) -> impl Strategy<Value = Rule> {
    rule().prop_map(move |rule| in_direction(rule, direction, false))
}

/// A rule of a profile, where services mean nothing.
pub(super) fn of_profile() -> impl Strategy<Value = Rule> {
    rule().prop_map(|mut rule| {
        rule.source.services = None;
        rule.destination.services = None;
        rule
    })
}

/// Services are for the far end only, and HTTP for ingress.
fn in_direction(mut rule: Rule, direction: PolicyType, is_namespaced: bool) -> Rule {
    let far = match direction {
        PolicyType::Ingress => {
            rule.destination.services = None;
            &mut rule.source
        }
        PolicyType::Egress => {
            rule.source.services = None;
            rule.http = None;
            &mut rule.destination
        }
    };
    if let Some(services) = &mut far.services
        && services.namespace.is_empty()
        && !is_namespaced
    {
        NAMESPACES[0].clone_into(&mut services.namespace);
    }
    rule
}

fn rule() -> impl Strategy<Value = Rule> {
    let action = prop_oneof![
        4 => Just(Action::Allow),
        3 => Just(Action::Deny),
        1 => Just(Action::Pass),
        1 => Just(Action::Log),
    ];
    let icmp = || prop::option::weighted(0.5, icmp());
    let parts = (
        action,
        maybe(0.2, select(vec![Some(4), Some(6)])),
        prop::option::weighted(0.35, protocol()),
        prop::option::weighted(0.1, protocol()),
        icmp(),
        maybe(0.1, icmp()),
        any::<bool>().prop_flat_map(|is_v6| (entity(is_v6), entity(is_v6))),
        prop::bool::weighted(0.1),
    );
    parts.prop_map(
        |(
            action,
            ip_version,
            protocol,
            not_protocol,
            icmp,
            not_icmp,
            (source, destination),
            http,
        )| {
            let mut rule = Rule {
                action,
                ip_version,
                protocol,
                not_protocol,
                icmp,
                not_icmp,
                source,
                destination,
                ..Rule::default()
            };
            correct(&mut rule);
            if http && action == Action::Allow && rule.protocol == Some(Protocol::Tcp) {
                rule.http = Some(HttpMatch {
                    methods: vec!["GET".to_owned()],
                    ..HttpMatch::default()
                });
            }
            rule
        },
    )
}

/// Takes out what cannot be together.
fn correct(rule: &mut Rule) {
    let number = rule.protocol.as_ref().and_then(Protocol::number);
    let protocols = [&rule.protocol, &rule.not_protocol];
    let mut numbers = protocols.into_iter().flatten().filter_map(Protocol::number);
    if numbers.any(|number| number == 1 || number == 58) {
        rule.ip_version = None;
    }
    if !matches!(number, Some(1 | 58)) {
        rule.icmp = None;
    }
    for entity in [&mut rule.source, &mut rule.destination] {
        for ports in [&mut entity.ports, &mut entity.not_ports] {
            match number {
                None => ports.retain(Port::is_named),
                Some(6 | 17 | 132) => {}
                Some(_) => ports.clear(),
            }
        }
        let wanted = rule.ip_version;
        for nets in [&mut entity.nets, &mut entity.not_nets] {
            let version = |net: &String| if net.contains(':') { 6 } else { 4 };
            nets.retain(|net| wanted.is_none_or(|wanted| wanted == version(net)));
        }
        entity.not_nets.retain(|net| !net.ends_with("/0"));
    }
    if rule.destination.services.is_some() {
        rule.destination.ports.clear();
        rule.destination.not_ports.clear();
    }
}

fn icmp() -> impl Strategy<Value = IcmpFields> {
    let code = prop::option::weighted(0.4, 0..2_i64);
    (select(vec![8, 128]), code).prop_map(|(r#type, code)| IcmpFields {
        r#type: Some(r#type),
        code,
    })
}

/// Conditions on one side.
fn entity(is_v6: bool) -> BoxedStrategy<EntityRule> {
    let nets = move || {
        let all: &'static [&'static str] = if is_v6 { &NETS6 } else { &NETS4 };
        btree_set(some(all), 1..3).prop_map(list)
    };
    let parts = (
        maybe(0.15, nets()),
        maybe(0.1, nets()),
        maybe(0.3, selector()),
        maybe(0.12, selector()),
        maybe(
            0.2,
            prop_oneof![4 => namespace_selector(), 1 => Just("global()".to_owned())],
        ),
        maybe(0.1, accounts().prop_map(Some)),
        maybe(0.25, ports()),
        maybe(0.1, ports()),
    );
    let selected = parts.prop_map(
        |(
            nets,
            not_nets,
            selector,
            not_selector,
            namespace_selector,
            service_accounts,
            ports,
            not_ports,
        )| EntityRule {
            nets,
            not_nets,
            selector,
            not_selector,
            namespace_selector,
            service_accounts,
            ports,
            not_ports,
            services: None,
        },
    );
    let service = (
        some(&SERVICES),
        maybe(0.5, some(&NAMESPACES)),
        maybe(0.2, ports()),
    );
    let behind = service.prop_map(|(name, namespace, ports)| EntityRule {
        services: Some(ServiceMatch { name, namespace }),
        ports,
        ..EntityRule::default()
    });
    prop_oneof![8 => Just(EntityRule::default()), 8 => selected, 3 => behind].boxed()
}

fn accounts() -> impl Strategy<Value = ServiceAccountMatch> {
    let names = maybe(0.6, vec(some(&ACCOUNTS), 1..2));
    (names, maybe(0.6, account_selector()))
        .prop_map(|(names, selector)| ServiceAccountMatch { names, selector })
}

fn list(set: BTreeSet<String>) -> Vec<String> {
    set.into_iter().collect()
}

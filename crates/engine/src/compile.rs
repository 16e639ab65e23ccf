//! Rules with selectors, named ports and services made into rules with sets.
//!
//! [`definitions`] tells which sets a rule needs; [`rule`] builds it with those sets, given in the same order. A rule
//! that needs a set which cannot be (its selector does not parse) denies everything: that fails closed whatever the
//! rule was for.

use std::borrow::Cow;

use tortie_api::rule::Action;
use tortie_api::scalar::{Port, Protocol};
use tortie_selector::Selector;

use crate::input;
use crate::message::{Original, PortProtocol, PortRange, Rule, RuleSide, SetId};
use crate::sets::definition::Definition;

/// The sets that a rule needs, in the order in which [`rule`] takes them.
pub(crate) fn definitions(rule: &input::Rule) -> Vec<Definition<'_>> {
    let source = SideDefinitions::new(&rule.source, rule.protocol.as_ref(), false);
    let destination = SideDefinitions::new(&rule.destination, rule.protocol.as_ref(), true);
    let mut all = Vec::new();
    for side in [source, destination] {
        all.extend(side.sets);
        all.extend(side.not_sets);
        all.extend(side.named_ports);
        all.extend(side.not_named_ports);
        all.extend(side.port_sets);
    }
    all
}

/// The rule with its sets; none among them stands for one that cannot be.
pub(crate) fn rule(rule: &input::Rule, sets: &mut dyn Iterator<Item = Option<SetId>>) -> Rule {
    let mut is_broken = false;
    let mut take = |count: usize| -> Vec<SetId> {
        let mut taken = Vec::with_capacity(count);
        for _ in 0..count {
            match sets.next().flatten() {
                Some(id) => taken.push(id),
                None => is_broken = true,
            }
        }
        taken
    };
    let protocol = rule.protocol.as_ref();
    let mut side = |entity: &input::Entity, is_destination: bool| {
        let definitions = SideDefinitions::new(entity, protocol, is_destination);
        RuleSide {
            sets: take(definitions.sets.len()),
            not_sets: take(definitions.not_sets.len()),
            named_port_sets: take(definitions.named_ports.len()),
            not_named_port_sets: take(definitions.not_named_ports.len()),
            port_sets: take(definitions.port_sets.len()),
            nets: entity.nets.clone(),
            not_nets: entity.not_nets.clone(),
            ports: port_ranges(&entity.ports),
            not_ports: port_ranges(&entity.not_ports),
            original: original(entity),
        }
    };
    let src = side(&rule.source, false);
    let dst = side(&rule.destination, true);
    if is_broken {
        return Rule {
            action: Action::Deny,
            ..Rule::default()
        };
    }
    Rule {
        action: rule.action,
        ip_version: rule.ip_version.or(match &rule.protocol {
            Some(Protocol::Icmp) => Some(4),
            Some(Protocol::Icmpv6) => Some(6),
            _ => None,
        }),
        protocol: rule.protocol.clone(),
        not_protocol: rule.not_protocol.clone(),
        icmp: rule.icmp,
        not_icmp: rule.not_icmp,
        src,
        dst,
        http: rule.http.clone().map(Box::new),
        metadata: rule.metadata.clone().map(Box::new),
    }
}

/// The sets that one side of a rule needs.
#[derive(Default)]
struct SideDefinitions<'a> {
    sets: Vec<Definition<'a>>,
    not_sets: Vec<Definition<'a>>,
    named_ports: Vec<Definition<'a>>,
    not_named_ports: Vec<Definition<'a>>,
    port_sets: Vec<Definition<'a>>,
}

impl<'a> SideDefinitions<'a> {
    fn new(entity: &'a input::Entity, protocol: Option<&Protocol>, is_destination: bool) -> Self {
        let mut this = Self::default();
        // What must not match narrows what must, if there is such a thing. Alone, it also lets through what is no
        // endpoint at all, so it stays a condition of its own.
        let positive = positive_selector(entity);
        if positive.is_none() && !entity.not_selector.is_empty() {
            let not = entity.not_selector.as_str().into();
            this.not_sets.push(Definition::Selector(not));
        }
        let named = |ports: &'a [Port]| -> Vec<Definition<'a>> {
            let names = ports.iter().filter_map(|port| match port {
                Port::Named(name) => Some(&**name),
                Port::Range(..) => None,
            });
            names
                .map(|name| Definition::Port {
                    selector: positive.clone().unwrap_or(Cow::Borrowed("all()")),
                    protocol: protocol.map(PortProtocol::of_port),
                    name,
                })
                .collect()
        };
        this.named_ports = named(&entity.ports);
        this.not_named_ports = named(&entity.not_ports);
        let has_numeric = this.named_ports.len() < entity.ports.len();
        // Named ports are looked up among what the selector matches; only numeric ones still need the selector.
        if (has_numeric || this.named_ports.is_empty())
            && let Some(positive) = positive
        {
            this.sets.push(Definition::Selector(positive));
        }
        if let Some(service) = &entity.service {
            let definition = Definition::Service {
                service: format!("{}/{}", service.namespace, service.name),
                with_ports: is_destination,
            };
            if is_destination {
                this.port_sets.push(definition);
            } else {
                this.sets.push(definition);
            }
        }
        this
    }
}

/// The selector that an end must match, the excluded part with it. It does not parse if one of its parts does not.
pub(crate) fn positive_selector(entity: &input::Entity) -> Option<Cow<'_, str>> {
    match (&*entity.selector, &*entity.not_selector) {
        ("", _) => None,
        (selector, "") => Some(selector.into()),
        // Each must parse alone: `a) || (b` in brackets would become something else.
        (selector, not) => [selector, not]
            .into_iter()
            .find(|part| Selector::parse(part).is_err())
            .map(Cow::Borrowed)
            .or_else(|| Some(format!("({selector}) && (!({not}))").into())),
    }
}

fn port_ranges(ports: &[Port]) -> Vec<PortRange> {
    let range = |port: &Port| match port {
        Port::Range(first, last) => Some(PortRange {
            first: *first,
            last: *last,
        }),
        Port::Named(_) => None,
    };
    ports.iter().filter_map(range).collect()
}

fn original(entity: &input::Entity) -> Option<Box<Original>> {
    let original = Original {
        selector: entity.original_selector.clone(),
        not_selector: entity.original_not_selector.clone(),
        namespace_selector: entity.original_namespace_selector.clone(),
        service_accounts: entity.original_service_accounts.clone(),
        service: entity.service.clone(),
    };
    (original != Original::default()).then(|| Box::new(original))
}

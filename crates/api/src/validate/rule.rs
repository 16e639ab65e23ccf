//! Rules of policies and profiles.

use crate::kinds::rule::{Action, EntityRule, HttpMatch, Rule};
use crate::net;
use crate::problem::{Path, Problems};
use crate::repeated::repeated;
use crate::scalar::{Port, Protocol};
use crate::validate::labels;

/// Which way the traffic of a rule goes, and whether its policy belongs to a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) is_egress: bool,
    pub(super) is_namespaced: bool,
}

/// Checks rules that stand anywhere.
pub(super) fn check_all(at: &Path<'_>, rules: &[Rule], problems: &mut Problems) {
    for (index, rule) in rules.iter().enumerate() {
        check(&at.index(index), rule, problems);
    }
}

/// Checks what only rules of policies must obey.
pub(super) fn check_place(at: &Path<'_>, rules: &[Rule], place: Place, problems: &mut Problems) {
    let direction = if place.is_egress { "egress" } else { "ingress" };
    for (index, rule) in rules.iter().enumerate() {
        let at = at.index(index);
        let source = ("source", &rule.source);
        let destination = ("destination", &rule.destination);
        let (near, far) = if place.is_egress {
            (source, destination)
        } else {
            (destination, source)
        };
        // In profiles Calico accepts a service without a name, which matches nothing.
        let ends = [source, destination].into_iter();
        for (name, end) in ends.filter_map(|(name, end)| Some((name, end.services.as_ref()?))) {
            if end.name.is_empty() {
                let at = at.field(name);
                let at = at.field("services");
                problems.add_missing(&at.field("name"), "must be given");
            }
        }
        if let Some(services) = &near.1.services {
            let rule = format!("must not be set in the {} of an {direction} rule", near.0);
            problems.add(&at.field(near.0).field("services"), services, rule);
        }
        if let Some(services) = &far.1.services
            && services.namespace.is_empty()
            && !place.is_namespaced
        {
            let at = at.field(far.0);
            let at = at.field("services");
            problems.add_missing(
                &at.field("namespace"),
                "must be given in a cluster-wide policy",
            );
        }
        if let Some(http) = rule.http.as_ref().filter(|_| place.is_egress) {
            problems.add(&at.field("http"), http, "must not be set in an egress rule");
        }
    }
}

fn check(at: &Path<'_>, rule: &Rule, problems: &mut Problems) {
    if !rule.unknown.is_empty() {
        problems.add(
            at,
            rule.unknown.join(", "),
            "is not known to this version, which would lose it in writing the rule",
        );
    }
    for (name, protocol) in [
        ("protocol", &rule.protocol),
        ("notProtocol", &rule.not_protocol),
    ] {
        if let Some(protocol) = protocol.as_ref().filter(|protocol| !protocol.is_valid()) {
            problems.add(
                &at.field(name),
                protocol,
                format!("is not {}", Protocol::expected()),
            );
        }
    }
    check_icmp(at, rule, problems);
    if let Some(http) = &rule.http {
        check_http(at, rule, http, problems);
    }
    let mut families = Families::default();
    for (name, entity) in [("source", &rule.source), ("destination", &rule.destination)] {
        let at = at.field(name);
        check_entity(&at, entity, problems);
        check_ports(&at, rule.protocol.as_ref(), entity, problems);
        families.check(&at.field("nets"), &entity.nets, rule.ip_version, problems);
        families.check(
            &at.field("notNets"),
            &entity.not_nets,
            rule.ip_version,
            problems,
        );
        check_not_nets(&at.field("notNets"), &entity.not_nets, problems);
    }
    let destination = &rule.destination;
    if destination.services.is_some()
        && !(destination.ports.is_empty() && destination.not_ports.is_empty())
    {
        let ports = if destination.ports.is_empty() {
            "notPorts"
        } else {
            "ports"
        };
        let at = at.field("destination");
        problems.add_missing(&at.field(ports), "must not be set together with services");
    }
    if let Some(metadata) = &rule.metadata {
        let at = at.field("metadata");
        labels::annotations(&at.field("annotations"), &metadata.annotations, problems);
    }
}

fn check_icmp(at: &Path<'_>, rule: &Rule, problems: &mut Problems) {
    for (name, fields) in [("icmp", &rule.icmp), ("notICMP", &rule.not_icmp)] {
        if let Some(fields) = fields
            .as_ref()
            .filter(|f| f.code.is_some() && f.r#type.is_none())
        {
            problems.add(&at.field(name), fields, "must have a type if it has a code");
        }
    }
    let is_icmp = rule
        .protocol
        .as_ref()
        .is_some_and(|p| p.is_icmp() || p.is_icmpv6());
    if let Some(icmp) = rule.icmp.as_ref().filter(|_| !is_icmp) {
        problems.add(
            &at.field("icmp"),
            icmp,
            "needs protocol to be ICMP or ICMPv6",
        );
    }
    let version_at = at.field("ipVersion");
    for protocol in [&rule.protocol, &rule.not_protocol].into_iter().flatten() {
        match rule.ip_version {
            Some(version) if protocol.is_icmp() && version != 4 => {
                problems.add(&version_at, version, "must be 4 for protocol ICMP");
            }
            Some(version) if protocol.is_icmpv6() && version != 6 => {
                problems.add(&version_at, version, "must be 6 for protocol ICMPv6");
            }
            _ => {}
        }
    }
}

fn check_http(at: &Path<'_>, rule: &Rule, http: &HttpMatch, problems: &mut Problems) {
    let at = at.field("http");
    if rule
        .protocol
        .as_ref()
        .is_some_and(|protocol| protocol.number() != Some(6))
    {
        problems.add(&at, http, "needs protocol to be TCP or not set");
    }
    if rule.action != Action::Allow {
        problems.add(&at, http, "may only be set in a rule with action Allow");
    }
    for (_, method) in repeated(&http.methods) {
        problems.add(&at.field("methods"), method, "must not be given twice");
    }
    let paths_at = at.field("paths");
    for (index, path) in http.paths.iter().enumerate() {
        let at = paths_at.index(index);
        let text = match (path.exact.as_str(), path.prefix.as_str()) {
            (text, "") | ("", text) if !text.is_empty() => text,
            _ => {
                problems.add(&at, path, "must have exactly one of `exact` and `prefix`");
                continue;
            }
        };
        if !text.starts_with('/') || text.contains(['?', ' ', '#']) {
            problems.add(
                &at,
                path,
                "must start with `/` and contain no `?`, `#` or space",
            );
        }
    }
}

fn check_ports(
    at: &Path<'_>,
    protocol: Option<&Protocol>,
    entity: &EntityRule,
    problems: &mut Problems,
) {
    for (name, ports) in [("ports", &entity.ports), ("notPorts", &entity.not_ports)] {
        let at = at.field(name);
        match protocol {
            None if !ports.iter().all(Port::is_named) => {
                problems.add(
                    &at,
                    ports,
                    "port numbers need the rule's protocol to be TCP, UDP or SCTP",
                );
            }
            Some(protocol) if !ports.is_empty() && !protocol.supports_ports() => {
                let rule =
                    format!("ports need protocol TCP, UDP or SCTP, but the rule has {protocol}");
                problems.add(&at, ports, rule);
            }
            _ => {}
        }
        for (index, port) in ports.iter().enumerate() {
            match port {
                Port::Range(0, _) => problems.add(&at.index(index), port, "must be from 1 to 65535"),
                Port::Named(name) if !labels::is_port_name(name) => problems.add(
                    &at.index(index),
                    port,
                    "must be a port name: at most 15 lower-case letters, digits and single `-`, with at least one letter",
                ),
                _ => {}
            }
        }
    }
}

fn check_entity(at: &Path<'_>, entity: &EntityRule, problems: &mut Problems) {
    if entity.selector.contains("global(") {
        problems.add(
            &at.field("selector"),
            &entity.selector,
            "global() may only be used in namespaceSelector",
        );
    }
    let namespace_selector = &entity.namespace_selector;
    if namespace_selector.contains("global(")
        && !tortie_selector::Selector::parse(namespace_selector)
            .is_ok_and(|selector| selector.is_global())
    {
        problems.add(
            &at.field("namespaceSelector"),
            namespace_selector,
            "global() must stand alone, not with other selectors",
        );
    }
    if entity.services.is_none() {
        return;
    }
    let others = [
        ("selector", !entity.selector.is_empty()),
        ("notSelector", !entity.not_selector.is_empty()),
        ("namespaceSelector", !namespace_selector.is_empty()),
        ("serviceAccounts", entity.service_accounts.is_some()),
        ("nets", !entity.nets.is_empty()),
        ("notNets", !entity.not_nets.is_empty()),
    ];
    for (name, _) in others.iter().filter(|(_, is_set)| *is_set) {
        problems.add_missing(&at.field(name), "must not be set together with services");
    }
}

/// Which address families the nets of a rule have used so far.
#[derive(Default)]
struct Families {
    v4: bool,
    v6: bool,
}

impl Families {
    fn check(
        &mut self,
        at: &Path<'_>,
        nets: &[String],
        version: Option<i64>,
        problems: &mut Problems,
    ) {
        for (index, text) in nets.iter().enumerate() {
            let Some(cidr) = net::parse_cidr_or_ip(text) else {
                continue;
            };
            let (family, seen_other) = if cidr.is_ipv4() {
                (4, self.v6)
            } else {
                (6, self.v4)
            };
            if version.is_some_and(|version| version != family) {
                let rule = format!(
                    "is IPv{family}, but the rule has ipVersion {}",
                    version.unwrap_or_default()
                );
                problems.add(&at.index(index), text, rule);
            }
            if seen_other {
                problems.add(
                    &at.index(index),
                    text,
                    "a rule must not mix IPv4 and IPv6 nets",
                );
            }
            self.v4 |= family == 4;
            self.v6 |= family == 6;
        }
    }
}

/// A negated match of everything can never hold.
fn check_not_nets(at: &Path<'_>, nets: &[String], problems: &mut Problems) {
    for (index, text) in nets.iter().enumerate() {
        let matches_all = text == "0.0.0.0/0"
            || net::parse_cidr(text).is_some_and(|cidr| !cidr.is_ipv4() && cidr.prefix() == 0);
        if matches_all {
            problems.add(
                &at.index(index),
                text,
                "covers every address, so the rule would never match",
            );
        }
    }
}

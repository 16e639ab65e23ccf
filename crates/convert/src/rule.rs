//! Rules of policies and profiles.

use tortie_api::rule::{
    Action, EntityRule, IcmpFields, Rule as ApiRule, ServiceAccountMatch, ServiceMatch,
};
use tortie_api::scalar::Protocol;
use tortie_api::{Path, Problems};

use super::{read, selector};
use tortie_engine::input::{Entity, Icmp, Rule};

/// Converts rules of a policy in this namespace; empty for a policy of the cluster, and for profiles.
///
/// There are none if one cannot be converted: a rule left out would change what the ones after it decide.
pub(super) fn rules(
    at: &Path<'_>,
    rules: &[ApiRule],
    namespace: &str,
    problems: &mut Problems,
) -> Option<Vec<Rule>> {
    let converted: Vec<Option<Rule>> = rules
        .iter()
        .enumerate()
        .map(|(index, rule)| convert(&at.index(index), rule, namespace, problems))
        .collect();
    converted.into_iter().collect()
}

fn convert(
    at: &Path<'_>,
    rule: &ApiRule,
    namespace: &str,
    problems: &mut Problems,
) -> Option<Rule> {
    if !rule.unknown.is_empty() {
        return unknown(at, rule, namespace, problems);
    }
    let ip_version = ip_version(at, rule.ip_version, problems);
    let protocol = protocol(&at.field("protocol"), rule.protocol.as_ref(), problems);
    let not_protocol = self::protocol(
        &at.field("notProtocol"),
        rule.not_protocol.as_ref(),
        problems,
    );
    let icmp = icmp(&at.field("icmp"), rule.icmp.as_ref(), problems);
    let not_icmp = self::icmp(&at.field("notICMP"), rule.not_icmp.as_ref(), problems);
    let source = entity(&at.field("source"), &rule.source, namespace, problems);
    let destination = entity(
        &at.field("destination"),
        &rule.destination,
        namespace,
        problems,
    );
    Some(Rule {
        action: rule.action,
        ip_version: ip_version?,
        protocol: protocol?,
        not_protocol: not_protocol?,
        icmp: icmp?,
        not_icmp: not_icmp?,
        source: source?,
        destination: destination?,
        http: rule.http.clone(),
        metadata: rule
            .metadata
            .clone()
            .filter(|metadata| !metadata.annotations.is_empty()),
    })
}

/// A rule with fields that are not known: they may be conditions. One that lets packets go on therefore matches none, and
/// one that denies all that its known part matches.
fn unknown(
    at: &Path<'_>,
    rule: &ApiRule,
    namespace: &str,
    problems: &mut Problems,
) -> Option<Rule> {
    let known = ApiRule {
        unknown: Vec::new(),
        ..rule.clone()
    };
    let mut converted = convert(at, &known, namespace, problems)?;
    let meaning = match rule.action {
        Action::Allow | Action::Pass => {
            // Nothing has a protocol and has it not.
            converted.protocol = Some(Protocol::Tcp);
            converted.not_protocol = Some(Protocol::Tcp);
            (converted.icmp, converted.not_icmp) = (None, None);
            "is not known, and may be a condition: the rule matches nothing"
        }
        Action::Deny | Action::Log => {
            "is not known, and may be a condition: the rule matches all that the others allow"
        }
    };
    problems.add(at, rule.unknown.join(", "), meaning);
    Some(converted)
}

/// One side of a rule.
fn entity(
    at: &Path<'_>,
    entity: &EntityRule,
    namespace: &str,
    problems: &mut Problems,
) -> Option<Entity> {
    let selector = selector::of_entity(at, entity, namespace, problems);
    let nets = read::nets(&at.field("nets"), &entity.nets, problems);
    let not_nets = read::nets(&at.field("notNets"), &entity.not_nets, problems);
    let service = entity.services.as_ref();
    Some(Entity {
        nets: nets?,
        not_nets: not_nets?,
        selector: selector?,
        not_selector: entity.not_selector.clone(),
        ports: entity.ports.clone(),
        not_ports: entity.not_ports.clone(),
        service: service
            .filter(|service| !service.name.is_empty())
            .map(|service| in_namespace(service, namespace)),
        original_selector: entity.selector.clone(),
        original_not_selector: entity.not_selector.clone(),
        original_namespace_selector: entity.namespace_selector.clone(),
        original_service_accounts: entity
            .service_accounts
            .clone()
            .filter(|accounts| *accounts != ServiceAccountMatch::default()),
    })
}

/// A service without a namespace is one of the policy's.
fn in_namespace(service: &ServiceMatch, namespace: &str) -> ServiceMatch {
    let mut service = service.clone();
    if service.namespace.is_empty() {
        namespace.clone_into(&mut service.namespace);
    }
    service
}

#[expect(
    clippy::option_option,
    reason = "the outer one is for `?`, the inner one is the value"
)]
fn ip_version(at: &Path<'_>, version: Option<i64>, problems: &mut Problems) -> Option<Option<u8>> {
    match version {
        None => Some(None),
        Some(4) => Some(Some(4)),
        Some(6) => Some(Some(6)),
        Some(other) => {
            problems.add(&at.field("ipVersion"), other, "must be 4 or 6");
            None
        }
    }
}

#[expect(
    clippy::option_option,
    reason = "the outer one is for `?`, the inner one is the value"
)]
fn protocol(
    at: &Path<'_>,
    protocol: Option<&Protocol>,
    problems: &mut Problems,
) -> Option<Option<Protocol>> {
    match protocol {
        Some(unknown) if !unknown.is_valid() => {
            problems.add(
                at,
                unknown,
                "must be TCP, UDP, ICMP, ICMPv6, SCTP, UDPLite or a number from 1 to 255",
            );
            None
        }
        other => Some(other.cloned()),
    }
}

#[expect(
    clippy::option_option,
    reason = "the outer one is for `?`, the inner one is the value"
)]
fn icmp(
    at: &Path<'_>,
    fields: Option<&IcmpFields>,
    problems: &mut Problems,
) -> Option<Option<Icmp>> {
    let Some(fields) = fields.filter(|fields| **fields != IcmpFields::default()) else {
        return Some(None);
    };
    let mut byte = |name: &str, value: Option<i64>| match value.map(u8::try_from) {
        Some(Err(_)) => {
            problems.add(&at.field(name), value, "must be from 0 to 255");
            None
        }
        Some(Ok(byte)) => Some(Some(byte)),
        None => Some(None),
    };
    let (r#type, code) = (byte("type", fields.r#type), byte("code", fields.code));
    let (Some(r#type), code) = (r#type?, code?) else {
        problems.add_missing(&at.field("type"), "must be given where a code is");
        return None;
    };
    Some(Some(Icmp { r#type, code }))
}

//! Identifiers of rules: each is a hash over the rule and the one before it, so that it tells the rule and its place.
//!
//! The rule is hashed in the wire form of Felix's protobuf message, which makes the identifiers equal to Calico's.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha224};
use tortie_api::rule::{HttpMatch, ServiceAccountMatch};
use tortie_api::scalar::Protocol;

use crate::input::Icmp;
use crate::message::policy::action_name;
use crate::message::{Original, PolicyId, PortRange, Rule, RuleSide};

/// 96 bits are enough to tell rules apart, and short enough for a log line.
const LENGTH: usize = 16;

/// The identifiers of a policy's rules for one direction.
pub fn of_policy(id: &PolicyId, is_inbound: bool, rules: &[Rule]) -> Vec<String> {
    let direction = if is_inbound { "in" } else { "out" };
    chain(&format!("pol-{direction}-default/{}", id.name), rules)
}

/// The identifiers of a profile's rules for one direction.
pub fn of_profile(name: &str, is_inbound: bool, rules: &[Rule]) -> Vec<String> {
    let direction = if is_inbound { "in" } else { "out" };
    chain(&format!("prof-{direction}-{name}"), rules)
}

fn chain(seed: &str, rules: &[Rule]) -> Vec<String> {
    let mut hash = Sha224::digest(seed);
    let mut encoded = Vec::new();
    rules
        .iter()
        .map(|rule| {
            encoded.clear();
            encode_rule(rule, &mut encoded);
            hash = Sha224::new()
                .chain_update(hash)
                .chain_update(&encoded)
                .finalize();
            let mut id = URL_SAFE_NO_PAD.encode(hash);
            id.truncate(LENGTH);
            id
        })
        .collect()
}

fn encode_rule(rule: &Rule, out: &mut Vec<u8>) {
    text(out, 1, action_name(rule.action));
    number(out, 2, u64::from(rule.ip_version.unwrap_or(0)));
    protocol(out, 3, rule.protocol.as_ref());
    texts(out, 4, &rule.src.nets);
    ports(out, 5, &rule.src.ports);
    texts(out, 6, &rule.dst.nets);
    ports(out, 7, &rule.dst.ports);
    texts(out, 10, &rule.src.sets);
    texts(out, 11, &rule.dst.sets);
    texts(out, 12, &rule.src.named_port_sets);
    texts(out, 13, &rule.dst.named_port_sets);
    texts(out, 15, &rule.dst.port_sets);
    protocol(out, 102, rule.not_protocol.as_ref());
    texts(out, 103, &rule.src.not_nets);
    ports(out, 104, &rule.src.not_ports);
    texts(out, 105, &rule.dst.not_nets);
    ports(out, 106, &rule.dst.not_ports);
    texts(out, 109, &rule.src.not_sets);
    texts(out, 110, &rule.dst.not_sets);
    texts(out, 112, &rule.src.not_named_port_sets);
    texts(out, 113, &rule.dst.not_named_port_sets);
    let empty = Original::default();
    let original = |side: &RuleSide| side.original.as_deref().unwrap_or(&empty).clone();
    let (src, dst) = (original(&rule.src), original(&rule.dst));
    text(out, 114, &src.selector);
    text(out, 115, &dst.selector);
    text(out, 116, &src.namespace_selector);
    text(out, 117, &dst.namespace_selector);
    text(out, 118, &src.not_selector);
    text(out, 119, &dst.not_selector);
    service_accounts(out, 120, src.service_accounts.as_ref());
    service_accounts(out, 121, dst.service_accounts.as_ref());
    if let Some(match_) = &rule.http {
        http(out, 122, match_);
    }
    if let Some(metadata) = &rule.metadata {
        message(out, 123, &annotations(&metadata.annotations));
    }
    let service = |original: &Original| original.service.clone().unwrap_or_default();
    let (src, dst) = (service(&src), service(&dst));
    text(out, 130, &dst.name);
    text(out, 131, &dst.namespace);
    text(out, 132, &src.name);
    text(out, 133, &src.namespace);
    // Go's encoder writes alternatives after everything else.
    icmp(out, 8, rule.icmp);
    icmp(out, 107, rule.not_icmp);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// A field that is left out where it is zero.
fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    if value != 0 {
        present_number(out, field, value);
    }
}

fn present_number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn message(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// A field that is left out where it is empty.
fn text(out: &mut Vec<u8>, field: u64, value: &str) {
    if !value.is_empty() {
        message(out, field, value.as_bytes());
    }
}

fn texts<T: ToString>(out: &mut Vec<u8>, field: u64, values: &[T]) {
    for value in values {
        message(out, field, value.to_string().as_bytes());
    }
}

fn protocol(out: &mut Vec<u8>, field: u64, value: Option<&Protocol>) {
    let mut content = Vec::new();
    match value {
        None => return,
        Some(Protocol::Number(number)) => present_number(&mut content, 1, u64::from(*number)),
        Some(named) => message(&mut content, 2, named.to_string().to_lowercase().as_bytes()),
    }
    message(out, field, &content);
}

fn ports(out: &mut Vec<u8>, field: u64, ranges: &[PortRange]) {
    for range in ranges {
        let mut content = Vec::new();
        number(&mut content, 1, u64::from(range.first));
        number(&mut content, 2, u64::from(range.last));
        message(out, field, &content);
    }
}

/// The type alone in `field`, type and code in the next.
fn icmp(out: &mut Vec<u8>, field: u64, value: Option<Icmp>) {
    match value {
        None => {}
        Some(Icmp { r#type, code: None }) => present_number(out, field, u64::from(r#type)),
        Some(Icmp {
            r#type,
            code: Some(code),
        }) => {
            let mut content = Vec::new();
            number(&mut content, 1, u64::from(r#type));
            number(&mut content, 2, u64::from(code));
            message(out, field + 1, &content);
        }
    }
}

fn service_accounts(out: &mut Vec<u8>, field: u64, accounts: Option<&ServiceAccountMatch>) {
    let Some(accounts) = accounts else { return };
    let mut content = Vec::new();
    text(&mut content, 1, &accounts.selector);
    texts(&mut content, 2, &accounts.names);
    message(out, field, &content);
}

fn http(out: &mut Vec<u8>, field: u64, match_: &HttpMatch) {
    let mut content = Vec::new();
    texts(&mut content, 1, &match_.methods);
    for path in &match_.paths {
        let mut alternative = Vec::new();
        if path.exact.is_empty() {
            message(&mut alternative, 2, path.prefix.as_bytes());
        } else {
            message(&mut alternative, 1, path.exact.as_bytes());
        }
        message(&mut content, 2, &alternative);
    }
    message(out, field, &content);
}

fn annotations(annotations: &BTreeMap<String, String>) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in annotations {
        let mut entry = Vec::new();
        message(&mut entry, 1, key.as_bytes());
        message(&mut entry, 2, value.as_bytes());
        message(&mut out, 1, &entry);
    }
    out
}

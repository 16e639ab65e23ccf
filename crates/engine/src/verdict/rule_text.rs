//! What a rule is for, in words.

use std::fmt::Write as _;

use tortie_api::scalar::Port;
use tortie_selector::Selector;

use super::words;
use crate::input::{Entity, Icmp, Rule};

/// `TCP from pods with app == "web" of namespace shop to port 5432`.
pub(super) fn text(rule: &Rule) -> String {
    let mut text = packets(rule);
    for (word, entity) in [("from", &rule.source), ("to", &rule.destination)] {
        let end = end(entity);
        if !end.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(text, " {word} {end}");
        }
    }
    if rule.http.is_some() {
        text.push_str(", with conditions on HTTP that only a proxy checks");
    }
    text
}

/// Which packets, wherever they come from and go to.
fn packets(rule: &Rule) -> String {
    let version = rule
        .ip_version
        .map_or(String::new(), |version| format!("IPv{version} "));
    let protocol = match (&rule.protocol, &rule.not_protocol) {
        (Some(protocol), _) => format!("{version}{}", protocol_text(protocol)),
        (None, Some(other)) => {
            format!("{version}all but {}", protocol_text(other))
        }
        (None, None) if rule.icmp.is_some() || rule.not_icmp.is_some() => format!("{version}ICMP"),
        (None, None) => format!("all {version}packets"),
    };
    let mut text = protocol;
    if let Some(icmp) = rule.icmp {
        let _ = write!(text, " {}", icmp_text(icmp));
    }
    if let Some(icmp) = rule.not_icmp {
        let _ = write!(text, " but {}", icmp_text(icmp));
    }
    text
}

fn protocol_text(protocol: &tortie_api::scalar::Protocol) -> String {
    match protocol {
        tortie_api::scalar::Protocol::Number(number) => format!("protocol {number}"),
        named => named.to_string(),
    }
}

/// `type 8 code 0`.
pub(super) fn icmp_text(icmp: Icmp) -> String {
    match icmp.code {
        None => format!("type {}", icmp.r#type),
        Some(code) => format!("type {} code {code}", icmp.r#type),
    }
}

/// One end of a connection; empty if it may be any.
fn end(entity: &Entity) -> String {
    let mut who = Vec::new();
    if let Some(service) = &entity.service {
        who.push(format!("service {}/{}", service.namespace, service.name));
    }
    if !entity.nets.is_empty() {
        who.push(list(&entity.nets));
    }
    if !entity.selector.is_empty() {
        who.push(selected(&entity.selector));
    }
    let mut text = who.join(" that are ");
    let mut add = |piece: String| {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&piece);
    };
    if !entity.not_nets.is_empty() {
        add(format!("not {}", list(&entity.not_nets)));
    }
    if !entity.not_selector.is_empty() {
        add(format!("not {}", selected(&entity.not_selector)));
    }
    if !entity.ports.is_empty() {
        add(ports(&entity.ports));
    }
    if !entity.not_ports.is_empty() {
        add(format!("not {}", ports(&entity.not_ports)));
    }
    text
}

fn selected(selector: &str) -> String {
    match Selector::parse(selector) {
        Ok(selector) => words::meant(selector.root()),
        // Policies with selectors that cannot be read do not get here.
        Err(_) => format!("`{selector}`"),
    }
}

fn ports(ports: &[Port]) -> String {
    let word = match ports {
        [Port::Range(first, last)] if first == last => "port",
        [Port::Named(_)] => "port",
        _ => "ports",
    };
    format!("{word} {}", list(ports))
}

fn list<T: ToString>(items: &[T]) -> String {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

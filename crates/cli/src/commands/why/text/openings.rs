//! What is open between two ends, in words.

use tortie_engine::input::Icmp;
use tortie_engine::message::PortRange;
use tortie_engine::verdict::{Flow, Opening};

use tortie_why::Judged;

/// `, all protocols and ports`: what was asked about.
pub(super) fn asked(flow: &Flow) -> String {
    let from = flow
        .source_port
        .map_or(String::new(), |port| format!(" from port {port}"));
    match &flow.protocol {
        None => format!(", all protocols and ports{from}"),
        Some(protocol) if protocol.supports_ports() => format!(", {protocol}, all ports{from}"),
        Some(protocol) => format!(", {protocol}, all types"),
    }
}

/// `Open: TCP port 5432. All else is denied`
pub(super) fn text(judged: &Judged) -> String {
    let Some(openings) = &judged.openings else {
        return String::new();
    };
    let is_rest = |list: &[Opening]| matches!(list, [only] if only.protocol.is_none());
    if is_rest(&openings.open) {
        return format!("All is open but {}", list(&openings.closed));
    }
    format!("Open: {}. All else is denied", list(&openings.open))
}

fn list(openings: &[Opening]) -> String {
    let texts: Vec<String> = openings.iter().map(one).collect();
    texts.join("; ")
}

fn one(opening: &Opening) -> String {
    let protocol = match &opening.protocol {
        Some(tortie_api::scalar::Protocol::Number(number)) => format!("protocol {number}"),
        Some(protocol) => protocol.to_string(),
        None => "all other protocols".to_owned(),
    };
    if !opening.ports.is_empty() {
        return format!("{protocol} {}", ports(&opening.ports));
    }
    if opening.icmp.is_empty() {
        return protocol;
    }
    let types: Vec<String> = opening.icmp.iter().copied().map(kind).collect();
    let but = if opening.but { " but" } else { "" };
    format!("{protocol}{but} {}", types.join(", "))
}

fn ports(ranges: &[PortRange]) -> String {
    let text = |range: &PortRange| {
        if range.first == range.last {
            range.first.to_string()
        } else {
            format!("{}-{}", range.first, range.last)
        }
    };
    let texts: Vec<String> = ranges.iter().map(text).collect();
    let word = match ranges {
        [only] if only.first == only.last => "port",
        _ => "ports",
    };
    format!("{word} {}", texts.join(", "))
}

fn kind(icmp: Icmp) -> String {
    match icmp.code {
        None => format!("type {}", icmp.r#type),
        Some(code) => format!("type {} code {code}", icmp.r#type),
    }
}

//! Lists, nearly all separated by commas.

use std::{collections::BTreeMap, time::Duration};

use tortie_api::net::{Cidr, parse_cidr_or_ip};
use tortie_api::scalar::GoDuration;

use super::number;
use super::{MAX_INTERFACE, is_digits, is_interface_filter, is_word};
use crate::value::{FailsafePort, Pattern, TableRange, TransportProtocol, Value};

/// Greatest number of a routing table that the older form of the parameter may give.
const MAX_OLD_TABLE: u32 = 250;

/// Most routing tables that may be ours: each is looked at on every check.
const MAX_TABLES: u64 = 0xffff;

fn is_interface_name(text: &str) -> bool {
    is_word(text, MAX_INTERFACE, b"_-")
}

/// Entries without the spaces around them; those that are empty are left out.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(|entry| entry.trim_matches(' '))
        .filter(|entry| !entry.is_empty())
}

pub(super) fn interface_prefixes(text: &str) -> Option<Value> {
    let prefixes: Vec<String> = text.split(',').map(str::to_owned).collect();
    prefixes
        .iter()
        .all(|prefix| is_interface_name(prefix))
        .then_some(Value::Texts(prefixes))
}

pub(super) fn interface_patterns(text: &str) -> Option<Value> {
    let patterns: Option<Vec<Pattern>> = text
        .split(',')
        .map(|entry| {
            match entry
                .strip_prefix('/')
                .and_then(|rest| rest.strip_suffix('/'))
            {
                Some(pattern) if is_pattern(pattern) => Pattern::new(pattern),
                // Such names have no characters that mean something in a pattern.
                None if is_interface_name(entry) => Pattern::new(&format!("^{entry}$")),
                _ => None,
            }
        })
        .collect();
    patterns.map(Value::Patterns)
}

fn is_pattern(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_ascii_whitespace())
}

pub(super) fn interface_filters(text: &str) -> Option<Value> {
    let names: Vec<String> = entries(text).map(str::to_owned).collect();
    names
        .iter()
        .all(|name| is_interface_filter(name))
        .then_some(Value::Texts(names))
}

pub(super) fn endpoints(text: &str) -> Option<Value> {
    let endpoints: Vec<String> = entries(text).map(str::to_owned).collect();
    endpoints
        .iter()
        .all(|endpoint| is_endpoint(endpoint))
        .then_some(Value::Texts(endpoints))
}

/// Whether the text is `scheme://host` or `scheme://host:port` and nothing else: no user, path or query.
fn is_endpoint(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let host = rest.strip_suffix('/').unwrap_or(rest);
    let port = match host.rsplit_once(':') {
        Some((_, port)) if !host.ends_with(']') => port,
        _ => "0",
    };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && is_word(scheme, usize::MAX, b"+-.")
        && !host.contains(|c: char| "/?#@\\".contains(c) || c.is_whitespace() || c.is_control())
        && (port.is_empty() || is_digits(port))
}

pub(super) fn failsafe_ports(text: &str) -> Option<Value> {
    let ports: Option<Vec<FailsafePort>> = entries(text).map(failsafe_port).collect();
    ports.map(Value::FailsafePorts)
}

/// `port`, `protocol:port`, `protocol:network:port`, where an IPv6 network is between brackets.
fn failsafe_port(text: &str) -> Option<FailsafePort> {
    let mut network = None;
    let mut rest = text.to_owned();
    if let (Some(start), true) = (text.find('['), text.contains(']')) {
        let end = start + text[start..].find("]:")?;
        network = Some(&text[start + 1..end]).filter(|network| !network.is_empty());
        rest = format!("{}{}", &text[..start], &text[end + 2..]);
    }
    let (protocol, port) = match rest.split(':').collect::<Vec<_>>()[..] {
        [port] => ("tcp", port),
        [protocol, port] => (protocol, port),
        [protocol, inner, port] => {
            network = Some(inner).filter(|network| !network.is_empty());
            (protocol, port)
        }
        _ => return None,
    };
    let network = match network {
        Some(network) => Some(parse_cidr_or_ip(network)?.network()),
        None => None,
    };
    Some(FailsafePort {
        protocol: TransportProtocol::from_name(protocol)?,
        network,
        port: port.parse().ok()?,
    })
}

pub(super) fn port_ranges(text: &str) -> Option<Value> {
    let ranges: Option<Vec<_>> = text.split(',').map(number::port_range).collect();
    ranges.map(Value::PortRanges)
}

pub(super) fn cidrs(text: &str) -> Option<Value> {
    let networks: Option<Vec<_>> = entries(text)
        .map(|entry| parse_cidr_or_ip(entry).map(Cidr::network))
        .collect();
    networks.map(Value::Cidrs)
}

pub(super) fn route_table_range(text: &str) -> Option<Value> {
    let (first, last) = text.split_once('-')?;
    if !is_digits(first) || !is_digits(last) {
        return None;
    }
    let range = TableRange {
        first: first.parse().ok()?,
        last: last.parse().ok()?,
    };
    (1 <= range.first && range.first <= range.last && range.last <= MAX_OLD_TABLE)
        .then(|| Value::TableRanges(vec![range]))
}

/// All ranges in the text, whatever is between them.
pub(super) fn route_table_ranges(text: &str) -> Option<Value> {
    let mut ranges = Vec::new();
    let mut tables = 0;
    let mut rest = text;
    while let Some((range, after)) = next_range(rest) {
        let range = range?;
        tables += u64::from(range.last - range.first) + 1;
        if tables > MAX_TABLES {
            return None;
        }
        ranges.push(range);
        rest = after;
    }
    (!ranges.is_empty()).then_some(Value::TableRanges(ranges))
}

/// The first `digits-digits` in the text, none within if it is not a range of tables, and what comes after it.
fn next_range(text: &str) -> Option<(Option<TableRange>, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = text;
    loop {
        rest = &rest[rest.find(|c: char| c.is_ascii_digit())?..];
        let (first, after) = rest.split_at(digits(rest));
        rest = after;
        let Some(after) = rest.strip_prefix('-') else {
            continue;
        };
        let (last, after) = after.split_at(digits(after));
        if !last.is_empty() {
            return Some((table_range(first, last), after));
        }
    }
}

fn table_range(first: &str, last: &str) -> Option<TableRange> {
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (1 <= first && first <= last).then_some(TableRange { first, last })
}

/// `key=value` entries. Spaces before a key do not count, those around a value do.
pub(super) fn pairs(text: &str) -> Option<BTreeMap<String, String>> {
    if text.trim().is_empty() {
        return Some(BTreeMap::new());
    }
    text.split(',')
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            let (before, value) = entry.split_once('=')?;
            let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let key = &before[before.trim_end_matches(is_key).len()..];
            (!key.is_empty()).then(|| (key.to_owned(), value.to_owned()))
        })
        .collect()
}

pub(super) fn timeouts(text: &str) -> Option<Value> {
    let timeouts: Option<BTreeMap<String, Duration>> = pairs(text)?
        .into_iter()
        .map(|(key, value)| {
            let timeout: GoDuration = value.trim().parse().ok()?;
            // What is below zero is over at once, as zero is.
            let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(0);
            Some((key, Duration::from_nanos(nanos)))
        })
        .collect();
    timeouts.map(Value::Timeouts)
}

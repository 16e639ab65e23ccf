//! Protocols and ports of one rule, gathered so that each protocol becomes one rule with few port ranges.

use std::collections::BTreeMap;

use crate::scalar::{Port, Protocol};

/// The ports that a rule names, by protocol.
#[derive(Debug, Default)]
pub(super) struct ProtocolPorts(
    /// By the protocol's name, with the empty name for ports of any protocol. `None` means all ports.
    BTreeMap<String, Option<Vec<Port>>>,
);

impl ProtocolPorts {
    /// All ports of all protocols.
    pub(super) fn any() -> Self {
        Self(BTreeMap::from([(String::new(), None)]))
    }

    /// Adds a port of a protocol, or all of its ports, after which single ports add nothing.
    pub(super) fn add(&mut self, protocol: Option<&str>, port: Option<Port>) {
        let ports = self
            .0
            .entry(protocol.unwrap_or_default().to_owned())
            .or_insert_with(|| Some(Vec::new()));
        match (ports.as_mut(), port) {
            (Some(ports), Some(port)) => ports.push(port),
            (_, None) => *ports = None,
            (None, Some(_)) => {}
        }
    }

    /// The protocols in order of their names, each with its ports; no ports mean all of them.
    pub(super) fn into_rules(self) -> impl Iterator<Item = (Option<Protocol>, Vec<Port>)> {
        self.0.into_iter().map(|(protocol, ports)| {
            let protocol = (!protocol.is_empty()).then(|| parse_protocol(&protocol));
            (protocol, ports.map(simplify).unwrap_or_default())
        })
    }
}

/// Reads the name of a protocol in any case.
pub(super) fn parse_protocol(name: &str) -> Protocol {
    const NAMES: [&str; 6] = ["TCP", "UDP", "ICMP", "ICMPv6", "SCTP", "UDPLite"];
    let name = NAMES
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(name))
        .unwrap_or(name);
    name.parse()
        .unwrap_or_else(|_| Protocol::Unknown(name.into()))
}

/// Joins numbered ports into as few ranges as possible, after the named ones; a single number stays in its place.
fn simplify(ports: Vec<Port>) -> Vec<Port> {
    let mut named = Vec::new();
    let mut ranges = Vec::new();
    for port in &ports {
        match port {
            Port::Named(_) => named.push(port.clone()),
            Port::Range(low, high) => ranges.push((*low, *high)),
        }
    }
    let is_one_port = |(low, high): &(u16, u16)| low == high;
    if ports.len() <= 1
        || ranges.is_empty()
        || (ranges.len() == 1 && ranges.iter().all(is_one_port))
    {
        return ports;
    }
    ranges.sort_unstable();
    let mut joined: Vec<(u16, u16)> = Vec::new();
    for (low, high) in ranges {
        match joined.last_mut() {
            Some((_, end)) if low <= end.saturating_add(1) => *end = high.max(*end),
            _ => joined.push((low, high)),
        }
    }
    named.extend(joined.into_iter().map(|(low, high)| Port::Range(low, high)));
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ports: &[&str], expected: &[&str]) {
        let parse = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.parse().unwrap())
                .collect::<Vec<Port>>()
        };
        assert_eq!(simplify(parse(ports)), parse(expected), "{ports:?}");
    }

    #[test]
    fn numbered_ports_become_ranges_behind_the_named_ones() {
        check(
            &["82", "80", "81", "http", "9090"],
            &["http", "80:82", "9090"],
        );
        check(&["80:90", "85:95", "85"], &["80:95"]);
        check(&["65535", "65535", "65534"], &["65534:65535"]);
    }

    #[test]
    fn a_single_number_stays_in_its_place() {
        check(&["80", "http"], &["80", "http"]);
        check(&["80:81", "http"], &["http", "80:81"]);
    }

    #[test]
    fn all_ports_of_a_protocol_swallow_single_ones() {
        let mut ports = ProtocolPorts::default();
        ports.add(Some("TCP"), Some(Port::single(80)));
        ports.add(Some("TCP"), None);
        ports.add(Some("TCP"), Some(Port::single(81)));
        assert_eq!(
            ports.into_rules().collect::<Vec<_>>(),
            [(Some(Protocol::Tcp), Vec::new())]
        );
    }
}

//! Whether a rule matches a packet, and if not, which of its conditions does not hold.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::scalar::{Port, Protocol};
use tortie_selector::Selector;

use super::rule_text::icmp_text;
use super::{End, Flow, rule_text, words};
use crate::Engine;
use crate::compile;
use crate::engine::NamedLabels;
use crate::input::{self, Icmp};
use crate::message::{PortProtocol, PortRange, Rule, RuleSide, SetId};

/// The port that stands for those that clients get.
const CLIENT_PORT: u16 = 49152;

/// What is needed to explain a rule, besides the rule.
pub(super) struct Explainer {
    source: Asked,
    destination: Asked,
    /// The rule in words.
    text: Arc<str>,
}

/// What a side of a rule asks for, where the sets that it became do not say.
struct Asked {
    selector: Option<Selector>,
    /// Names of ports, with commas.
    port_names: String,
    not_port_names: String,
}

impl Explainer {
    pub(super) fn new(input: &input::Rule) -> Self {
        Self {
            source: Asked::new(&input.source),
            destination: Asked::new(&input.destination),
            text: rule_text::text(input).into(),
        }
    }

    /// What the rule is for, in words.
    pub(super) fn text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// The first condition of the rule that does not hold, in words; none if the rule matches.
    pub(super) fn mismatch(&self, rule: &Rule, engine: &Engine, flow: &Flow) -> Option<String> {
        packet_mismatch(rule, flow).or_else(|| {
            let side = |end, name, port| SideOfFlow {
                engine,
                flow,
                end,
                name,
                port,
            };
            let source = side(
                &flow.source,
                "source",
                Some(flow.source_port.unwrap_or(CLIENT_PORT)),
            );
            let destination = side(&flow.destination, "destination", flow.destination_port);
            source
                .mismatch(&rule.src, &self.source)
                .or_else(|| destination.mismatch(&rule.dst, &self.destination))
        })
    }
}

fn packet_mismatch(rule: &Rule, flow: &Flow) -> Option<String> {
    let version = if flow.destination.address.is_ipv4() {
        4
    } else {
        6
    };
    if let Some(wanted) = rule.ip_version
        && wanted != version
    {
        return Some(format!(
            "it is for IPv{wanted}, and the packet is IPv{version}"
        ));
    }
    let number = flow.protocol.as_ref().and_then(Protocol::number);
    let name = || {
        flow.protocol
            .as_ref()
            .map_or("not given".to_owned(), ToString::to_string)
    };
    if let Some(wanted) = &rule.protocol
        && (number.is_none() || wanted.number() != number)
    {
        return Some(format!(
            "it is for protocol {wanted}, and the protocol is {}",
            name()
        ));
    }
    if let Some(unwanted) = &rule.not_protocol
        && number.is_some()
        && unwanted.number() == number
    {
        return Some(format!("it is not for protocol {unwanted}"));
    }
    let is = |icmp: Icmp| {
        flow.icmp.is_some_and(|actual| {
            actual.r#type == icmp.r#type && icmp.code.is_none_or(|code| actual.code == Some(code))
        })
    };
    if let Some(wanted) = rule.icmp
        && !is(wanted)
    {
        return Some(format!("it is for ICMP {}", icmp_text(wanted)));
    }
    if let Some(unwanted) = rule.not_icmp {
        // The kernel looks at types of ICMP in packets of ICMP alone.
        let icmp = if version == 4 { 1 } else { 58 };
        if number != Some(icmp) {
            return Some(format!("it is for ICMP, and the protocol is {}", name()));
        }
        if is(unwanted) {
            return Some(format!("it is not for ICMP {}", icmp_text(unwanted)));
        }
    }
    // Conditions on HTTP are for proxies; the kernel lets pass what the rest of the rule matches.
    None
}

/// One end of the packet that a side of a rule is held against.
struct SideOfFlow<'a> {
    engine: &'a Engine,
    flow: &'a Flow,
    end: &'a End,
    name: &'static str,
    port: Option<u16>,
}

impl SideOfFlow<'_> {
    fn mismatch(&self, side: &RuleSide, asked: &Asked) -> Option<String> {
        let address = self.end.address;
        let name = self.name;
        if !side.nets.is_empty() && !side.nets.iter().any(|net| net.contains(&address)) {
            return Some(format!("{name} {address} is not in {}", list(&side.nets)));
        }
        if let Some(net) = side.not_nets.iter().find(|net| net.contains(&address)) {
            return Some(format!("{name} {address} is in {net}, which it excludes"));
        }
        // The data plane has no rule for the IP version that no excluded network is of.
        let is_other_version = |net: &IpNet| net.addr().is_ipv4() != address.is_ipv4();
        if !side.not_nets.is_empty() && side.not_nets.iter().all(is_other_version) {
            let (wanted, version) = if address.is_ipv4() { (6, 4) } else { (4, 6) };
            return Some(format!(
                "it excludes {}, so it is for IPv{wanted}, and the packet is IPv{version}",
                list(&side.not_nets)
            ));
        }
        if let Some(missing) = side.sets.iter().find(|set| !self.is_in(set)) {
            return Some(self.explain_set(missing, side, asked.selector.as_ref()));
        }
        if side.not_sets.iter().any(|set| self.is_in(set)) {
            let text = side
                .original
                .as_ref()
                .map_or("", |original| &*original.not_selector);
            return Some(format!(
                "{name} {} matches `{text}`, which it excludes",
                self.called()
            ));
        }
        self.port_mismatch(side, asked)
    }

    fn port_mismatch(&self, side: &RuleSide, asked: &Asked) -> Option<String> {
        let name = self.name;
        let port_text = || {
            self.port
                .map_or("not given".to_owned(), |port| port.to_string())
        };
        let is_in_range = |range: &PortRange| {
            self.port
                .is_some_and(|port| (range.first..=range.last).contains(&port))
        };
        let has_ports = !side.ports.is_empty() || !side.named_port_sets.is_empty();
        if has_ports
            && !side.ports.iter().any(is_in_range)
            && !side.named_port_sets.iter().any(|set| self.is_port_in(set))
        {
            // Where all ports have names, the selector is part of the sets of ports.
            if side.sets.is_empty()
                && let Some(why) = (asked.selector.as_ref()).and_then(|s| self.failing_term(s))
            {
                return Some(why);
            }
            let mut wanted: Vec<String> = side.ports.iter().copied().map(range_text).collect();
            if !side.named_port_sets.is_empty() {
                wanted.push(format!(
                    "one that {} calls {}",
                    self.called(),
                    asked.port_names
                ));
            }
            let wanted = wanted.join(", ");
            return Some(format!("{name} port is {}, not {wanted}", port_text()));
        }
        if let Some(range) = side.not_ports.iter().find(|range| is_in_range(range)) {
            return Some(format!(
                "{name} port is {}, and it excludes {}",
                port_text(),
                range_text(*range)
            ));
        }
        if side
            .not_named_port_sets
            .iter()
            .any(|set| self.is_port_in(set))
        {
            return Some(format!(
                "{name} port is {}, and it excludes what {} calls {}",
                port_text(),
                self.called(),
                asked.not_port_names
            ));
        }
        if side.port_sets.iter().any(|set| !self.is_port_in(set)) {
            let service = side
                .original
                .as_ref()
                .and_then(|original| original.service.as_ref());
            let service =
                service.map_or_else(String::new, |s| format!("{}/{}", s.namespace, s.name));
            return Some(format!(
                "{name} {} port {} is no endpoint of service {service}",
                self.called(),
                port_text()
            ));
        }
        None
    }

    fn is_in(&self, set: &SetId) -> bool {
        let found = self.engine.sets.find(set);
        found.is_some_and(|set| self.engine.sets.members(set).contains(self.end.address))
    }

    fn is_port_in(&self, set: &SetId) -> bool {
        let protocol = match self.flow.protocol.as_ref().and_then(Protocol::number) {
            Some(6) => PortProtocol::Tcp,
            Some(17) => PortProtocol::Udp,
            Some(132) => PortProtocol::Sctp,
            _ => return false,
        };
        let (Some(port), Some(set)) = (self.port, self.engine.sets.find(set)) else {
            return false;
        };
        self.engine
            .sets
            .members(set)
            .contains_port(self.end.address, protocol, port)
    }

    fn explain_set(&self, set: &SetId, side: &RuleSide, selector: Option<&Selector>) -> String {
        if set.as_str().starts_with("svc") {
            let service = side
                .original
                .as_ref()
                .and_then(|original| original.service.as_ref());
            let service =
                service.map_or_else(String::new, |s| format!("{}/{}", s.namespace, s.name));
            return format!(
                "{} {} is not behind service {service}",
                self.name,
                self.called()
            );
        }
        selector
            .and_then(|selector| self.failing_term(selector))
            .unwrap_or_else(|| {
                let wanted = selector.map_or("known endpoints".to_owned(), |selector| {
                    words::meant(selector.root())
                });
                format!(
                    "it is for {wanted}, and {} {} is none of them, nor in a network set",
                    self.name, self.end.address
                )
            })
    }

    /// Which term of a selector the endpoint at this end does not satisfy.
    fn failing_term(&self, selector: &Selector) -> Option<String> {
        let key = self.end.endpoint.as_ref()?;
        let item = self.engine.items.get(self.engine.local(key)?.item);
        let labels = NamedLabels {
            labels: item.all_labels(&self.engine.profiles),
            names: &self.engine.names,
        };
        let term = selector.first_failing_term(&labels)?;
        Some(words::mismatch(self.name, key, &labels, &term))
    }

    fn called(&self) -> String {
        let address: IpAddr = self.end.address;
        self.end
            .endpoint
            .as_ref()
            .map_or_else(|| address.to_string(), ToString::to_string)
    }
}

impl Asked {
    fn new(entity: &input::Entity) -> Self {
        Self {
            selector: compile::positive_selector(entity)
                .and_then(|text| Selector::parse(&text).ok()),
            port_names: names(&entity.ports),
            not_port_names: names(&entity.not_ports),
        }
    }
}

fn names(ports: &[Port]) -> String {
    let named: Vec<&Port> = ports.iter().filter(|port| port.is_named()).collect();
    list(&named)
}

fn range_text(range: PortRange) -> String {
    if range.first == range.last {
        range.first.to_string()
    } else {
        format!("{}:{}", range.first, range.last)
    }
}

fn list<T: ToString>(items: &[T]) -> String {
    items
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

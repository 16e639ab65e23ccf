//! Rules in few words.

use tortie_api::rule::{Action, ServiceMatch};
use tortie_api::scalar::Port;
use tortie_engine::input::{Entity, Icmp, Rule};

use crate::states::build::{net, parse_protocol};

/// A rule.
#[derive(Clone)]
pub(crate) struct RuleOf(pub(crate) Rule);

pub(crate) fn allow() -> RuleOf {
    rule(Action::Allow)
}

pub(crate) fn deny() -> RuleOf {
    rule(Action::Deny)
}

pub(crate) fn pass() -> RuleOf {
    rule(Action::Pass)
}

pub(crate) fn log() -> RuleOf {
    rule(Action::Log)
}

fn rule(action: Action) -> RuleOf {
    RuleOf(Rule {
        action,
        ..Rule::default()
    })
}

// === impl RuleOf ===

#[expect(
    clippy::wrong_self_convention,
    reason = "words of a rule: where packets come from and go to"
)]
impl RuleOf {
    fn change(mut self, change: impl FnOnce(&mut Rule)) -> Self {
        change(&mut self.0);
        self
    }

    /// From what a selector matches.
    pub(crate) fn from(self, selector: &str) -> Self {
        self.change(|rule| selector.clone_into(&mut rule.source.selector))
    }

    /// To what a selector matches.
    pub(crate) fn to(self, selector: &str) -> Self {
        self.change(|rule| selector.clone_into(&mut rule.destination.selector))
    }

    pub(crate) fn not_from(self, selector: &str) -> Self {
        self.change(|rule| selector.clone_into(&mut rule.source.not_selector))
    }

    pub(crate) fn not_to(self, selector: &str) -> Self {
        self.change(|rule| selector.clone_into(&mut rule.destination.not_selector))
    }

    /// Ports as numbers, ranges `80:90` and names.
    pub(crate) fn from_ports(self, ports: &[&str]) -> Self {
        self.change(|rule| rule.source.ports = parse_ports(ports))
    }

    pub(crate) fn to_ports(self, ports: &[&str]) -> Self {
        self.change(|rule| rule.destination.ports = parse_ports(ports))
    }

    pub(crate) fn not_from_ports(self, ports: &[&str]) -> Self {
        self.change(|rule| rule.source.not_ports = parse_ports(ports))
    }

    pub(crate) fn not_to_ports(self, ports: &[&str]) -> Self {
        self.change(|rule| rule.destination.not_ports = parse_ports(ports))
    }

    pub(crate) fn from_nets(self, nets: &[&str], not_nets: &[&str]) -> Self {
        self.change(|rule| set_nets(&mut rule.source, nets, not_nets))
    }

    pub(crate) fn to_nets(self, nets: &[&str], not_nets: &[&str]) -> Self {
        self.change(|rule| set_nets(&mut rule.destination, nets, not_nets))
    }

    /// From the endpoints of a service `namespace/name`.
    pub(crate) fn from_service(self, service: &str) -> Self {
        self.change(|rule| rule.source.service = Some(parse_service(service)))
    }

    pub(crate) fn to_service(self, service: &str) -> Self {
        self.change(|rule| rule.destination.service = Some(parse_service(service)))
    }

    pub(crate) fn protocol(self, protocol: &str) -> Self {
        self.change(|rule| rule.protocol = Some(parse_protocol(protocol)))
    }

    pub(crate) fn not_protocol(self, protocol: &str) -> Self {
        self.change(|rule| rule.not_protocol = Some(parse_protocol(protocol)))
    }

    pub(crate) fn icmp(self, r#type: u8, code: Option<u8>) -> Self {
        self.change(|rule| rule.icmp = Some(Icmp { r#type, code }))
    }

    pub(crate) fn not_icmp(self, r#type: u8, code: Option<u8>) -> Self {
        self.change(|rule| rule.not_icmp = Some(Icmp { r#type, code }))
    }

    pub(crate) fn ip_version(self, version: u8) -> Self {
        self.change(|rule| rule.ip_version = Some(version))
    }
}

fn parse_ports(ports: &[&str]) -> Vec<Port> {
    let number = |text: &str| text.parse::<u16>().ok();
    let port = |text: &&str| {
        let (first, last) = text.split_once(':').unwrap_or((text, text));
        match (number(first), number(last)) {
            (Some(first), Some(last)) => Port::Range(first, last),
            _ => Port::Named((*text).into()),
        }
    };
    ports.iter().map(port).collect()
}

fn parse_service(service: &str) -> ServiceMatch {
    let (namespace, name) = service.split_once('/').expect("namespace/name");
    ServiceMatch {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
    }
}

fn set_nets(entity: &mut Entity, nets: &[&str], not_nets: &[&str]) {
    entity.nets = nets.iter().map(|text| net(text)).collect();
    entity.not_nets = not_nets.iter().map(|text| net(text)).collect();
}

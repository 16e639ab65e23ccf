//! Packing.

use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::rule::Action;
use tortie_api::scalar::{Port, Protocol};

use super::{
    DESTINATION, HTTP, ICMP, IP_VERSION, METADATA, NETS, NOT_ICMP, NOT_NETS, NOT_PORTS,
    NOT_PROTOCOL, NOT_SELECTOR, ORIGINAL_NAMESPACE_SELECTOR, ORIGINAL_NOT_SELECTOR,
    ORIGINAL_SELECTOR, ORIGINAL_SERVICE_ACCOUNTS, PORTS, PROTOCOL, SELECTOR, SERVICE, SOURCE,
};
use crate::bytes::{length, put_bytes, put_number};
use crate::input::{Entity, Rule};

/// Packs rules, and remembers the texts that it has seen.
pub(super) struct Writer<'a> {
    pub(super) out: Vec<u8>,
    pub(super) texts: Vec<&'a str>,
}

impl<'a> Writer<'a> {
    /// A text: 0 and the bytes when it is new, else where it was seen.
    pub(super) fn text(&mut self, text: &'a str) {
        if let Some(at) = self.texts.iter().position(|seen| *seen == text) {
            put_number(&mut self.out, length(at + 1));
        } else {
            self.texts.push(text);
            self.out.push(0);
            put_bytes(&mut self.out, text.as_bytes());
        }
    }

    fn count(&mut self, items: usize) {
        put_number(&mut self.out, length(items));
    }

    pub(super) fn rule(&mut self, rule: &'a Rule) {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let action = match rule.action {
            Action::Allow => 0,
            Action::Deny => 1,
            Action::Log => 2,
            Action::Pass => 3,
        };
        let set = flag(rule.ip_version.is_some(), IP_VERSION)
            | flag(rule.protocol.is_some(), PROTOCOL)
            | flag(rule.not_protocol.is_some(), NOT_PROTOCOL)
            | flag(rule.icmp.is_some(), ICMP)
            | flag(rule.not_icmp.is_some(), NOT_ICMP)
            | flag(rule.source != Entity::default(), SOURCE)
            | flag(rule.destination != Entity::default(), DESTINATION)
            | flag(rule.http.is_some(), HTTP)
            | flag(rule.metadata.is_some(), METADATA);
        put_number(&mut self.out, action | set);
        if let Some(version) = rule.ip_version {
            self.out.push(version);
        }
        for protocol in [&rule.protocol, &rule.not_protocol].into_iter().flatten() {
            self.protocol(protocol);
        }
        for icmp in [rule.icmp, rule.not_icmp].into_iter().flatten() {
            self.out.push(icmp.r#type);
            put_number(
                &mut self.out,
                icmp.code.map_or(0, |code| u32::from(code) + 1),
            );
        }
        if set & SOURCE != 0 {
            self.entity(&rule.source);
        }
        if set & DESTINATION != 0 {
            self.entity(&rule.destination);
        }
        if let Some(http) = &rule.http {
            self.count(http.methods.len());
            http.methods.iter().for_each(|method| self.text(method));
            self.count(http.paths.len());
            for path in &http.paths {
                self.text(&path.exact);
                self.text(&path.prefix);
            }
        }
        if let Some(metadata) = &rule.metadata {
            self.count(metadata.annotations.len());
            for (key, value) in &metadata.annotations {
                self.text(key);
                self.text(value);
            }
        }
    }

    fn entity(&mut self, entity: &'a Entity) {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let set = flag(!entity.selector.is_empty(), SELECTOR)
            | flag(!entity.nets.is_empty(), NETS)
            | flag(!entity.ports.is_empty(), PORTS)
            | flag(!entity.not_selector.is_empty(), NOT_SELECTOR)
            | flag(!entity.not_nets.is_empty(), NOT_NETS)
            | flag(!entity.not_ports.is_empty(), NOT_PORTS)
            | flag(entity.service.is_some(), SERVICE)
            | flag(!entity.original_selector.is_empty(), ORIGINAL_SELECTOR)
            | flag(
                !entity.original_namespace_selector.is_empty(),
                ORIGINAL_NAMESPACE_SELECTOR,
            )
            | flag(
                !entity.original_not_selector.is_empty(),
                ORIGINAL_NOT_SELECTOR,
            )
            | flag(
                entity.original_service_accounts.is_some(),
                ORIGINAL_SERVICE_ACCOUNTS,
            );
        put_number(&mut self.out, set);
        for (bit, text) in [
            (SELECTOR, &entity.selector),
            (NOT_SELECTOR, &entity.not_selector),
            (ORIGINAL_SELECTOR, &entity.original_selector),
            (
                ORIGINAL_NAMESPACE_SELECTOR,
                &entity.original_namespace_selector,
            ),
            (ORIGINAL_NOT_SELECTOR, &entity.original_not_selector),
        ] {
            if set & bit != 0 {
                self.text(text);
            }
        }
        for (bit, nets) in [(NETS, &entity.nets), (NOT_NETS, &entity.not_nets)] {
            if set & bit != 0 {
                self.count(nets.len());
                for net in nets {
                    self.net(*net);
                }
            }
        }
        for (bit, ports) in [(PORTS, &entity.ports), (NOT_PORTS, &entity.not_ports)] {
            if set & bit != 0 {
                self.count(ports.len());
                for port in ports {
                    self.port(port);
                }
            }
        }
        if let Some(service) = &entity.service {
            self.text(&service.name);
            self.text(&service.namespace);
        }
        if let Some(accounts) = &entity.original_service_accounts {
            self.text(&accounts.selector);
            self.count(accounts.names.len());
            accounts.names.iter().for_each(|name| self.text(name));
        }
    }

    /// A number as it is, a name as the place in the list of names plus 256, any other text after 255 + all names.
    fn protocol(&mut self, protocol: &'a Protocol) {
        let code = match protocol {
            Protocol::Number(number) => u32::from(*number),
            Protocol::Tcp => 256,
            Protocol::Udp => 257,
            Protocol::Icmp => 258,
            Protocol::Icmpv6 => 259,
            Protocol::Sctp => 260,
            Protocol::UdpLite => 261,
            Protocol::Unknown(_) => 262,
        };
        put_number(&mut self.out, code);
        if let Protocol::Unknown(text) = protocol {
            self.text(text);
        }
    }

    /// Networks of rules keep the bits beyond the prefix.
    fn net(&mut self, net: IpNet) {
        let (family, octets): (u8, &[u8]) = match net.addr() {
            IpAddr::V4(address) => (0, &address.octets()),
            IpAddr::V6(address) => (1, &address.octets()),
        };
        self.out.push(family);
        self.out.push(net.prefix_len());
        self.out.extend_from_slice(octets);
    }

    fn port(&mut self, port: &'a Port) {
        match port {
            Port::Range(first, last) => {
                put_number(&mut self.out, u32::from(*first) + 1);
                put_number(&mut self.out, u32::from(*last));
            }
            Port::Named(name) => {
                put_number(&mut self.out, 0);
                self.text(name);
            }
        }
    }
}

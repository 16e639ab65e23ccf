//! Rules in packed form. Most policies of a cluster apply to no endpoint of this node; they are kept, in little space,
//! for the time when they do.
//!
//! Texts that occur again within one policy are stored once.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use tortie_api::rule::{
    Action, HttpMatch, HttpPath, RuleMetadata, ServiceAccountMatch, ServiceMatch,
};
use tortie_api::scalar::{Port, Protocol};

use crate::bytes::{Reader, length, put_bytes, put_number};
use crate::input::{Entity, Icmp, Rule};

// Which conditions of a rule follow.
const IP_VERSION: u32 = 1 << 2;
const PROTOCOL: u32 = 1 << 3;
const NOT_PROTOCOL: u32 = 1 << 4;
const ICMP: u32 = 1 << 5;
const NOT_ICMP: u32 = 1 << 6;
const SOURCE: u32 = 1 << 7;
const DESTINATION: u32 = 1 << 8;
const HTTP: u32 = 1 << 9;
const METADATA: u32 = 1 << 10;

// Which conditions on one side follow.
const SELECTOR: u32 = 1;
const NETS: u32 = 1 << 1;
const PORTS: u32 = 1 << 2;
const NOT_SELECTOR: u32 = 1 << 3;
const NOT_NETS: u32 = 1 << 4;
const NOT_PORTS: u32 = 1 << 5;
const SERVICE: u32 = 1 << 6;
const ORIGINAL_SELECTOR: u32 = 1 << 7;
const ORIGINAL_NAMESPACE_SELECTOR: u32 = 1 << 8;
const ORIGINAL_NOT_SELECTOR: u32 = 1 << 9;
const ORIGINAL_SERVICE_ACCOUNTS: u32 = 1 << 10;

/// Packs a selector and rules for both directions.
pub(crate) fn pack(selector: &str, inbound: &[Rule], outbound: &[Rule]) -> Box<[u8]> {
    let mut writer = Writer {
        out: Vec::with_capacity(128),
        texts: Vec::new(),
    };
    writer.text(selector);
    for rules in [inbound, outbound] {
        put_number(&mut writer.out, length(rules.len()));
        for rule in rules {
            writer.rule(rule);
        }
    }
    writer.out.into_boxed_slice()
}

/// Gives back what [`pack`] packed: selector, inbound rules, outbound rules.
pub(crate) fn unpack(packed: &[u8]) -> (&str, Vec<Rule>, Vec<Rule>) {
    let mut unpacker = Unpacker {
        reader: Reader::new(packed),
        texts: Vec::new(),
    };
    let selector = unpacker.text();
    let mut rules = || {
        let count = unpacker.reader.number();
        (0..count).map(|_| unpacker.rule()).collect()
    };
    let inbound = rules();
    (selector, inbound, rules())
}

struct Writer<'a> {
    out: Vec<u8>,
    texts: Vec<&'a str>,
}

impl<'a> Writer<'a> {
    /// A text: 0 and the bytes when it is new, else where it was seen.
    fn text(&mut self, text: &'a str) {
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

    fn rule(&mut self, rule: &'a Rule) {
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

struct Unpacker<'a> {
    reader: Reader<'a>,
    texts: Vec<&'a str>,
}

impl<'a> Unpacker<'a> {
    fn text(&mut self) -> &'a str {
        match self.reader.number() {
            0 => {
                let text = self.reader.text();
                self.texts.push(text);
                text
            }
            at => self.texts.get(at as usize - 1).copied().unwrap_or_default(),
        }
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.reader.number();
        (0..count).map(|_| item(self)).collect()
    }

    fn rule(&mut self) -> Rule {
        let set = self.reader.number();
        let has = |bit: u32| set & bit != 0;
        Rule {
            action: match set & 3 {
                0 => Action::Allow,
                1 => Action::Deny,
                2 => Action::Log,
                _ => Action::Pass,
            },
            ip_version: has(IP_VERSION).then(|| self.reader.byte()),
            protocol: has(PROTOCOL).then(|| self.protocol()),
            not_protocol: has(NOT_PROTOCOL).then(|| self.protocol()),
            icmp: has(ICMP).then(|| self.icmp()),
            not_icmp: has(NOT_ICMP).then(|| self.icmp()),
            source: if has(SOURCE) {
                self.entity()
            } else {
                Entity::default()
            },
            destination: if has(DESTINATION) {
                self.entity()
            } else {
                Entity::default()
            },
            http: has(HTTP).then(|| HttpMatch {
                methods: self.list(|this| this.text().to_owned()),
                paths: self.list(|this| HttpPath {
                    exact: this.text().to_owned(),
                    prefix: this.text().to_owned(),
                }),
            }),
            metadata: has(METADATA).then(|| RuleMetadata {
                annotations: self
                    .list(|this| (this.text().to_owned(), this.text().to_owned()))
                    .into_iter()
                    .collect(),
            }),
        }
    }

    fn entity(&mut self) -> Entity {
        let set = self.reader.number();
        let has = |bit: u32| set & bit != 0;
        let mut text = |bit: u32| {
            if has(bit) {
                self.text().to_owned()
            } else {
                String::new()
            }
        };
        let selector = text(SELECTOR);
        let not_selector = text(NOT_SELECTOR);
        let original_selector = text(ORIGINAL_SELECTOR);
        let original_namespace_selector = text(ORIGINAL_NAMESPACE_SELECTOR);
        let original_not_selector = text(ORIGINAL_NOT_SELECTOR);
        Entity {
            selector,
            not_selector,
            original_selector,
            original_namespace_selector,
            original_not_selector,
            nets: if has(NETS) {
                self.list(Self::net)
            } else {
                Vec::new()
            },
            not_nets: if has(NOT_NETS) {
                self.list(Self::net)
            } else {
                Vec::new()
            },
            ports: if has(PORTS) {
                self.list(Self::port)
            } else {
                Vec::new()
            },
            not_ports: if has(NOT_PORTS) {
                self.list(Self::port)
            } else {
                Vec::new()
            },
            service: has(SERVICE).then(|| ServiceMatch {
                name: self.text().to_owned(),
                namespace: self.text().to_owned(),
            }),
            original_service_accounts: has(ORIGINAL_SERVICE_ACCOUNTS).then(|| {
                ServiceAccountMatch {
                    selector: self.text().to_owned(),
                    names: self.list(|this| this.text().to_owned()),
                }
            }),
        }
    }

    fn protocol(&mut self) -> Protocol {
        match self.reader.number() {
            256 => Protocol::Tcp,
            257 => Protocol::Udp,
            258 => Protocol::Icmp,
            259 => Protocol::Icmpv6,
            260 => Protocol::Sctp,
            261 => Protocol::UdpLite,
            262 => Protocol::Unknown(self.text().into()),
            number => Protocol::Number(to_u8(number)),
        }
    }

    fn icmp(&mut self) -> Icmp {
        Icmp {
            r#type: self.reader.byte(),
            code: self.reader.number().checked_sub(1).map(to_u8),
        }
    }

    fn net(&mut self) -> IpNet {
        let is_v4 = self.reader.byte() == 0;
        let prefix = self.reader.byte();
        let address: IpAddr = if is_v4 {
            Ipv4Addr::from(<[u8; 4]>::try_from(self.reader.take(4)).unwrap_or_default()).into()
        } else {
            Ipv6Addr::from(<[u8; 16]>::try_from(self.reader.take(16)).unwrap_or_default()).into()
        };
        IpNet::new_assert(address, prefix)
    }

    fn port(&mut self) -> Port {
        match self.reader.number() {
            0 => Port::Named(self.text().into()),
            first => Port::Range(to_u16(first - 1), to_u16(self.reader.number())),
        }
    }
}

/// A number that was packed from one of eight bits.
fn to_u8(number: u32) -> u8 {
    u8::try_from(number).unwrap_or_default()
}

/// A number that was packed from one of sixteen bits.
fn to_u16(number: u32) -> u16 {
    u16::try_from(number).unwrap_or_default()
}

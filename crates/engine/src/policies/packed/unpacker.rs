//! Unpacking.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use tortie_api::rule::{
    Action, HttpMatch, HttpPath, RuleMetadata, ServiceAccountMatch, ServiceMatch,
};
use tortie_api::scalar::{Port, Protocol};

use super::{
    DESTINATION, HTTP, ICMP, IP_VERSION, METADATA, NETS, NOT_ICMP, NOT_NETS, NOT_PORTS,
    NOT_PROTOCOL, NOT_SELECTOR, ORIGINAL_NAMESPACE_SELECTOR, ORIGINAL_NOT_SELECTOR,
    ORIGINAL_SELECTOR, ORIGINAL_SERVICE_ACCOUNTS, PORTS, PROTOCOL, SELECTOR, SERVICE, SOURCE,
};
use crate::bytes::Reader;
use crate::input::{Entity, Icmp, Rule};

/// Unpacks rules, and remembers the texts that it has seen.
pub(super) struct Unpacker<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) texts: Vec<&'a str>,
}

impl<'a> Unpacker<'a> {
    pub(super) fn text(&mut self) -> &'a str {
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

    pub(super) fn rule(&mut self) -> Rule {
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

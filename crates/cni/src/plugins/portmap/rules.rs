//! The rules of a container.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use tortie_kernel::nft::{
    Base, Comparison, CtKey, Expr, Family, MetaKey, Nat, NatFlags, NatKind, Register, Registers,
    Rule, Value,
};

use super::conditions::{compare, write_network};
use super::config::{Mapping, Settings};
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;

/// Where both protocols and SCTP have their destination's port.
const PORT_OFFSET: u32 = 2;
const PORT_LENGTH: u32 = 2;

/// In the status of a connection: its destination was changed.
const DESTINATION_CHANGED: u32 = 1 << 5;

/// The rules of a container for a family.
pub(super) struct Wanted {
    pub(super) family: Family,
    /// Which ports lead to the container.
    pub(super) ports: Vec<Rule>,
    /// Which connections get the node's address as their source.
    pub(super) sources: Vec<Rule>,
}

impl Wanted {
    /// For a container with this address.
    pub(super) fn of(settings: &Settings, address: IpAddr, owner: &str) -> Self {
        let is_ipv4 = address.is_ipv4();
        let ports: Vec<Rule> = settings
            .mappings_of(is_ipv4)
            .map(|mapping| lead(settings, mapping, address).with_comment(owner))
            .collect();
        let sources = match (ports.is_empty(), settings.is_source_changed) {
            (false, true) => sources(settings, address),
            _ => Vec::new(),
        };
        let sources = sources.into_iter().map(|rule| rule.with_comment(owner));
        Self {
            family: if is_ipv4 { Family::Ip } else { Family::Ip6 },
            ports,
            sources: sources.collect(),
        }
    }

    pub(super) fn nothing() -> Self {
        Self {
            family: Family::Ip,
            ports: Vec::new(),
            sources: Vec::new(),
        }
    }
}

/// Leads a port to the container.
fn lead(settings: &Settings, mapping: &Mapping, address: IpAddr) -> Rule {
    let mut exprs = Vec::new();
    for condition in settings.conditions(address.is_ipv4()) {
        condition.write(&mut exprs);
    }
    if let Some(node) = mapping.node {
        write_network(node.into(), true, Comparison::Equal, &mut exprs);
    }
    exprs.extend([
        Expr::Meta {
            key: MetaKey::TransportProtocol,
            to: Register::FIRST,
        },
        compare(Comparison::Equal, Value::byte(mapping.protocol)),
        Expr::Payload {
            base: Base::Transport,
            offset: PORT_OFFSET,
            length: PORT_LENGTH,
            to: Register::FIRST,
        },
        compare(Comparison::Equal, Value::network16(mapping.node_port)),
        Expr::Immediate {
            to: Register::FIRST,
            value: Value::address(address),
        },
        Expr::Immediate {
            to: BEHIND_ADDRESS,
            value: Value::network16(mapping.port),
        },
        Expr::Nat(Nat {
            kind: NatKind::Destination,
            family: if address.is_ipv4() {
                Family::Ip
            } else {
                Family::Ip6
            },
            addresses: Some(Registers::one(Register::FIRST)),
            ports: Some(Registers::one(BEHIND_ADDRESS)),
            flags: NatFlags::NONE,
        }),
    ]);
    Rule::new(exprs)
}

/// The first register that an address of either family leaves free.
const BEHIND_ADDRESS: Register = Register::at(4);

/// The container itself could not tell answers from what it sent, and to the loopback network there is no way back. The
/// kernel sends nothing for that of IPv6 elsewhere.
fn sources(settings: &Settings, address: IpAddr) -> Vec<Rule> {
    if settings.is_every_source_changed {
        return vec![change_source(None, address)];
    }
    let mut rules = vec![change_source(Some(address.into()), address)];
    if address.is_ipv4() {
        let localhost = Ipv4Net::new_assert(Ipv4Addr::LOCALHOST, 8).trunc();
        rules.push(change_source(Some(localhost.into()), address));
    }
    rules
}

/// Of connections to the container that were meant for somebody else.
fn change_source(from: Option<IpNet>, address: IpAddr) -> Rule {
    let mut exprs = Vec::new();
    if let Some(from) = from {
        write_network(from, false, Comparison::Equal, &mut exprs);
    }
    write_network(address.into(), true, Comparison::Equal, &mut exprs);
    exprs.extend([
        Expr::Ct {
            key: CtKey::Status,
            direction: None,
            to: Register::FIRST,
        },
        Expr::Bitwise {
            from: Register::FIRST,
            to: Register::FIRST,
            mask: Value::host32(DESTINATION_CHANGED),
            xor: Value::host32(0),
        },
        compare(Comparison::NotEqual, Value::host32(0)),
        Expr::Masquerade {
            flags: NatFlags::NONE,
            ports: None,
        },
    ]);
    Rule::new(exprs)
}

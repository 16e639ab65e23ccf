//! Rules as expressions of the kernel.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use tortie_kernel::nft::{
    Base, Checksum, Comparison, CtKey, Element, Expr, FibKey, FibResult, Field, InlineSet, Limit,
    LimitKind, Log, MetaKey, Nat, NatFlags, NatKind, Register, Registers, Reject, SetReference,
    Value, Verdict,
};
use tortie_rules::rule::{Action, Interface, Match, PortRange, Rate, RateUnit, Rule, Side, State};
use tortie_rules::{IpVersion, Table, nftables};

/// What a source and a destination begin at in the network header, and how long they are.
const IPV4: Addresses = Addresses {
    source: 12,
    destination: 16,
    length: 4,
};
const IPV6: Addresses = Addresses {
    source: 8,
    destination: 24,
    length: 16,
};

/// Bits of a connection's state.
const INVALID: u32 = 1;
const ESTABLISHED: u32 = 2;
const RELATED: u32 = 4;

/// The bit of a connection's status that says that its destination was translated.
const DESTINATION_TRANSLATED: u32 = 1 << 5;

/// `RTN_LOCAL`
const LOCAL_ADDRESS: u32 = 2;

/// Unreachable for want of a port: what `reject` alone says.
const PORT_UNREACHABLE: u8 = 3;
const PORT_UNREACHABLE_V6: u8 = 4;

const LOG_INFO: u8 = 6;
const NFLOG_LENGTH: u32 = 80;

struct Addresses {
    source: u32,
    destination: u32,
    length: u32,
}

/// Compiles the rules of one table and IP version.
pub(super) struct Compiler {
    pub(super) ip_version: IpVersion,
    pub(super) table: Table,
}

impl Compiler {
    /// The expressions of a rule.
    pub(super) fn rule(&self, rule: &Rule) -> Vec<Expr> {
        let mut out = Vec::with_capacity(8);
        let known = rule.matches.iter().find_map(|condition| match condition {
            Match::Protocol(protocol) => protocol.number(),
            _ => None,
        });
        for condition in &rule.matches {
            self.condition(condition, known, &mut out);
        }
        if rule.actions.is_empty() {
            // A rule that only carries a comment.
            if out.is_empty() {
                out.push(Expr::Verdict(Verdict::Continue));
            }
            return out;
        }
        out.push(Expr::Counter);
        for action in &rule.actions {
            self.action(action, &mut out);
        }
        out
    }

    fn condition(&self, condition: &Match, known: Option<u8>, out: &mut Vec<Expr>) {
        match condition {
            Match::Protocol(protocol) => protocol_is(protocol.number(), Comparison::Equal, out),
            Match::NotProtocol(protocol) => {
                protocol_is(protocol.number(), Comparison::NotEqual, out);
            }
            Match::Address(side, address) => {
                out.push(self.load_address(*side, Register::FIRST));
                out.push(equal(Value::address(*address)));
            }
            Match::Net(side, net) => self.net(*side, *net, Comparison::Equal, out),
            Match::NotNet(side, net) => self.net(*side, *net, Comparison::NotEqual, out),
            Match::AnyNet(side, nets) => self.nets(*side, nets, false, out),
            Match::NoNet(side, nets) => self.nets(*side, nets, true, out),
            Match::Set(side, set) => self.set(*side, set, false, out),
            Match::NotSet(side, set) => self.set(*side, set, true, out),
            Match::PortSet(side, set) => self.port_set(*side, set, false, out),
            Match::NotPortSet(side, set) => self.port_set(*side, set, true, out),
            Match::Ports(side, list) => ports(*side, list, false, out),
            Match::NotPorts(side, list) => ports(*side, list, true, out),
            Match::Port(port) => {
                out.push(load_port(Side::Destination, Register::FIRST));
                out.push(equal(Value::network16(*port)));
            }
            Match::Icmp(kind, code) => self.icmp(*kind, *code, Comparison::Equal, known, out),
            Match::NotIcmp(kind, code) => {
                self.icmp(*kind, *code, Comparison::NotEqual, known, out);
            }
            Match::Mark(value, mask) => mark(*value, *mask, Comparison::Equal, out),
            Match::NotMark(value, mask) => mark(*value, *mask, Comparison::NotEqual, out),
            Match::In(name) => interface(MetaKey::InputInterfaceName, name, out),
            Match::Out(name) => interface(MetaKey::OutputInterfaceName, name, out),
            Match::InterfaceMap(side, map) => {
                let key = match side {
                    Side::Source => MetaKey::InputInterfaceName,
                    Side::Destination => MetaKey::OutputInterfaceName,
                };
                out.push(meta(key));
                let map = nftables::chain_name(self.table, map);
                out.push(Expr::VerdictMap {
                    map: SetReference::Named(map.into()),
                    from: Register::FIRST,
                });
            }
            Match::Local {
                side,
                negated,
                of_out_interface,
            } => {
                out.push(Expr::Fib {
                    with: match (side, of_out_interface) {
                        (Side::Source, false) => &[FibKey::Source],
                        (Side::Source, true) => &[FibKey::Source, FibKey::OutputInterface],
                        (Side::Destination, false) => &[FibKey::Destination],
                        (Side::Destination, true) => {
                            &[FibKey::Destination, FibKey::OutputInterface]
                        }
                    },
                    result: FibResult::AddressType,
                    to: Register::FIRST,
                });
                let how = if *negated {
                    Comparison::NotEqual
                } else {
                    Comparison::Equal
                };
                out.push(compare(how, Value::host32(LOCAL_ADDRESS)));
            }
            Match::State(state) => {
                let bits = match state {
                    State::Established => ESTABLISHED | RELATED,
                    State::Invalid => INVALID,
                };
                out.push(ct(CtKey::State));
                out.push(and(bits));
                out.push(compare(Comparison::NotEqual, Value::host32(0)));
            }
            Match::Translated(is_translated) => {
                let how = if *is_translated {
                    Comparison::NotEqual
                } else {
                    Comparison::Equal
                };
                out.push(ct(CtKey::Status));
                out.push(and(DESTINATION_TRANSLATED));
                out.push(compare(how, Value::host32(0)));
            }
            Match::ReversePathFails => {
                out.push(Expr::Fib {
                    with: &[FibKey::Source, FibKey::Mark, FibKey::InputInterface],
                    result: FibResult::Interface,
                    to: Register::FIRST,
                });
                out.push(equal(Value::host32(0)));
            }
            Match::Limit(rate, burst) => out.push(Expr::Limit(limit(*rate, *burst))),
        }
    }

    fn load_address(&self, side: Side, to: Register) -> Expr {
        let addresses = self.addresses();
        Expr::Payload {
            base: Base::Network,
            offset: match side {
                Side::Source => addresses.source,
                Side::Destination => addresses.destination,
            },
            length: addresses.length,
            to,
        }
    }

    fn addresses(&self) -> &'static Addresses {
        match self.ip_version {
            IpVersion::V4 => &IPV4,
            IpVersion::V6 => &IPV6,
        }
    }

    fn field(&self) -> Field {
        match self.ip_version {
            IpVersion::V4 => Field::Ipv4Addr,
            IpVersion::V6 => Field::Ipv6Addr,
        }
    }

    fn net(&self, side: Side, net: IpNet, how: Comparison, out: &mut Vec<Expr>) {
        let (length, full) = (net.prefix_len(), net.max_prefix_len());
        out.push(self.load_address(side, Register::FIRST));
        // A whole address, or whole bytes of it, need no mask.
        if length < full {
            out.push(Expr::Bitwise {
                from: Register::FIRST,
                to: Register::FIRST,
                mask: Value::address(net.netmask()),
                xor: Value::address(unspecified(net)),
            });
        }
        out.push(compare(how, Value::address(net.network())));
    }

    fn nets(&self, side: Side, nets: &[IpNet], inverted: bool, out: &mut Vec<Expr>) {
        let elements = nets.iter().map(|net| Element::prefix(*net));
        let set = InlineSet::new([self.field()], elements);
        out.push(self.load_address(side, Register::FIRST));
        out.push(Expr::Lookup {
            set: SetReference::Inline(set),
            from: Register::FIRST,
            inverted,
        });
    }

    fn set(&self, side: Side, set: &Arc<str>, inverted: bool, out: &mut Vec<Expr>) {
        out.push(self.load_address(side, Register::FIRST));
        out.push(Expr::Lookup {
            set: SetReference::Named(Arc::clone(set)),
            from: Register::FIRST,
            inverted,
        });
    }

    fn port_set(&self, side: Side, set: &Arc<str>, inverted: bool, out: &mut Vec<Expr>) {
        let words = match self.ip_version {
            IpVersion::V4 => 1,
            IpVersion::V6 => 4,
        };
        out.push(self.load_address(side, Register::FIRST));
        out.push(Expr::Meta {
            key: MetaKey::TransportProtocol,
            to: Register::at(words),
        });
        out.push(load_port(side, Register::at(words + 1)));
        out.push(Expr::Lookup {
            set: SetReference::Named(Arc::clone(set)),
            from: Register::FIRST,
            inverted,
        });
    }

    fn icmp(
        &self,
        kind: u8,
        code: Option<u8>,
        how: Comparison,
        known: Option<u8>,
        out: &mut Vec<Expr>,
    ) {
        let protocol = match self.ip_version {
            IpVersion::V4 => 1,
            IpVersion::V6 => 58,
        };
        // The first bytes of other protocols mean other things.
        if known != Some(protocol) {
            protocol_is(Some(protocol), Comparison::Equal, out);
        }
        let bytes = [kind, code.unwrap_or_default()];
        let length = if code.is_some() { 2 } else { 1 };
        out.push(Expr::Payload {
            base: Base::Transport,
            offset: 0,
            length,
            to: Register::FIRST,
        });
        let wanted = bytes.get(..if code.is_some() { 2 } else { 1 });
        out.push(compare(how, Value::from_bytes(wanted.unwrap_or(&bytes))));
    }

    fn action(&self, action: &Action, out: &mut Vec<Expr>) {
        let chain = |name: &str| Arc::from(nftables::chain_name(self.table, name));
        match action {
            Action::Jump(name) => out.push(Expr::Verdict(Verdict::Jump(chain(name)))),
            Action::Goto(name) => out.push(Expr::Verdict(Verdict::Goto(chain(name)))),
            Action::Accept => out.push(Expr::Verdict(Verdict::Accept)),
            Action::Drop => out.push(Expr::Verdict(Verdict::Drop)),
            Action::Reject => out.push(Expr::Reject(Reject::Icmp(match self.ip_version {
                IpVersion::V4 => PORT_UNREACHABLE,
                IpVersion::V6 => PORT_UNREACHABLE_V6,
            }))),
            Action::Return => out.push(Expr::Verdict(Verdict::Return)),
            Action::SetMark(bits) => set_mark(!bits, *bits, out),
            Action::ClearMark(bits) => set_mark(!bits, 0, out),
            Action::SetMaskedMark(value, mask) => set_mark(!mask, *value, out),
            Action::Log(prefix) => out.push(Expr::Log(Log::Kernel {
                prefix: format!("{prefix}: ").into(),
                level: LOG_INFO,
            })),
            Action::Nflog(group, prefix) => out.push(Expr::Log(Log::Group {
                group: *group,
                prefix: prefix.as_str().into(),
                length: Some(NFLOG_LENGTH),
                threshold: 0,
            })),
            Action::Masquerade(range) => {
                let ports = range.map(|range| load_ports(range, 0, out));
                out.push(Expr::Masquerade {
                    flags: NatFlags::FULLY_RANDOM,
                    ports,
                });
            }
            Action::Snat(address, range) => {
                self.nat(
                    NatKind::Source,
                    *address,
                    *range,
                    NatFlags::FULLY_RANDOM,
                    out,
                );
            }
            Action::Dnat(address, port) => {
                let range = port.map(|port| PortRange {
                    first: port,
                    last: port,
                });
                self.nat(NatKind::Destination, *address, range, NatFlags::NONE, out);
            }
            Action::NoTrack => out.push(Expr::NoTrack),
            Action::Dscp(value) => self.dscp(*value, out),
            Action::LimitPackets { rate, burst, .. } => {
                out.push(Expr::Limit(Limit {
                    over: true,
                    ..limit(
                        Rate {
                            count: *rate,
                            unit: RateUnit::Second,
                        },
                        *burst,
                    )
                }));
                out.push(Expr::Verdict(Verdict::Drop));
            }
            Action::LimitConnections(count) => {
                // A reset answers TCP alone, so other connections do not count.
                protocol_is(Some(6), Comparison::Equal, out);
                out.push(Expr::CtCount {
                    count: *count,
                    over: true,
                });
                out.push(Expr::Reject(Reject::TcpReset));
            }
        }
    }

    fn nat(
        &self,
        kind: NatKind,
        address: IpAddr,
        range: Option<PortRange>,
        flags: NatFlags,
        out: &mut Vec<Expr>,
    ) {
        out.push(Expr::Immediate {
            to: Register::FIRST,
            value: Value::address(address),
        });
        let ports = range.map(|range| load_ports(range, 4, out));
        out.push(Expr::Nat(Nat {
            kind,
            family: super::family(self.ip_version),
            addresses: Some(Registers::one(Register::FIRST)),
            ports,
            flags,
        }));
    }

    /// The class of service is six bits of the second byte in IPv4, and of the first two in IPv6.
    fn dscp(&self, value: u8, out: &mut Vec<Expr>) {
        let (offset, mask, bits, checksum) = match self.ip_version {
            IpVersion::V4 => {
                let bits = [0, value << 2];
                (0, [0xff, 0x03], bits, Checksum::Internet(10))
            }
            IpVersion::V6 => {
                let bits = (u16::from(value) << 6).to_be_bytes();
                (0, [0xf0, 0x3f], bits, Checksum::None)
            }
        };
        out.push(Expr::Payload {
            base: Base::Network,
            offset,
            length: 2,
            to: Register::FIRST,
        });
        out.push(Expr::Bitwise {
            from: Register::FIRST,
            to: Register::FIRST,
            mask: Value::from_bytes(&mask),
            xor: Value::from_bytes(&bits),
        });
        out.push(Expr::PayloadSet {
            base: Base::Network,
            offset,
            length: 2,
            from: Register::FIRST,
            checksum,
        });
    }
}

fn unspecified(net: IpNet) -> IpAddr {
    match net {
        IpNet::V4(_) => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        IpNet::V6(_) => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
    }
}

/// A protocol that is not known matches nothing, and to be different from it is no condition.
fn protocol_is(number: Option<u8>, how: Comparison, out: &mut Vec<Expr>) {
    out.push(meta(MetaKey::TransportProtocol));
    out.push(compare(how, Value::byte(number.unwrap_or(u8::MAX))));
}

fn meta(key: MetaKey) -> Expr {
    Expr::Meta {
        key,
        to: Register::FIRST,
    }
}

fn ct(key: CtKey) -> Expr {
    Expr::Ct {
        key,
        direction: None,
        to: Register::FIRST,
    }
}

fn compare(how: Comparison, value: Value) -> Expr {
    Expr::Compare {
        from: Register::FIRST,
        how,
        value,
    }
}

fn equal(value: Value) -> Expr {
    compare(Comparison::Equal, value)
}

fn and(mask: u32) -> Expr {
    Expr::Bitwise {
        from: Register::FIRST,
        to: Register::FIRST,
        mask: Value::host32(mask),
        xor: Value::host32(0),
    }
}

fn mark(value: u32, mask: u32, how: Comparison, out: &mut Vec<Expr>) {
    out.push(meta(MetaKey::Mark));
    out.push(and(mask));
    out.push(compare(how, Value::host32(value)));
}

fn set_mark(keep: u32, flip: u32, out: &mut Vec<Expr>) {
    out.push(meta(MetaKey::Mark));
    out.push(Expr::Bitwise {
        from: Register::FIRST,
        to: Register::FIRST,
        mask: Value::host32(keep),
        xor: Value::host32(flip),
    });
    out.push(Expr::MetaSet {
        key: MetaKey::Mark,
        from: Register::FIRST,
    });
}

fn interface(key: MetaKey, name: &Interface, out: &mut Vec<Expr>) {
    // A wildcard alone is any interface, of which there always is one.
    if name.wildcard && name.name.is_empty() {
        return;
    }
    out.push(meta(key));
    out.push(equal(if name.wildcard {
        Value::interface_prefix(&name.name)
    } else {
        Value::interface(&name.name)
    }));
}

fn load_port(side: Side, to: Register) -> Expr {
    Expr::Payload {
        base: Base::Transport,
        offset: match side {
            Side::Source => 0,
            Side::Destination => 2,
        },
        length: 2,
        to,
    }
}

fn ports(side: Side, list: &[PortRange], inverted: bool, out: &mut Vec<Expr>) {
    out.push(load_port(side, Register::FIRST));
    let how = if inverted {
        Comparison::NotEqual
    } else {
        Comparison::Equal
    };
    match list {
        [one] if one.first == one.last => {
            out.push(compare(how, Value::network16(one.first)));
        }
        [one] => out.push(Expr::Range {
            from: Register::FIRST,
            inverted,
            first: Value::network16(one.first),
            last: Value::network16(one.last),
        }),
        list => {
            let elements = disjoint(list).into_iter();
            let elements = elements.map(|range| {
                Element::range(Value::network16(range.first), Value::network16(range.last))
            });
            out.push(Expr::Lookup {
                set: SetReference::Inline(InlineSet::new([Field::InetService], elements)),
                from: Register::FIRST,
                inverted,
            });
        }
    }
}

/// The same ports in ranges that neither overlap nor touch.
fn disjoint(ports: &[PortRange]) -> Vec<PortRange> {
    let mut sorted = ports.to_vec();
    sorted.sort_by_key(|range| range.first);
    let mut merged: Vec<PortRange> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.first <= last.last.saturating_add(1) => {
                last.last = last.last.max(range.last);
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// Puts the ends of a range into two registers.
fn load_ports(range: PortRange, first: u8, out: &mut Vec<Expr>) -> Registers {
    let registers = [Register::at(first), Register::at(first + 1)];
    for (register, port) in registers.into_iter().zip([range.first, range.last]) {
        out.push(Expr::Immediate {
            to: register,
            value: Value::network16(port),
        });
    }
    Registers {
        first: registers[0],
        last: registers[1],
    }
}

fn limit(rate: Rate, burst: u32) -> Limit {
    Limit {
        rate: u64::from(rate.count),
        seconds: match rate.unit {
            RateUnit::Second => 1,
            RateUnit::Minute => 60,
            RateUnit::Hour => 3600,
            RateUnit::Day => 86_400,
        },
        burst,
        kind: LimitKind::Packets,
        over: false,
    }
}

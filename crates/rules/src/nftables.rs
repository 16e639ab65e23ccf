//! Rules in the language of `nft`.

use std::fmt::{self, Write as _};

use ipnet::IpNet;
use tortie_selector::ids::length_limited_id;

use crate::IpVersion;
use crate::rule::{Action, Chain, Interface, Match, PortRange, Rule, Side, State, Table};
use crate::text::{
    HASH_PREFIX, RuleHasher, safe_comment, space, truncated, write_ports, write_protocol,
    write_rate, write_with_port, written,
};

/// The longest comment that `nft` takes.
const MAX_COMMENT: usize = 128;

/// The longest name of a chain that the kernel takes, in bytes. Longer ones are hashed: Calico's may be longer with the
/// layer in front, and then the kernel refuses them.
const LONGEST_NAME: usize = 255;

/// A rule as it goes to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Conditions and actions.
    pub rule: String,
    /// The comment: hash and notes.
    pub comment: String,
}

/// The name of a chain in the one table of nftables.
pub fn chain_name(table: Table, name: &str) -> String {
    let layer = [table.name(), "-"].concat();
    length_limited_id(&layer, name, LONGEST_NAME)
}

/// The rules of a chain. `name` is the full name, with the layer.
pub fn lines(chain: &Chain, ip_version: IpVersion) -> Vec<Line> {
    let name = chain_name(chain.table, &chain.name);
    lines_of(&name, chain.table, &chain.rules, ip_version)
}

/// Rules of a chain by its full name, which seeds the hashes.
pub fn lines_of(name: &str, table: Table, rules: &[Rule], ip_version: IpVersion) -> Vec<Line> {
    let mut hasher = RuleHasher::new(name);
    let lines = rules.iter().map(|rule| {
        let text = text(rule, table, ip_version);
        let comment = comment(&hasher.next(&text), &rule.comments);
        Line {
            rule: text,
            comment,
        }
    });
    lines.collect()
}

/// The comment of a rule.
pub fn comment(hash: &str, notes: &[String]) -> String {
    let mut out = [HASH_PREFIX, hash, ";"].concat();
    if !notes.is_empty() {
        // All notes get an equal share of what is left.
        let share = (MAX_COMMENT - out.len()) / notes.len();
        for note in notes {
            out.push(' ');
            out.push_str(truncated(&safe_comment(note), share));
        }
    }
    out.truncate(out.floor_char_boundary(MAX_COMMENT));
    out
}

/// A rule without its comment.
pub fn text(rule: &Rule, table: Table, ip_version: IpVersion) -> String {
    let mut out = String::new();
    let mut protocol = None;
    for condition in &rule.matches {
        space(&mut out);
        if let Match::Protocol(known) = condition {
            protocol = known.number();
        }
        let context = Context {
            table,
            ip: ip(ip_version),
            ip_version,
            protocol,
        };
        written(context.write_match(condition, &mut out));
    }
    if rule.actions.is_empty() {
        if out.is_empty() {
            out.push_str("continue");
        }
        return out;
    }
    space(&mut out);
    out.push_str("counter");
    for action in &rule.actions {
        out.push(' ');
        written(write_action(action, table, ip(ip_version), &mut out));
    }
    out
}

fn ip(ip_version: IpVersion) -> &'static str {
    match ip_version {
        IpVersion::V4 => "ip",
        IpVersion::V6 => "ip6",
    }
}

/// What the text of a condition depends on.
struct Context {
    table: Table,
    ip: &'static str,
    ip_version: IpVersion,
    protocol: Option<u8>,
}

impl Context {
    fn write_match(&self, condition: &Match, out: &mut String) -> fmt::Result {
        let ip = self.ip;
        match condition {
            Match::Protocol(protocol) => {
                out.push_str("meta l4proto ");
                write_protocol(protocol, out)
            }
            Match::NotProtocol(protocol) => {
                out.push_str("meta l4proto != ");
                write_protocol(protocol, out)
            }
            Match::Address(side, address) => write!(out, "{ip} {} {address}", addr(*side)),
            Match::Net(side, net) => write!(out, "{ip} {} {net}", addr(*side)),
            Match::NotNet(side, net) => write!(out, "{ip} {} != {net}", addr(*side)),
            Match::AnyNet(side, nets) => {
                write!(out, "{ip} {} ", addr(*side))?;
                write_nets(nets, out)
            }
            Match::NoNet(side, nets) => {
                write!(out, "{ip} {} != ", addr(*side))?;
                write_nets(nets, out)
            }
            Match::Set(side, set) => write!(out, "{ip} {} @{set}", addr(*side)),
            Match::NotSet(side, set) => write!(out, "{ip} {} != @{set}", addr(*side)),
            Match::PortSet(side, set) => {
                let (addr, port) = (addr(*side), port(*side));
                write!(out, "{ip} {addr} . meta l4proto . th {port} @{set}")
            }
            Match::NotPortSet(side, set) => {
                let (addr, port) = (addr(*side), port(*side));
                write!(out, "{ip} {addr} . meta l4proto . th {port} != @{set}")
            }
            Match::Ports(side, ports) => {
                write!(out, "{} {} {{ ", self.transport(), port(*side))?;
                write_ports(ports, '-', ", ", out)?;
                out.write_str(" }")
            }
            Match::NotPorts(side, ports) => {
                write!(out, "{} {} != {{ ", self.transport(), port(*side))?;
                write_ports(ports, '-', ", ", out)?;
                out.write_str(" }")
            }
            Match::Port(port) => write!(out, "{} dport {port}", self.transport()),
            Match::Icmp(kind, code) => {
                let icmp = self.icmp();
                write!(out, "{icmp} type {kind}")?;
                match code {
                    Some(code) => write!(out, " {icmp} code {code}"),
                    None => Ok(()),
                }
            }
            Match::NotIcmp(kind, None) => write!(out, "{} type != {kind}", self.icmp()),
            // Type and code together: either may differ.
            Match::NotIcmp(kind, Some(code)) => write!(out, "@th,0,16 != {kind:#04x}{code:02x}"),
            Match::Mark(0, mask) => write!(out, "meta mark & {mask:#x} == 0"),
            Match::Mark(value, mask) => write!(out, "meta mark & {mask:#x} == {value:#x}"),
            Match::NotMark(0, mask) => write!(out, "meta mark & {mask:#x} != 0"),
            Match::NotMark(value, mask) => write!(out, "meta mark & {mask:#x} != {value:#x}"),
            Match::In(interface) => write_interface("iifname", interface, out),
            Match::Out(interface) => write_interface("oifname", interface, out),
            Match::InterfaceMap(side, map) => {
                let key = match side {
                    Side::Source => "iifname",
                    Side::Destination => "oifname",
                };
                write!(out, "{key} vmap @{}-{map}", self.table.name())
            }
            Match::Local {
                side,
                negated,
                of_out_interface,
            } => {
                let not = if *negated { "!= " } else { "" };
                let out_interface = if *of_out_interface { " . oif" } else { "" };
                write!(out, "fib {}{out_interface} type {not}local", addr(*side))
            }
            Match::State(state) => {
                let state = match state {
                    State::Established => "related,established",
                    State::Invalid => "invalid",
                };
                write!(out, "ct state {state}")
            }
            Match::Translated(true) => out.write_str("ct status dnat"),
            // The bit alone: other bits of the status say nothing about translation.
            Match::Translated(false) => out.write_str("ct status & dnat != dnat"),
            Match::ReversePathFails => out.write_str("fib saddr . mark . iif oif 0"),
            Match::Limit(rate, burst) => {
                out.push_str("limit rate ");
                write_rate(*rate, out)?;
                if *burst > 0 {
                    write!(out, " burst {burst} packets")?;
                }
                Ok(())
            }
        }
    }

    /// The word for the header that ports are in.
    fn transport(&self) -> &'static str {
        match self.protocol {
            Some(6) => "tcp",
            Some(17) => "udp",
            Some(132) => "sctp",
            Some(136) => "udplite",
            _ => "th",
        }
    }

    fn icmp(&self) -> &'static str {
        match self.ip_version {
            IpVersion::V4 => "icmp",
            IpVersion::V6 => "icmpv6",
        }
    }
}

fn write_nets(nets: &[IpNet], out: &mut String) -> fmt::Result {
    out.push_str("{ ");
    for (index, net) in nets.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write!(out, "{net}")?;
    }
    out.write_str(" }")
}

fn write_interface(key: &str, interface: &Interface, out: &mut String) -> fmt::Result {
    let wildcard = if interface.wildcard { "*" } else { "" };
    write!(out, "{key} {}{wildcard}", interface.name)
}

fn write_action(action: &Action, table: Table, ip: &str, out: &mut String) -> fmt::Result {
    match action {
        Action::Jump(chain) => write!(out, "jump {}", chain_name(table, chain)),
        Action::Goto(chain) => write!(out, "goto {}", chain_name(table, chain)),
        Action::Accept => out.write_str("accept"),
        Action::Drop => out.write_str("drop"),
        Action::Reject => out.write_str("reject"),
        Action::Return => out.write_str("return"),
        Action::SetMark(bits) => write!(out, "meta mark set mark or {bits:#x}"),
        Action::ClearMark(bits) => write!(out, "meta mark set mark & {:#x}", !bits),
        Action::SetMaskedMark(value, mask) => {
            write!(out, "meta mark set mark & {:#x} ^ {value:#x}", !mask)
        }
        Action::Log(prefix) => write!(out, "log prefix \"{prefix}: \" level info"),
        Action::Nflog(group, prefix) => {
            write!(out, "log prefix \"{prefix}\" snaplen 80 group {group}")
        }
        Action::Masquerade(ports) => {
            out.push_str("masquerade");
            if let Some(PortRange { first, last }) = ports {
                write!(out, " to :{first}-{last}")?;
            }
            out.write_str(" fully-random")
        }
        Action::Snat(address, ports) => {
            out.push_str("snat to ");
            let ports = ports.map(|ports| format!("{}-{}", ports.first, ports.last));
            write_with_port(*address, ports, out)?;
            out.write_str(" fully-random")
        }
        Action::Dnat(address, port) => {
            out.push_str("dnat to ");
            write_with_port(*address, *port, out)
        }
        Action::NoTrack => out.write_str("notrack"),
        Action::Dscp(value) => write!(out, "{ip} dscp set {value}"),
        Action::LimitPackets { rate, burst, .. } => {
            write!(
                out,
                "limit rate over {rate}/second burst {burst} packets drop"
            )
        }
        Action::LimitConnections(number) => {
            write!(out, "ct count over {number} reject with tcp reset")
        }
    }
}

fn addr(side: Side) -> &'static str {
    match side {
        Side::Source => "saddr",
        Side::Destination => "daddr",
    }
}

fn port(side: Side) -> &'static str {
    match side {
        Side::Source => "sport",
        Side::Destination => "dport",
    }
}

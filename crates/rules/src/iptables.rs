//! Rules in the language of `iptables-restore`.

use std::fmt::{self, Write as _};

use crate::IpVersion;
use crate::rule::{Action, Chain, Interface, Match, PortRange, Rule, Side, State};
use crate::text::{
    HASH_PREFIX, RuleHasher, safe_comment, space, truncated, write_ports, write_protocol,
    write_rate, write_with_port, written,
};

/// The longest comment that the kernel takes.
const MAX_COMMENT: usize = 256;

/// What stands for the hash in the text that the hash is computed from.
const HASH_PLACE: &str = "HASH";

/// Seeds the hashes of the rules that are appended to one of the kernel's own chains.
const APPENDS: &str = "*appends*";

/// A rule as it goes to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The hash in its comment, by which it is recognised.
    pub hash: String,
    /// All after the chain's name: comments, conditions and action.
    pub body: String,
}

/// The rules of a chain of our own.
pub fn lines(chain: &Chain, ip_version: IpVersion) -> Vec<Line> {
    hashed(&chain.name, &chain.name, &chain.rules, ip_version)
}

/// Rules that are put at the beginning of one of the kernel's chains.
pub fn inserted(chain: &str, rules: &[Rule], ip_version: IpVersion) -> Vec<Line> {
    hashed(chain, chain, rules, ip_version)
}

/// Rules that are put at the end of one of the kernel's chains.
pub fn appended(chain: &str, rules: &[Rule], ip_version: IpVersion) -> Vec<Line> {
    let seed = [chain, APPENDS].concat();
    hashed(chain, &seed, rules, ip_version)
}

fn hashed(chain: &str, seed: &str, rules: &[Rule], ip_version: IpVersion) -> Vec<Line> {
    let mut hasher = RuleHasher::new(seed);
    // For rules that are appended, the name in the text is the seed as well.
    let before = format!("-A {seed} ");
    debug_assert!(seed.starts_with(chain));
    let mut text = String::new();
    let lines = rules.iter().map(|rule| {
        let rest = rest(rule, ip_version);
        text.clear();
        text.push_str(&before);
        text.push_str(HASH_PLACE);
        if !rest.is_empty() {
            text.push(' ');
            text.push_str(&rest);
        }
        let hash = hasher.next(&text);
        let mut body = format!("-m comment --comment \"{HASH_PREFIX}{hash}\"");
        if !rest.is_empty() {
            body.push(' ');
            body.push_str(&rest);
        }
        Line { hash, body }
    });
    lines.collect()
}

/// All of a rule but its hash.
fn rest(rule: &Rule, ip_version: IpVersion) -> String {
    let mut out = String::new();
    for comment in &rule.comments {
        space(&mut out);
        let comment = safe_comment(comment);
        out.push_str("-m comment --comment \"");
        out.push_str(truncated(&comment, MAX_COMMENT));
        out.push('"');
    }
    for condition in &rule.matches {
        space(&mut out);
        written(write_match(condition, ip_version, &mut out));
    }
    for action in &rule.actions {
        space(&mut out);
        written(write_action(action, &mut out));
    }
    out
}

fn write_match(condition: &Match, ip_version: IpVersion, out: &mut String) -> fmt::Result {
    match condition {
        Match::Protocol(protocol) => {
            out.push_str("-p ");
            write_protocol(protocol, out)
        }
        Match::NotProtocol(protocol) => {
            out.push_str("! -p ");
            write_protocol(protocol, out)
        }
        Match::Address(side, address) => write!(out, "--{} {address}", long(*side)),
        Match::Net(side, net) => write!(out, "--{} {net}", long(*side)),
        Match::NotNet(side, net) => write!(out, "! --{} {net}", long(*side)),
        Match::Set(side, set) => write!(out, "-m set --match-set {set} {}", short(*side)),
        Match::NotSet(side, set) => write!(out, "-m set ! --match-set {set} {}", short(*side)),
        Match::PortSet(side, set) => {
            let side = short(*side);
            write!(out, "-m set --match-set {set} {side},{side}")
        }
        Match::NotPortSet(side, set) => {
            let side = short(*side);
            write!(out, "-m set ! --match-set {set} {side},{side}")
        }
        Match::Ports(side, ports) => {
            write!(out, "-m multiport --{}-ports ", long(*side))?;
            write_ports(ports, ':', ",", out)
        }
        Match::NotPorts(side, ports) => {
            write!(out, "-m multiport ! --{}-ports ", long(*side))?;
            write_ports(ports, ':', ",", out)
        }
        Match::Port(port) => write!(out, "--dport {port}"),
        Match::Icmp(kind, code) => write_icmp(*kind, *code, "", ip_version, out),
        Match::NotIcmp(kind, code) => write_icmp(*kind, *code, "! ", ip_version, out),
        Match::Mark(0, mask) => write!(out, "-m mark --mark 0/{mask:#x}"),
        Match::Mark(value, mask) => write!(out, "-m mark --mark {value:#x}/{mask:#x}"),
        Match::NotMark(0, mask) => write!(out, "-m mark ! --mark 0/{mask:#x}"),
        Match::NotMark(value, mask) => write!(out, "-m mark ! --mark {value:#x}/{mask:#x}"),
        Match::In(interface) => {
            out.push_str("--in-interface ");
            write_interface(interface, out);
            Ok(())
        }
        Match::Out(interface) => {
            out.push_str("--out-interface ");
            write_interface(interface, out);
            Ok(())
        }
        Match::Local {
            side,
            negated,
            of_out_interface,
        } => {
            let not = if *negated { "! " } else { "" };
            let limit = if *of_out_interface {
                " --limit-iface-out"
            } else {
                ""
            };
            write!(out, "-m addrtype {not}--{}-type LOCAL{limit}", short(*side))
        }
        Match::State(state) => {
            let state = match state {
                State::Established => "RELATED,ESTABLISHED",
                State::Invalid => "INVALID",
            };
            write!(out, "-m conntrack --ctstate {state}")
        }
        Match::Translated(true) => out.write_str("-m conntrack --ctstate DNAT"),
        Match::Translated(false) => out.write_str("-m conntrack ! --ctstate DNAT"),
        Match::ReversePathFails => out.write_str("-m rpfilter --invert --validmark"),
        Match::Limit(rate, burst) => {
            out.push_str("-m limit --limit ");
            write_rate(*rate, out)?;
            if *burst > 0 {
                write!(out, " --limit-burst {burst}")?;
            }
            Ok(())
        }
        Match::AnyNet(..) | Match::NoNet(..) | Match::InterfaceMap(..) => {
            unreachable!("rendered for nftables only")
        }
    }
}

fn write_icmp(
    kind: u8,
    code: Option<u8>,
    not: &str,
    ip_version: IpVersion,
    out: &mut String,
) -> fmt::Result {
    match ip_version {
        IpVersion::V4 => write!(out, "-m icmp {not}--icmp-type {kind}")?,
        IpVersion::V6 => write!(out, "-m icmp6 {not}--icmpv6-type {kind}")?,
    }
    match code {
        Some(code) => write!(out, "/{code}"),
        None => Ok(()),
    }
}

fn write_interface(interface: &Interface, out: &mut String) {
    out.push_str(&interface.name);
    if interface.wildcard {
        out.push('+');
    }
}

fn write_action(action: &Action, out: &mut String) -> fmt::Result {
    match action {
        Action::Jump(chain) => write!(out, "--jump {chain}"),
        Action::Goto(chain) => write!(out, "--goto {chain}"),
        Action::Accept => out.write_str("--jump ACCEPT"),
        Action::Drop => out.write_str("--jump DROP"),
        Action::Reject => out.write_str("--jump REJECT"),
        Action::Return => out.write_str("--jump RETURN"),
        Action::SetMark(bits) => write!(out, "--jump MARK --set-mark {bits:#x}/{bits:#x}"),
        Action::ClearMark(bits) => write!(out, "--jump MARK --set-mark 0/{bits:#x}"),
        Action::SetMaskedMark(value, mask) => {
            write!(out, "--jump MARK --set-mark {value:#x}/{mask:#x}")
        }
        Action::Log(prefix) => {
            write!(out, "--jump LOG --log-prefix \"{prefix}: \" --log-level 5")
        }
        Action::Nflog(group, prefix) => write!(
            out,
            "--jump NFLOG --nflog-group {group} --nflog-prefix {prefix} --nflog-size 80"
        ),
        Action::Masquerade(ports) => {
            out.push_str("--jump MASQUERADE");
            if let Some(PortRange { first, last }) = ports {
                write!(out, " --to-ports {first}-{last}")?;
            }
            out.write_str(" --random-fully")
        }
        Action::Snat(address, ports) => {
            out.push_str("--jump SNAT --to-source ");
            let ports = ports.map(|ports| format!("{}-{}", ports.first, ports.last));
            write_with_port(*address, ports, out)?;
            out.write_str(" --random-fully")
        }
        Action::Dnat(address, port) => {
            out.push_str("--jump DNAT --to-destination ");
            write_with_port(*address, *port, out)
        }
        Action::NoTrack => out.write_str("--jump NOTRACK"),
        Action::Dscp(value) => write!(out, "--jump DSCP --set-dscp {value}"),
        Action::LimitPackets { rate, burst, mark } => write!(
            out,
            "-m limit --limit {rate}/sec --limit-burst {burst} --jump MARK --set-mark {mark:#x}/{mark:#x}"
        ),
        Action::LimitConnections(number) => write!(
            out,
            "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -m connlimit --connlimit-above {number} \
             --connlimit-mask 0 -j REJECT --reject-with tcp-reset"
        ),
    }
}

fn long(side: Side) -> &'static str {
    match side {
        Side::Source => "source",
        Side::Destination => "destination",
    }
}

fn short(side: Side) -> &'static str {
    match side {
        Side::Source => "src",
        Side::Destination => "dst",
    }
}

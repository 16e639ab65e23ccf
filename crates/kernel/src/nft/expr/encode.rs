//! Expressions as the kernel reads them, with their attributes in the order in which it dumps them.

use super::{
    Checksum, Direction, Expr, FibKey, FibResult, Limit, Log, Nat, NatFlags, Registers, Reject,
    SetReference,
};
use crate::netlink::Writer;
use crate::nft::number::{counter, data, expression, list, lookup};
use crate::nft::value::{Register, Value};
use crate::nft::verdict::Verdict;

/// The register that verdicts go to.
const VERDICT_REGISTER: u32 = 0;

/// Writes a rule's expressions.
///
/// Inline sets get the numbers that count from `first_set`, by which the kernel finds them in the same transaction;
/// without it they get none, as in a dump.
pub(in crate::nft) fn write_all(exprs: &[Expr], first_set: Option<u32>, out: &mut Writer) {
    let mut next_set = first_set;
    for expr in exprs {
        out.nest(list::ELEMENT, |out| write(expr, &mut next_set, out));
    }
}

fn write(expr: &Expr, next_set: &mut Option<u32>, out: &mut Writer) {
    out.string(expression::NAME, name(expr));
    // The kernel gives no data, not even empty data, to an expression that has none.
    if !matches!(expr, Expr::NoTrack) {
        out.nest(expression::DATA, |out| write_data(expr, next_set, out));
    }
}

const fn name(expr: &Expr) -> &'static str {
    match expr {
        Expr::Payload { .. } | Expr::PayloadSet { .. } => "payload",
        Expr::Meta { .. } | Expr::MetaSet { .. } => "meta",
        Expr::Compare { .. } => "cmp",
        Expr::Bitwise { .. } => "bitwise",
        Expr::Range { .. } => "range",
        Expr::Lookup { .. } | Expr::VerdictMap { .. } => "lookup",
        Expr::Immediate { .. } | Expr::Verdict(_) => "immediate",
        Expr::Counter => "counter",
        Expr::Limit(_) => "limit",
        Expr::Ct { .. } | Expr::CtSet { .. } => "ct",
        Expr::CtCount { .. } => "connlimit",
        Expr::Fib { .. } => "fib",
        Expr::Nat(_) => "nat",
        Expr::Masquerade { .. } => "masq",
        Expr::Log(_) => "log",
        Expr::Reject(_) => "reject",
        Expr::NoTrack => "notrack",
    }
}

fn write_data(expr: &Expr, next_set: &mut Option<u32>, out: &mut Writer) {
    match expr {
        Expr::Payload {
            base,
            offset,
            length,
            to,
        } => {
            out.u32(1, to.number());
            out.u32(2, *base as u32);
            out.u32(3, *offset);
            out.u32(4, *length);
        }
        Expr::PayloadSet {
            base,
            offset,
            length,
            from,
            checksum,
        } => {
            let (kind, checksum_offset) = match checksum {
                Checksum::None => (0, 0),
                Checksum::Internet(offset) => (1, *offset),
            };
            out.u32(5, from.number());
            out.u32(2, *base as u32);
            out.u32(3, *offset);
            out.u32(4, *length);
            out.u32(6, kind);
            out.u32(7, checksum_offset);
            out.u32(8, 0);
        }
        Expr::Meta { key, to } => {
            out.u32(2, *key as u32);
            out.u32(1, to.number());
        }
        Expr::MetaSet { key, from } => {
            out.u32(2, *key as u32);
            out.u32(3, from.number());
        }
        Expr::Compare { from, how, value } => {
            out.u32(1, from.number());
            out.u32(2, *how as u32);
            write_value(3, value, out);
        }
        Expr::Bitwise {
            from,
            to,
            mask,
            xor,
        } => write_bitwise(*from, *to, mask, xor, out),
        Expr::Range {
            from,
            inverted,
            first,
            last,
        } => {
            out.u32(1, from.number());
            out.u32(2, u32::from(*inverted));
            write_value(3, first, out);
            write_value(4, last, out);
        }
        Expr::Lookup {
            set,
            from,
            inverted,
        } => write_lookup(set, *from, None, *inverted, next_set, out),
        Expr::VerdictMap { map, from } => {
            write_lookup(map, *from, Some(VERDICT_REGISTER), false, next_set, out);
        }
        Expr::Immediate { to, value } => {
            out.u32(1, to.number());
            write_value(2, value, out);
        }
        Expr::Verdict(verdict) => write_verdict(verdict, out),
        Expr::Counter => {
            out.u64(counter::BYTES, 0);
            out.u64(counter::PACKETS, 0);
        }
        Expr::Limit(limit) => write_limit(limit, out),
        Expr::Ct { key, direction, to } => {
            out.u32(1, to.number());
            out.u32(2, *key as u32);
            write_direction(*direction, out);
        }
        Expr::CtSet { key, from } => {
            out.u32(4, from.number());
            out.u32(2, *key as u32);
        }
        Expr::CtCount { count, over } => {
            out.u32(1, *count);
            if *over {
                out.u32(2, 1);
            }
        }
        Expr::Fib { with, result, to } => write_fib(with, *result, *to, out),
        Expr::Nat(nat) => write_nat(nat, out),
        Expr::Masquerade { flags, ports } => write_masquerade(*flags, *ports, out),
        Expr::Log(log) => write_log(log, out),
        Expr::Reject(reject) => write_reject(*reject, out),
        Expr::NoTrack => {}
    }
}

fn write_value(kind: u16, value: &Value, out: &mut Writer) {
    out.nest(kind, |out| out.bytes(data::VALUE, value.as_bytes()));
}

fn write_verdict(verdict: &Verdict, out: &mut Writer) {
    out.u32(1, VERDICT_REGISTER);
    verdict.write(2, out);
}

fn write_bitwise(from: Register, to: Register, mask: &Value, xor: &Value, out: &mut Writer) {
    const MASK_AND_XOR: u32 = 0;
    let length = u32::try_from(mask.as_bytes().len()).unwrap_or(u32::MAX);
    out.u32(1, from.number());
    out.u32(2, to.number());
    out.u32(3, length);
    out.u32(6, MASK_AND_XOR);
    write_value(4, mask, out);
    write_value(5, xor, out);
}

fn write_lookup(
    set: &SetReference,
    from: Register,
    to: Option<u32>,
    inverted: bool,
    next_set: &mut Option<u32>,
    out: &mut Writer,
) {
    let name = match set {
        SetReference::Named(name) => name,
        SetReference::Inline(set) => set.name(),
    };
    out.string(lookup::SET, name);
    out.u32(lookup::SOURCE, from.number());
    if let Some(to) = to {
        out.u32(lookup::DESTINATION, to);
    }
    out.u32(lookup::FLAGS, u32::from(inverted));
    if let (SetReference::Inline(_), Some(id)) = (set, next_set) {
        out.u32(lookup::SET_ID, *id);
        *id += 1;
    }
}

fn write_limit(limit: &Limit, out: &mut Writer) {
    out.u64(1, limit.rate);
    out.u64(2, limit.seconds);
    out.u32(3, limit.burst);
    out.u32(4, limit.kind as u32);
    out.u32(5, u32::from(limit.over));
}

fn write_direction(direction: Option<Direction>, out: &mut Writer) {
    if let Some(direction) = direction {
        out.bytes(3, &[direction as u8]);
    }
}

fn write_fib(with: &[FibKey], result: FibResult, to: Register, out: &mut Writer) {
    const PRESENT: u32 = 32;
    let (result, present) = match result {
        FibResult::Interface => (1, 0),
        FibResult::InterfaceName => (2, 0),
        FibResult::AddressType => (3, 0),
        FibResult::Present => (1, PRESENT),
    };
    let flags = with.iter().fold(present, |bits, key| bits | *key as u32);
    out.u32(1, to.number());
    out.u32(2, result);
    out.u32(3, flags);
}

fn write_nat(nat: &Nat, out: &mut Writer) {
    let mut flags = nat.flags;
    out.u32(1, nat.kind as u32);
    out.u32(2, u32::from(nat.family.number()));
    if let Some(addresses) = nat.addresses {
        out.u32(3, addresses.first.number());
        out.u32(4, addresses.last.number());
        flags = flags | NatFlags::ADDRESSES;
    }
    if let Some(ports) = nat.ports {
        out.u32(5, ports.first.number());
        out.u32(6, ports.last.number());
        flags = flags | NatFlags::PORTS;
    }
    if flags != NatFlags::NONE {
        out.u32(7, flags.bits());
    }
}

fn write_masquerade(flags: NatFlags, ports: Option<Registers>, out: &mut Writer) {
    let flags = if ports.is_some() {
        flags | NatFlags::PORTS
    } else {
        flags
    };
    if flags != NatFlags::NONE {
        out.u32(1, flags.bits());
    }
    if let Some(ports) = ports {
        out.u32(2, ports.first.number());
        out.u32(3, ports.last.number());
    }
}

fn write_log(log: &Log, out: &mut Writer) {
    match log {
        Log::Kernel { prefix, level } => {
            write_log_prefix(prefix, out);
            out.u32(5, u32::from(*level));
        }
        Log::Group {
            group,
            prefix,
            length,
            threshold,
        } => {
            write_log_prefix(prefix, out);
            out.u16(1, *group);
            if let Some(length) = length {
                out.u32(3, *length);
            }
            if *threshold != 0 {
                out.u16(4, *threshold);
            }
        }
    }
}

/// The longest prefix that the kernel takes, without the zero byte that ends it.
const LOG_PREFIX: usize = 127;

fn write_log_prefix(prefix: &str, out: &mut Writer) {
    if !prefix.is_empty() {
        out.string(2, &prefix[..prefix.floor_char_boundary(LOG_PREFIX)]);
    }
}

fn write_reject(reject: Reject, out: &mut Writer) {
    match reject {
        Reject::Icmp(code) => {
            out.u32(1, 0);
            out.bytes(2, &[code]);
        }
        Reject::TcpReset => out.u32(1, 1),
        Reject::Inet(code) => {
            out.u32(1, 2);
            out.bytes(2, &[code as u8]);
        }
    }
}

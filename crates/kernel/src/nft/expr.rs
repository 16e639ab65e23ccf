//! Expressions: the steps of a rule. Each loads something into a register, compares a register, or acts.

mod encode;
mod nat;

use std::sync::Arc;

pub use nat::{Nat, NatFlags, NatKind, Registers};

use super::set::InlineSet;
use super::value::{Register, Value};
use super::verdict::Verdict;

pub(super) use encode::write_all;

/// One step of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    /// Loads bytes of the packet.
    Payload {
        /// Where the offset counts from.
        base: Base,
        /// The first byte.
        offset: u32,
        /// How many.
        length: u32,
        /// Where they go.
        to: Register,
    },
    /// Overwrites bytes of the packet.
    PayloadSet {
        /// Where the offset counts from.
        base: Base,
        /// The first byte.
        offset: u32,
        /// How many.
        length: u32,
        /// Where they are.
        from: Register,
        /// The checksum that has to follow.
        checksum: Checksum,
    },
    /// Loads something that is known of the packet.
    Meta {
        /// What.
        key: MetaKey,
        /// Where it goes.
        to: Register,
    },
    /// Changes something that is known of the packet; the kernel takes only some keys, such as the mark.
    MetaSet {
        /// What.
        key: MetaKey,
        /// Where it is.
        from: Register,
    },
    /// Goes on if the register compares so with the value.
    Compare {
        from: Register,
        how: Comparison,
        /// With what.
        value: Value,
    },
    /// `to = (from & mask) ^ xor`.
    Bitwise {
        /// What is changed.
        from: Register,
        /// Where it goes.
        to: Register,
        /// What is kept.
        mask: Value,
        /// What is flipped afterwards; as long as the mask.
        xor: Value,
    },
    /// Goes on if the register is in the range, both ends included.
    Range {
        from: Register,
        /// Goes on if it is not.
        inverted: bool,
        first: Value,
        last: Value,
    },
    /// Goes on if the register is in the set.
    Lookup {
        set: SetReference,
        from: Register,
        /// Goes on if it is not.
        inverted: bool,
    },
    /// Does what the map says of the register; goes on if it says nothing.
    VerdictMap { map: SetReference, from: Register },
    /// Puts a value into a register.
    Immediate { to: Register, value: Value },
    /// Decides.
    Verdict(Verdict),
    /// Counts packets and bytes.
    Counter,
    /// Goes on while packets are no more than this, or only if they are.
    Limit(Limit),
    /// Loads something that is known of the connection.
    Ct {
        /// What.
        key: CtKey,
        /// Of which direction: needed for addresses and ports, possible for the zone, and not dumped of others.
        direction: Option<Direction>,
        /// Where it goes.
        to: Register,
    },
    /// Changes something that is known of the connection; the kernel takes only some keys, such as the mark.
    CtSet {
        /// What.
        key: CtKey,
        /// Where it is.
        from: Register,
    },
    /// Goes on while the connections that came here are no more than this, or only if they are.
    CtCount {
        /// How many.
        count: u32,
        /// Goes on if they are more.
        over: bool,
    },
    /// Asks the routing table.
    Fib {
        /// What it is asked with.
        with: &'static [FibKey],
        /// What is wanted of the answer.
        result: FibResult,
        /// Where it goes.
        to: Register,
    },
    /// Changes the connection's source or destination.
    Nat(Nat),
    /// Changes the connection's source to an address of the interface that it leaves by.
    Masquerade {
        /// How ports are chosen.
        flags: NatFlags,
        /// The first and last port.
        ports: Option<Registers>,
    },
    /// Tells of the packet.
    Log(Log),
    /// Drops the packet, and tells its sender.
    Reject(Reject),
    /// Leaves the packet out of connection tracking.
    NoTrack,
}

/// A set that is looked into.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SetReference {
    /// A set of the table, by its name.
    Named(Arc<str>),
    /// A set that belongs to this rule alone, and comes and goes with it.
    Inline(Arc<InlineSet>),
}

/// The part of a packet that an offset counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Base {
    /// The link layer's header.
    Link = 0,
    /// The network header.
    Network = 1,
    /// The transport header.
    Transport = 2,
}

/// The checksum that follows a change of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Checksum {
    None,
    /// An internet checksum at this offset from the same base.
    Internet(u32),
}

/// What is known of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetaKey {
    /// Its mark: four bytes in the machine's order.
    Mark = 3,
    /// The number of the interface that it arrived by.
    InputInterface = 4,
    /// The number of the interface that it leaves by.
    OutputInterface = 5,
    /// The name of the interface that it arrived by: 16 bytes.
    InputInterfaceName = 6,
    /// The name of the interface that it leaves by: 16 bytes.
    OutputInterfaceName = 7,
    /// Its network protocol as netfilter numbers it: one byte.
    NetworkProtocol = 15,
    /// Its transport protocol: one byte.
    TransportProtocol = 16,
}

/// How a register is compared, byte by byte from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// It is equal.
    Equal = 0,
    /// It differs.
    NotEqual = 1,
    /// It is less.
    Less = 2,
    /// It is less or equal.
    LessOrEqual = 3,
    /// It is greater.
    Greater = 4,
    /// It is greater or equal.
    GreaterOrEqual = 5,
}

/// A limit of packets or bytes over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    /// How many in that time.
    pub rate: u64,
    /// The time: 1, 60, 3600, 86400 or 604800 seconds for people to read it.
    pub seconds: u64,
    /// How many more at once; the kernel takes 5 packets for 0.
    pub burst: u32,
    /// What is counted.
    pub kind: LimitKind,
    /// Goes on if they are more, not while they are no more.
    pub over: bool,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    Packets = 0,
    Bytes = 1,
}

/// What is known of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CtKey {
    /// Its state, one bit each: four bytes in the machine's order.
    State = 0,
    /// The direction of this packet: one byte.
    Direction = 1,
    /// Its status, one bit each: four bytes in the machine's order.
    Status = 2,
    /// Its mark: four bytes in the machine's order.
    Mark = 3,
    /// Its network protocol: one byte.
    NetworkProtocol = 7,
    /// Its transport protocol: one byte.
    TransportProtocol = 10,
    /// The source port: two bytes.
    SourcePort = 11,
    /// The destination port: two bytes.
    DestinationPort = 12,
    /// The zone: two bytes in the machine's order.
    Zone = 17,
    /// The IPv4 source.
    SourceIp = 19,
    /// The IPv4 destination.
    DestinationIp = 20,
    /// The IPv6 source.
    SourceIp6 = 21,
    /// The IPv6 destination.
    DestinationIp6 = 22,
}

/// A direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// That of its first packet.
    Original = 0,
    /// The other.
    Reply = 1,
}

/// What the routing table is asked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FibKey {
    /// The source address.
    Source = 1,
    /// The destination address.
    Destination = 2,
    Mark = 4,
    /// The interface that the packet arrived by.
    InputInterface = 8,
    /// The interface that the packet leaves by.
    OutputInterface = 16,
}

/// What is wanted of the routing table's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FibResult {
    /// The interface's number: four bytes in the machine's order, 0 for none.
    Interface,
    InterfaceName,
    /// The kind of address, as in `RTN_LOCAL`: four bytes in the machine's order.
    AddressType,
    /// Whether there is a route: four bytes in the machine's order, 0 or 1.
    Present,
}

/// Where a packet is told of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Log {
    /// To the kernel's log.
    Kernel {
        /// What the line begins with; cut after 127 bytes, the most that the kernel takes.
        prefix: Arc<str>,
        /// From 0, emergency, to 7, debug.
        level: u8,
    },
    /// To the programs that listen to a group.
    Group {
        group: u16,
        /// What comes with the packet; cut after 127 bytes, the most that the kernel takes.
        prefix: Arc<str>,
        /// How many bytes of the packet come with it; all of them if none.
        length: Option<u32>,
        /// How many packets are sent at once; the kernel's own number for 0.
        threshold: u16,
    },
}

/// What the sender of a rejected packet is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reject {
    /// A reset of the TCP connection.
    TcpReset,
    /// That it cannot be reached, with a code of ICMP for the table's family.
    Icmp(u8),
    /// That it cannot be reached, in tables of both families.
    Inet(IcmpUnreachable),
}

/// Why something cannot be reached, for both families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IcmpUnreachable {
    NoRoute = 0,
    /// No such port.
    Port = 1,
    /// No such host.
    Host = 2,
    /// Not allowed.
    Prohibited = 3,
}

//! Chains and rules as values, in the terms that both data planes share.
//!
//! [`iptables`](crate::iptables) and [`nftables`](crate::nftables) write them as text; the nftables data plane also
//! turns them into netlink messages.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::scalar::Protocol;
pub use tortie_config::PortRange;

/// The tables of iptables. In nftables they are layers of one table: prefixes of chain names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Before connection tracking.
    Raw,
    /// Before and after routing.
    Mangle,
    /// Address translation.
    Nat,
    /// Acceptance.
    Filter,
}

/// Rules that are tried in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The table that it is in.
    pub table: Table,
    /// Its name, without the layer that nftables puts in front.
    pub name: Arc<str>,
    pub rules: Vec<Rule>,
}

/// Conditions, and what happens if all of them hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The conditions, in the order in which they are written.
    pub matches: Vec<Match>,
    /// What happens, in order. iptables allows one action; only the last may end the evaluation.
    pub actions: Vec<Action>,
    /// Notes for people.
    pub comments: Vec<String>,
}

/// An end of the packet's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Where it comes from.
    Source,
    /// Where it goes to.
    Destination,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// The protocol above IP.
    Protocol(Protocol),
    /// Not this protocol.
    NotProtocol(Protocol),
    /// A single address.
    Address(Side, IpAddr),
    /// In a network.
    Net(Side, IpNet),
    /// Not in a network.
    NotNet(Side, IpNet),
    /// In one of these networks; in nftables only.
    AnyNet(Side, Arc<[IpNet]>),
    /// In none of these networks; in nftables only.
    NoNet(Side, Arc<[IpNet]>),
    /// In a set, by its name in the kernel.
    Set(Side, Arc<str>),
    NotSet(Side, Arc<str>),
    /// Address, protocol and port in a set.
    PortSet(Side, Arc<str>),
    /// Address, protocol and port not in a set.
    NotPortSet(Side, Arc<str>),
    /// One of these ports.
    Ports(Side, Arc<[PortRange]>),
    /// None of these ports.
    NotPorts(Side, Arc<[PortRange]>),
    /// This destination port, in the short form.
    Port(u16),
    /// This ICMP message, of the packet's IP version.
    Icmp(u8, Option<u8>),
    /// Not this ICMP message.
    NotIcmp(u8, Option<u8>),
    /// The bits of the mask have these values in the packet's mark.
    Mark(u32, u32),
    /// They have not.
    NotMark(u32, u32),
    /// The interface that the packet came in by.
    In(Interface),
    /// The interface that the packet goes out by.
    Out(Interface),
    /// The verdict for the interface in a map of that name; in nftables only.
    InterfaceMap(Side, Arc<str>),
    /// The address is one of this host's; also of the outgoing interface, if asked.
    Local {
        /// Which address.
        side: Side,
        /// It is not.
        negated: bool,
        /// Look at the addresses of the outgoing interface alone.
        of_out_interface: bool,
    },
    /// What connection tracking says.
    State(State),
    /// Whether the destination of the connection was translated.
    Translated(bool),
    /// A reply to the source would not go out by the interface that the packet came in by.
    ReversePathFails,
    /// At most this often.
    Limit(Rate, u32),
}

/// A name or, with the wildcard, its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Interface {
    /// The name or its beginning.
    pub name: Arc<str>,
    /// More may follow.
    pub wildcard: bool,
}

/// A state of connection tracking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Of a connection that was allowed, or belonging to one.
    Established,
    /// Of no connection, and none can start with it.
    Invalid,
}

/// How often, per what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// How often.
    pub count: u32,
    /// Per what.
    pub unit: RateUnit,
}

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateUnit {
    Second,
    Minute,
    Hour,
    Day,
}

/// What happens to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Goes on in another chain, and comes back at its end.
    Jump(Arc<str>),
    /// Goes on in another chain, and returns from this one at its end.
    Goto(Arc<str>),
    /// Is let through by this table.
    Accept,
    /// Disappears.
    Drop,
    /// Is refused, with an answer to the sender.
    Reject,
    /// Goes back to where this chain was entered.
    Return,
    /// These bits of the mark are set.
    SetMark(u32),
    /// These bits of the mark are cleared.
    ClearMark(u32),
    /// The bits of the mask get these values.
    SetMaskedMark(u32, u32),
    /// Is noted in the kernel's log.
    Log(String),
    /// Is handed to the collector of flows: group and prefix.
    Nflog(u16, String),
    /// Gets the address of the outgoing interface; and a port of this range.
    Masquerade(Option<PortRange>),
    /// Gets this source; and a port of this range.
    Snat(IpAddr, Option<PortRange>),
    /// Gets this destination; and this port.
    Dnat(IpAddr, Option<u16>),
    /// Is not tracked.
    NoTrack,
    /// Gets this class of service.
    Dscp(u8),
    /// iptables: the bits of the mark are set while packets come no faster than this. nftables: is dropped if they
    /// come faster.
    LimitPackets {
        /// Packets in a second.
        rate: u32,
        /// Packets at once.
        burst: u32,
        /// The bits.
        mark: u32,
    },
    /// Is refused if it would start one connection more than this.
    LimitConnections(u32),
}

// === impl Table ===

impl Table {
    /// All tables, in the order in which a packet comes through them.
    pub const ALL: [Self; 4] = [Self::Raw, Self::Mangle, Self::Nat, Self::Filter];

    /// The name in iptables, and the prefix in nftables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Mangle => "mangle",
            Self::Nat => "nat",
            Self::Filter => "filter",
        }
    }
}

// === impl Chain ===

impl Chain {
    /// A chain.
    pub fn new(table: Table, name: impl Into<Arc<str>>, rules: Vec<Rule>) -> Self {
        Self {
            table,
            name: name.into(),
            rules,
        }
    }

    /// The chains that its rules go to, once for each rule.
    pub fn targets(&self) -> impl Iterator<Item = &Arc<str>> {
        let actions = self.rules.iter().flat_map(|rule| &rule.actions);
        actions.filter_map(|action| match action {
            Action::Jump(target) | Action::Goto(target) => Some(target),
            _ => None,
        })
    }
}

// === impl Rule ===

impl Rule {
    /// A rule without a condition.
    pub fn always(action: Action) -> Self {
        Self::when([], action)
    }

    /// A rule with conditions.
    pub fn when(matches: impl IntoIterator<Item = Match>, action: Action) -> Self {
        Self {
            matches: matches.into_iter().collect(),
            actions: vec![action],
            comments: Vec::new(),
        }
    }

    /// With a note.
    #[must_use]
    pub fn note(mut self, comment: impl Into<String>) -> Self {
        self.comments.push(comment.into());
        self
    }
}

// === impl Side ===

impl Side {
    /// Both, source first.
    pub const BOTH: [Self; 2] = [Self::Source, Self::Destination];
}

// === impl Interface ===

impl Interface {
    /// All interfaces whose names begin so.
    pub fn starting_with(prefix: &str) -> Self {
        Self {
            name: prefix.into(),
            wildcard: true,
        }
    }

    /// The interface of this name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            wildcard: false,
        }
    }

    /// A name as iptables writes it, where a final `+` stands for more.
    pub fn from_pattern(pattern: &str) -> Self {
        match pattern.strip_suffix('+') {
            Some(prefix) => Self::starting_with(prefix),
            None => Self::named(pattern),
        }
    }
}

// === impl RateUnit ===

impl RateUnit {
    /// The word for it in both languages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

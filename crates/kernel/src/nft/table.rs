//! Tables and chains.

use std::fmt;
use std::sync::Arc;

/// The packets that a table sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
    Arp,
    /// IPv4 and IPv6.
    Inet,
}

/// A table's family and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Table {
    /// The packets that it sees.
    pub family: Family,
    pub name: Arc<str>,
}

/// A chain that the kernel enters by itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseChain {
    pub name: Arc<str>,
    /// What its rules can do.
    pub kind: ChainKind,
    /// When it is entered.
    pub hook: Hook,
    /// Its place among the chains of the hook: the lower, the earlier.
    pub priority: i32,
    /// What becomes of packets that reach its end.
    pub policy: Policy,
}

/// What a base chain's rules can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChainKind {
    /// Accept and drop.
    Filter,
    /// Change addresses; sees the first packet of a connection alone.
    Nat,
    /// As a filter, in the output hook; a packet whose mark it changes is routed anew.
    Route,
}

/// When a base chain is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hook {
    /// On arrival, before routing.
    Prerouting,
    /// On the way to a local socket.
    Input,
    /// On the way from one interface to another.
    Forward,
    /// On the way from a local socket.
    Output,
    /// On leaving.
    Postrouting,
}

/// What becomes of packets that reach the end of a base chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// They pass.
    Accept,
    /// They are lost.
    Drop,
}

impl Family {
    const ALL: [Self; 4] = [Self::Ip, Self::Ip6, Self::Arp, Self::Inet];

    /// The kernel's number.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Inet => 1,
            Self::Ip => 2,
            Self::Arp => 3,
            Self::Ip6 => 10,
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.number() == number)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
            Self::Arp => "arp",
            Self::Inet => "inet",
        })
    }
}

impl Table {
    /// The table of that family and name.
    pub fn new(family: Family, name: &str) -> Self {
        Self {
            family,
            name: Arc::from(name),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family, self.name)
    }
}

impl ChainKind {
    const ALL: [Self; 3] = [Self::Filter, Self::Nat, Self::Route];

    /// The kernel's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Nat => "nat",
            Self::Route => "route",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }
}

impl Hook {
    /// The hooks of IP, in the order of their numbers.
    const OF_IP: [Self; 5] = [
        Self::Prerouting,
        Self::Input,
        Self::Forward,
        Self::Output,
        Self::Postrouting,
    ];
    const OF_ARP: [Self; 2] = [Self::Input, Self::Output];

    const fn of(family: Family) -> &'static [Self] {
        match family {
            Family::Arp => &Self::OF_ARP,
            Family::Ip | Family::Ip6 | Family::Inet => &Self::OF_IP,
        }
    }

    /// The kernel's number; for a hook that the family lacks, one that the kernel refuses.
    pub(super) fn number(self, family: Family) -> u32 {
        (0..)
            .zip(Self::of(family))
            .find(|(_, hook)| **hook == self)
            .map_or(u32::MAX, |(number, _)| number)
    }

    pub(super) fn from_number(number: u32, family: Family) -> Option<Self> {
        Self::of(family).get(usize::try_from(number).ok()?).copied()
    }
}

impl Policy {
    /// The kernel's number.
    pub(super) const fn number(self) -> u32 {
        match self {
            Self::Drop => 0,
            Self::Accept => 1,
        }
    }
}

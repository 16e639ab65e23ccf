//! One route.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// The table that the kernel asks for all packets.
pub const MAIN_TABLE: u32 = libc::RT_TABLE_MAIN as u32;

/// The metric of routes that are there until somebody else has made others. BIRD tells peers of routes with a preference of 2147483647
/// less their metric, of which this leaves the least.
pub const LAST_METRIC: u32 = 2_147_483_646;

/// The metric of IPv6 routes that are added with none.
const DEFAULT_IPV6_METRIC: u32 = 1024;

/// The loopback interface, which has this index in every network namespace.
const LOOPBACK: u32 = 1;

/// One entry of a routing table. What its prefix, service type and metric say is its key there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// The table's number.
    pub table: u32,
    pub destination: IpNet,
    /// The service type that packets must have, 0 for any.
    pub service_type: u8,
    /// Of several routes to the same destinations the one with the least metric is used.
    pub metric: u32,
    /// What becomes of packets.
    pub kind: Kind,
    /// Who made it.
    pub protocol: Protocol,
    /// How far the destinations are. IPv6 knows no scopes.
    pub scope: Scope,
    /// The index of the interface that packets leave through.
    pub device: Option<u32>,
    /// The next machine.
    pub gateway: Option<IpAddr>,
    /// The gateway is reached directly, though no address or route of the interface says so.
    pub on_link: bool,
    /// The source address for packets that this machine sends.
    pub source: Option<IpAddr>,
    /// The largest packet, if it is not the interface's.
    pub mtu: Option<u32>,
    /// There are several next hops, and none of them is told here. Such routes are read but cannot be added.
    pub is_multipath: bool,
}

/// What becomes of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// They are sent on.
    Unicast,
    /// They are for this machine.
    Local,
    /// They are for all on the link.
    Broadcast,
    /// They are dropped without a word.
    Blackhole,
    /// They are dropped, and the sender told that the destination cannot be reached.
    Unreachable,
    /// They are dropped, and the sender told that it is forbidden.
    Prohibit,
    /// The search goes on in another table.
    Throw,
    /// Another kind, by the kernel's number.
    Other(u8),
}

/// Who made a route, by the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Protocol(pub u8);

/// How far destinations are, by the kernel's number: the nearer the larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope(pub u8);

impl Protocol {
    /// The kernel itself.
    pub const KERNEL: Self = Self(libc::RTPROT_KERNEL);
    /// Whoever set the machine up; also Calico's routes to local workloads.
    pub const BOOT: Self = Self(libc::RTPROT_BOOT);
    /// The administrator.
    pub const STATIC: Self = Self(libc::RTPROT_STATIC);
    pub const BIRD: Self = Self(12);
    /// Calico's routes to other nodes, and its blackholes.
    pub const CALICO: Self = Self(80);
}

impl Scope {
    /// Anywhere.
    pub const UNIVERSE: Self = Self(libc::RT_SCOPE_UNIVERSE);
    /// On the link.
    pub const LINK: Self = Self(libc::RT_SCOPE_LINK);
    /// On this machine.
    pub const HOST: Self = Self(libc::RT_SCOPE_HOST);
}

impl Kind {
    pub(super) fn from_number(number: u8) -> Self {
        match number {
            libc::RTN_UNICAST => Self::Unicast,
            libc::RTN_LOCAL => Self::Local,
            libc::RTN_BROADCAST => Self::Broadcast,
            libc::RTN_BLACKHOLE => Self::Blackhole,
            libc::RTN_UNREACHABLE => Self::Unreachable,
            libc::RTN_PROHIBIT => Self::Prohibit,
            libc::RTN_THROW => Self::Throw,
            other => Self::Other(other),
        }
    }

    pub(super) fn number(self) -> u8 {
        match self {
            Self::Unicast => libc::RTN_UNICAST,
            Self::Local => libc::RTN_LOCAL,
            Self::Broadcast => libc::RTN_BROADCAST,
            Self::Blackhole => libc::RTN_BLACKHOLE,
            Self::Unreachable => libc::RTN_UNREACHABLE,
            Self::Prohibit => libc::RTN_PROHIBIT,
            Self::Throw => libc::RTN_THROW,
            Self::Other(number) => number,
        }
    }

    /// Whether packets are dropped or looked up elsewhere, so that no interface belongs to the route.
    fn ends_here(self) -> bool {
        matches!(
            self,
            Self::Blackhole | Self::Unreachable | Self::Prohibit | Self::Throw
        )
    }
}

impl Route {
    /// A route of the main table to these destinations that says nothing else yet.
    pub fn to(destination: IpNet) -> Self {
        Self {
            table: MAIN_TABLE,
            destination: destination.trunc(),
            service_type: 0,
            metric: 0,
            kind: Kind::Unicast,
            protocol: Protocol::BOOT,
            scope: Scope::UNIVERSE,
            device: None,
            gateway: None,
            on_link: false,
            source: None,
            mtu: None,
            is_multipath: false,
        }
    }

    /// What the kernel tells of this route once it has it: for IPv6 there is no scope, but always a metric, and
    /// what goes nowhere goes through the loopback interface.
    #[must_use]
    pub fn as_listed(&self) -> Self {
        let mut listed = self.clone();
        listed.destination = self.destination.trunc();
        if matches!(self.destination, IpNet::V6(_)) {
            listed.scope = Scope::UNIVERSE;
            if self.metric == 0 {
                listed.metric = DEFAULT_IPV6_METRIC;
            }
            if self.kind.ends_here() {
                listed.device = Some(LOOPBACK);
            }
        }
        listed
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind != Kind::Unicast {
            write!(f, "{:?} ", self.kind)?;
        }
        write!(f, "{}", self.destination)?;
        if let Some(gateway) = self.gateway {
            write!(f, " via {gateway}")?;
        }
        if let Some(device) = self.device {
            write!(f, " through interface {device}")?;
        }
        if self.metric != 0 {
            write!(f, " with metric {}", self.metric)?;
        }
        if self.table != MAIN_TABLE {
            write!(f, " in table {}", self.table)?;
        }
        Ok(())
    }
}

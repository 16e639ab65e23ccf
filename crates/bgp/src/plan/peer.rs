//! A session with a neighbour.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use super::Origin;
use crate::text::Password;

/// A session with a neighbour.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    /// What BIRD calls it: its kind, address and port.
    pub name: String,
    /// Why there is one.
    pub kind: PeerKind,
    /// The neighbour's.
    pub address: IpAddr,
    /// The neighbour's, if it is not left to BIRD.
    pub port: Option<u16>,
    /// The neighbour's.
    pub as_number: u32,
    /// What the neighbour is told instead of the node's own AS number.
    pub local_as: Option<u32>,
    /// Where the node's side starts.
    pub source: Option<IpAddr>,
    /// Whether the neighbour opens the session, and the node waits.
    pub is_passive: bool,
    /// How many hops away the neighbour is at most; packets from farther away are dropped.
    pub ttl_security: Option<u8>,
    /// Seconds for which the neighbour keeps routes while the node restarts.
    pub restart_time: Option<u16>,
    /// Seconds between signs of life.
    pub keepalive_time: Option<u16>,
    /// The cluster for which routes are reflected to the neighbour.
    pub reflects: Option<Ipv4Addr>,
    /// What is told as next hop.
    pub next_hop: NextHop,
    /// How often the node's own AS number may be in the path of what is learnt.
    pub allowed_local_as: Option<u32>,
    /// What both sides sign with.
    pub password: Option<Password>,
    /// Which of the plan's filters decide, in this order.
    pub filters: Vec<usize>,
    /// Where it comes from.
    pub origin: Origin,
}

/// Why there is a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerKind {
    /// All nodes have one with all others.
    Mesh,
    /// All nodes have this one.
    Global,
    /// This node has it, and perhaps others.
    Node,
    /// The neighbour is a workload of this node.
    LocalWorkload,
}

/// What is told as next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHop {
    /// As RFC 4271 says.
    Auto,
    /// The node itself.
    Own,
    /// That of the route.
    Keep,
}

impl PeerKind {
    /// What BIRD would call such a session.
    pub(super) fn name(self, address: IpAddr, port: Option<u16>) -> String {
        let address = address.to_string().replace(['.', ':'], "_");
        let port = port.map_or_else(String::new, |port| format!("_port_{port}"));
        let kind = match self {
            Self::Mesh => "Mesh",
            Self::Global => "Global",
            Self::Node => "Node",
            Self::LocalWorkload => "Local_Workload",
        };
        format!("{kind}_{address}{port}")
    }
}

impl fmt::Display for PeerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mesh => "node-to-node mesh",
            Self::Global => "global",
            Self::Node => "node specific",
            Self::LocalWorkload => "local workload",
        })
    }
}

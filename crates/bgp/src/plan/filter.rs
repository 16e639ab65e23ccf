//! Filters: which routes peers are told, and which are taken from them.

mod read;

use std::sync::Arc;

use ipnet::IpNet;

use super::{Community, Origin};
use crate::PerFamily;
use crate::text::InterfacePattern;

pub(super) use read::all;

/// A filter, whose rules are asked in order until one decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// That of the `BGPFilter`.
    pub name: Arc<str>,
    /// Rules for routes of each IP version.
    pub rules: PerFamily<Directions>,
}

/// Rules for both ways.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directions {
    /// For what a peer tells.
    pub import: Vec<FilterRule>,
    /// For what a peer is told.
    pub export: Vec<FilterRule>,
}

/// A rule, all of whose conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterRule {
    /// Of sessions with which peers.
    pub peers: Option<PeerType>,
    /// In the order in which they are written.
    pub conditions: Vec<Condition>,
    /// What is changed before a route is accepted.
    pub operations: Vec<Operation>,
    /// What becomes of the route.
    pub action: Action,
    /// Where it comes from.
    pub origin: Origin,
}

/// A kind of session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerType {
    /// With the same AS number on both sides.
    Internal,
    /// With another.
    External,
}

/// What becomes of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Accept,
    Reject,
}

/// What must hold of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// How its network compares.
    Net {
        operator: NetMatch,
        network: IpNet,
        /// The prefix lengths that count, if not all.
        lengths: Option<(u8, u8)>,
    },
    /// It was learnt from a peer.
    FromPeers,
    /// It leads through this interface.
    Interface(InterfacePattern),
    /// It has this community.
    Community(Community),
    /// Its path begins with these.
    AsPath(Vec<u32>),
    /// It has exactly this metric.
    Priority(u32),
}

/// How a network compares with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetMatch {
    Equal,
    NotEqual,
    In,
    NotIn,
}

/// What is changed of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    AddCommunity(Community),
    /// The first of them is leftmost in the path afterwards.
    Prepend(Vec<u32>),
    SetPriority(u32),
}

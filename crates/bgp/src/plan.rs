//! What a node's BIRD is to do, as plain data: with whom it speaks, what it tells them, and what it programs.
//!
//! Both renderers write the same plan, and whatever explains a route reads it too. So each entry has the [`Origin`] that it comes
//! from.

mod community;
mod filter;
mod peer;
mod routes;
mod service;
mod sessions;
mod settings;

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::IpNet;
use serde::Serialize;

pub use community::{Community, CommunityRule};
pub use filter::{
    Action, Condition, Directions, Filter, FilterRule, NetMatch, Operation, PeerType,
};
pub use peer::{NextHop, Peer, PeerKind};
pub use routes::{Blackhole, Block, Pool, Programmer, Via};
pub(crate) use service::routes as service_routes;
pub(crate) use settings::DEFAULT_AS;
pub use settings::{LogLevel, Programs};

pub use crate::inputs::{Encapsulation, Tunnelled};

use crate::text::InterfacePattern;
use crate::{Family, Inputs, PerFamily, Problem};

/// The largest value of integers in BIRD 1.6. A route's priority is told to peers as this less the priority.
pub const MAX_PREFERENCE: u32 = 2_147_483_647;

/// The preference of routes that are to win over those of the node's own workloads.
pub const OVERRIDE_PREFERENCE: u32 = 200;

/// What a node's BIRD is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The node whose plan it is.
    pub node: String,
    /// What BIRD calls itself.
    pub router_id: Ipv4Addr,
    /// That of the node, unless a peer is told another.
    pub as_number: u32,
    /// What makes the node a route reflector.
    pub cluster_id: Option<Ipv4Addr>,
    /// What BIRD says about its work.
    pub log: LogLevel,
    /// Interfaces whose networks are nothing to BIRD.
    pub ignored_interfaces: Vec<InterfacePattern>,
    /// The routes of which pools BIRD programs, besides those of no pool.
    pub bird_programs: Programs,
    /// The routes of which pools the agent programs, besides those with VXLAN.
    pub agent_programs: Programs,
    /// Filters, by name.
    pub filters: Vec<Filter>,
    /// What is done for each IP version.
    pub families: PerFamily<FamilyPlan>,
    /// What was left out, and why.
    pub problems: Vec<Problem>,
}

/// What is done for one IP version.
#[derive(Debug, Clone, PartialEq)]
pub struct FamilyPlan {
    /// Which one.
    pub family: Family,
    /// Where the node's sessions start; without it there are none.
    pub address: Option<IpAddr>,
    /// The network that the address is in.
    pub network: Option<IpNet>,
    /// The only address at which sessions are accepted.
    pub listen_address: Option<IpAddr>,
    /// The port at which they are, if that is not left to BIRD.
    pub listen_port: Option<u16>,
    /// The metric of routes to workloads that are not on the move.
    pub normal_priority: u32,
    /// Sessions, by name.
    pub peers: Vec<Peer>,
    /// What is added to routes that are told to peers.
    pub communities: Vec<CommunityRule>,
    /// Pools, in the order of their text.
    pub pools: Vec<Pool>,
    /// Blocks of the node, in the order of their text.
    pub blocks: Vec<Block>,
    /// Routes for addresses of services, which all peers are told.
    pub services: Vec<Blackhole>,
    /// Networks of which nothing is programmed, since they are of services.
    pub rejected: Vec<Blackhole>,
    /// Networks of services that a route reflector passes on.
    pub reflected: Vec<Blackhole>,
    /// Routes to peers that are not on the node's own networks.
    pub reachable: Vec<Via>,
    /// Next hops that the agent reaches through `WireGuard`, so that BIRD programs no routes by them.
    pub wireguard: Vec<(IpAddr, Origin)>,
}

/// The field of an object that an entry comes from.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Origin {
    /// The kind of the object, such as `IPPool`.
    pub kind: &'static str,
    /// Its name, after its namespace if it has one.
    pub name: Arc<str>,
    /// The field, such as `spec.cidr`.
    pub field: Cow<'static, str>,
}

impl Plan {
    /// Plans what the inputs ask for.
    pub fn new(inputs: &Inputs) -> Self {
        let mut problems = Problems::default();
        let settings = settings::Settings::new(inputs, &mut problems);
        let filters = filter::all(inputs, &mut problems);
        let mut families = PerFamily::new(|family| FamilyPlan {
            family,
            address: inputs.local().and_then(|node| node.address(family)),
            network: settings::network(inputs, family),
            listen_address: settings::listen_address(inputs, family),
            listen_port: inputs.listen_port(&inputs.identity.node),
            normal_priority: settings::normal_priority(inputs, family, &mut problems),
            peers: Vec::new(),
            communities: Vec::new(),
            pools: Vec::new(),
            blocks: Vec::new(),
            services: Vec::new(),
            rejected: Vec::new(),
            reflected: Vec::new(),
            reachable: Vec::new(),
            wireguard: Vec::new(),
        });
        sessions::plan(inputs, &settings, &filters, &mut families, &mut problems);
        community::plan(inputs, &mut families, &mut problems);
        routes::plan(inputs, &settings, &mut families, &mut problems);
        service::plan(inputs, &mut families, &mut problems);
        Self {
            node: inputs.identity.node.clone(),
            router_id: settings.router_id,
            as_number: settings.as_number,
            cluster_id: settings.cluster_id,
            log: settings.log,
            ignored_interfaces: settings.ignored_interfaces,
            bird_programs: settings.bird_programs,
            agent_programs: settings.agent_programs,
            filters,
            families,
            problems: problems.sorted(),
        }
    }

    /// That of an IP version.
    pub fn family(&self, family: Family) -> &FamilyPlan {
        self.families.get(family)
    }

    /// Whether peer and node have the same AS number in this session.
    pub fn is_internal(&self, peer: &Peer) -> bool {
        peer.as_number == peer.local_as.unwrap_or(self.as_number)
    }
}

impl Origin {
    /// The field of the object of this kind and name.
    pub fn new(
        kind: &'static str,
        name: impl Into<Arc<str>>,
        field: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            kind,
            name: name.into(),
            field: field.into(),
        }
    }

    /// What is wrong with that field.
    pub(crate) fn problem(&self, reason: impl Into<String>) -> Problem {
        Problem {
            kind: self.kind,
            name: self.name.to_string(),
            field: self.field.clone(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}): {}", self.kind, self.name, self.field)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What was found wrong so far.
#[derive(Debug, Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    fn sorted(mut self) -> Vec<Problem> {
        self.0.sort_unstable();
        self.0.dedup();
        self.0
    }
}

/// A text as a message shows it: not too long, and on one line.
fn shown(text: &str) -> String {
    const MAX: usize = 80;
    let mut shown: String = text.escape_debug().take(MAX).collect();
    if text.escape_debug().count() > MAX {
        shown.push('…');
    }
    format!("`{shown}`")
}

//! A route, as far as filters look at it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::plan::{Community, MAX_PREFERENCE};

/// What BIRD gives routes that come from no protocol with a preference of its own.
const PREFERENCE: u32 = 100;

/// A route, as far as filters look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Its destinations.
    pub network: IpNet,
    /// Who brought it.
    pub source: Source,
    /// Where packets leave, if that is known.
    pub interface: Option<String>,
    /// What a peer said is the next machine.
    pub next_hop: Option<IpAddr>,
    /// That of the kernel.
    pub metric: Option<u32>,
    /// That of BGP, which is more for what is better.
    pub local_preference: Option<u32>,
    /// That of BIRD, which decides between protocols.
    pub preference: u32,
    /// The AS numbers on its way, the last one first.
    pub as_path: Vec<u32>,
    /// Its marks.
    pub communities: BTreeSet<Community>,
}

/// Who brings a route to BIRD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The configuration: blocks and services of the node.
    Static,
    /// An address of the node.
    Device,
    /// The kernel, to which somebody else has added it.
    Kernel,
    /// A peer.
    Bgp,
}

impl Route {
    /// A route of which nothing else is known.
    pub fn new(network: IpNet, source: Source) -> Self {
        Self {
            network,
            source,
            interface: None,
            next_hop: None,
            metric: None,
            local_preference: None,
            preference: PREFERENCE,
            as_path: Vec::new(),
            communities: BTreeSet::new(),
        }
    }

    /// What peers make of its preference.
    pub(super) fn metric_for_peers(&self) -> Option<u32> {
        let preference = self.local_preference?;
        Some(MAX_PREFERENCE.wrapping_sub(preference))
    }
}

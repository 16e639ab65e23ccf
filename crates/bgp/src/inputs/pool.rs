//! What of an `IPPool` BGP has a use for.

use ipnet::IpNet;
use tortie_api::kinds::ip_pool::{IpipMode, VxlanMode};
use tortie_api::{IpPool, net};

/// A pool, reduced to what a plan can be made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolFacts {
    /// What it says where that is no network.
    pub(crate) network: Result<IpNet, String>,
    pub(crate) encapsulation: Encapsulation,
    pub(crate) is_exported: bool,
}

/// How packets to other nodes' pods of a pool travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encapsulation {
    /// As they are.
    None,
    /// In IP-in-IP.
    Ipip(Tunnelled),
    /// In VXLAN, whose routes are always the agent's.
    Vxlan,
}

/// To which nodes packets are wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tunnelled {
    /// To all.
    Always,
    /// To those of other networks.
    CrossSubnet,
}

impl PoolFacts {
    pub(crate) fn new(pool: &IpPool) -> Self {
        let spec = &pool.spec;
        let encapsulation = match (spec.vxlan_mode, spec.ipip_mode) {
            (Some(VxlanMode::Always | VxlanMode::CrossSubnet), _) => Encapsulation::Vxlan,
            (_, Some(IpipMode::Always)) => Encapsulation::Ipip(Tunnelled::Always),
            (_, Some(IpipMode::CrossSubnet)) => Encapsulation::Ipip(Tunnelled::CrossSubnet),
            (_, Some(IpipMode::Never) | None) => Encapsulation::None,
        };
        Self {
            network: network(&spec.cidr).ok_or_else(|| spec.cidr.clone()),
            encapsulation,
            is_exported: !spec.disable_bgp_export,
        }
    }
}

/// Reads a network, without bits beyond its prefix.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    net::parse_cidr(text).map(net::Cidr::network)
}

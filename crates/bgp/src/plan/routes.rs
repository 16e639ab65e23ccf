//! Pools, blocks, and who programs the routes to other nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::kinds::block_affinity::BlockAffinityState;

use super::settings::{Settings, configuration};
use super::{FamilyPlan, Origin, Problems, Programs, shown};
use crate::inputs::{self, Encapsulation};
use crate::{Family, Inputs, PerFamily};

/// A pool, as peers and kernel see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// What its addresses are of.
    pub network: IpNet,
    /// How packets to other nodes' pods travel.
    pub encapsulation: Encapsulation,
    /// Whether peers are told of its blocks.
    pub is_exported: bool,
    /// Who programs the routes to other nodes' blocks.
    pub programmer: Programmer,
    /// BIRD goes on programming them, although the agent is to: it has not taken over so far.
    pub is_kept: bool,
    /// Where it comes from.
    pub origin: Origin,
}

/// Who programs routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Programmer {
    /// BIRD, from what it learns.
    Bird,
    /// The node's agent, from the datastore.
    Agent,
}

/// A block that the node has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its addresses.
    pub network: IpNet,
    /// Whether peers are told of it, in place of all in it. The node gives up what they are not told of.
    pub is_told: bool,
    /// Where it comes from.
    pub origin: Origin,
}

/// A network that has routes but no next hop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blackhole {
    /// What it is about.
    pub network: IpNet,
    /// Where it comes from.
    pub origin: Origin,
}

/// A route to a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Via {
    /// The peer.
    pub address: IpAddr,
    /// Who knows the way.
    pub gateway: IpAddr,
    /// Where it comes from.
    pub origin: Origin,
}

impl Block {
    /// Whether the node has a route for all of it, so that packets for addresses that nobody has do not go back and forth. One
    /// for a single address would be in the way of the route to whoever has it.
    pub fn has_route(&self) -> bool {
        self.network.prefix_len() < Family::of_network(self.network).bits()
    }
}

impl Programs {
    fn program(self, encapsulation: Encapsulation) -> bool {
        match encapsulation {
            Encapsulation::None => self.no_encap,
            Encapsulation::Ipip(_) => self.ipip,
            Encapsulation::Vxlan => false,
        }
    }
}

pub(super) fn plan(
    inputs: &Inputs,
    settings: &Settings,
    families: &mut PerFamily<FamilyPlan>,
    problems: &mut Problems,
) {
    pools(inputs, settings, families, problems);
    blocks(inputs, families, problems);
    for family in Family::BOTH {
        let plan = families.get_mut(family);
        sort(&mut plan.pools, |pool| pool.network);
        sort(&mut plan.blocks, |block| block.network);
        plan.wireguard = wireguard(inputs, family);
    }
    who_programs(settings, families, problems);
}

/// In the order of their texts, which is confd's.
pub(super) fn sort<T>(entries: &mut [T], network: impl Fn(&T) -> IpNet) {
    entries.sort_by_cached_key(|entry| network(entry).to_string());
}

/// Of pools with the same network the first one counts.
fn pools(
    inputs: &Inputs,
    settings: &Settings,
    families: &mut PerFamily<FamilyPlan>,
    problems: &mut Problems,
) {
    let mut known: BTreeMap<IpNet, &Arc<str>> = BTreeMap::new();
    for (name, facts) in &inputs.pools {
        let origin = Origin::new("IPPool", Arc::clone(name), "spec.cidr");
        let network = match &facts.network {
            Ok(network) => *network,
            Err(text) => {
                problems.push(origin.problem(format!(
                    "{} is not a network such as 10.0.0.0/16; peers are not told of its blocks",
                    shown(text)
                )));
                continue;
            }
        };
        if let Some(first) = known.insert(network, name) {
            problems.push(origin.problem(format!(
                "{network} is the network of IPPool({first}) too; only that one counts"
            )));
            known.insert(network, first);
            continue;
        }
        let programmer = if settings.bird_programs.program(facts.encapsulation) {
            Programmer::Bird
        } else {
            Programmer::Agent
        };
        let family = families.get_mut(Family::of_network(network));
        family.pools.push(Pool {
            network,
            encapsulation: facts.encapsulation,
            is_exported: facts.is_exported,
            programmer,
            is_kept: false,
            origin,
        });
    }
}

fn blocks(inputs: &Inputs, families: &mut PerFamily<FamilyPlan>, problems: &mut Problems) {
    let mut known: BTreeSet<IpNet> = BTreeSet::new();
    for (name, block) in &inputs.blocks {
        if block.state == BlockAffinityState::Pending {
            continue;
        }
        let network = match &block.network {
            Ok(network) => *network,
            Err(text) => {
                let origin = Origin::new("BlockAffinity", Arc::clone(name), "spec.cidr");
                problems.push(origin.problem(format!(
                    "{} is not a network such as 10.0.0.64/26; peers are not told of it",
                    shown(text)
                )));
                continue;
            }
        };
        if known.insert(network) {
            let family = families.get_mut(Family::of_network(network));
            family.blocks.push(Block {
                network,
                is_told: block.state != BlockAffinityState::PendingDeletion,
                origin: Origin::new("BlockAffinity", Arc::clone(name), "spec.state"),
            });
        }
    }
}

/// Addresses of nodes that packets reach encrypted, which is the agent's work on both sides.
fn wireguard(inputs: &Inputs, family: Family) -> Vec<(IpAddr, Origin)> {
    let has = |node: &inputs::NodeFacts| *node.session.has_wireguard.get(family);
    if !inputs.local().is_some_and(has) {
        return Vec::new();
    }
    let others = inputs
        .nodes
        .iter()
        .filter(|(name, _)| ***name != *inputs.identity.node);
    let mut hops: Vec<(IpAddr, Origin)> = others
        .filter(|(_, node)| has(node))
        .filter_map(|(name, node)| {
            let origin = Origin::new("Node", Arc::clone(name), "spec.wireguard");
            Some((node.address(family)?, origin))
        })
        .collect();
    hops.sort_by_cached_key(|(address, _)| address.to_string());
    hops.dedup_by_key(|(address, _)| *address);
    hops
}

/// Says where routes would be programmed by both, or by nobody.
fn who_programs(settings: &Settings, families: &PerFamily<FamilyPlan>, problems: &mut Problems) {
    let kinds = [
        (
            "with IP-in-IP",
            settings.bird_programs.ipip,
            settings.agent_programs.ipip,
            is_ipip as fn(Encapsulation) -> bool,
        ),
        (
            "without encapsulation",
            settings.bird_programs.no_encap,
            settings.agent_programs.no_encap,
            |encapsulation| encapsulation == Encapsulation::None,
        ),
    ];
    for (kind, bird, agent, is_kind) in kinds {
        let mut pools = Family::BOTH
            .into_iter()
            .flat_map(|f| &families.get(f).pools);
        let Some(pool) = pools.find(|pool| is_kind(pool.encapsulation)) else {
            continue;
        };
        if bird != agent {
            continue;
        }
        let (who, name) = (
            if bird {
                "both BIRD and the agent program"
            } else {
                "nobody programs"
            },
            &pool.origin.name,
        );
        problems.push(configuration("spec.programClusterRoutes").problem(format!(
            "{who} routes of pools {kind}, such as IPPool({name}); what is enabled here must be disabled in \
             spec.programClusterRoutes of the FelixConfiguration, and the other way round"
        )));
    }
}

fn is_ipip(encapsulation: Encapsulation) -> bool {
    matches!(encapsulation, Encapsulation::Ipip(_))
}

//! What a question is about: a network, or the longest known one that an address is in.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::net;

use super::Question;
use crate::inputs;
use crate::plan::Condition;
use crate::{Cluster, Family, Plan};

/// Which destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Exactly these.
    Network(IpNet),
    /// The longest prefix that is known and has this address.
    Address(IpAddr),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(address) = net::parse_ip(text) {
            return Ok(Self::Address(address));
        }
        inputs::network(text).map(Self::Network).ok_or_else(|| {
            "it is neither a network such as 10.65.1.0/26 nor an address such as 10.65.1.7"
                .to_owned()
        })
    }
}

/// The network that is meant, and what is to be said of it.
pub(super) fn resolve(cluster: &mut Cluster, question: &Question) -> (IpNet, Vec<String>) {
    let address = match question.target {
        Target::Network(network) => return (network, Vec::new()),
        Target::Address(address) => address,
    };
    let asker = question.node.clone();
    let asker = asker.unwrap_or_else(|| cluster.own_node().to_owned());
    let plan = cluster.plan(&asker);
    let known = known(cluster, &plan, Family::of(address));
    let holds = known
        .into_iter()
        .filter(|network| network.contains(&address));
    match holds.max_by_key(IpNet::prefix_len) {
        Some(network) if network != IpNet::from(address) => {
            let note =
                format!("{address} is in {network}, which is the longest prefix that is known");
            (network, vec![note])
        }
        _ => (IpNet::from(address), Vec::new()),
    }
}

/// Networks that routes are about: blocks of all nodes, and what this plan has of its own.
fn known(cluster: &Cluster, plan: &Plan, family: Family) -> Vec<IpNet> {
    let affinities = cluster.affinities();
    let blocks = affinities.filter_map(|affinity| inputs::network(&affinity.spec.cidr));
    let of_family = plan.family(family);
    let services = of_family.services.iter().map(|service| service.network);
    let own = services.chain(of_family.network);
    blocks
        .filter(|network| Family::of_network(*network) == family)
        .chain(own)
        .collect()
}

/// Rules for what is learnt that ask for an interface, which objects do not tell.
pub(super) fn unknown_interfaces(plan: &Plan, network: IpNet) -> Option<String> {
    let family = Family::of_network(network);
    let peers = plan.family(family).peers.iter();
    let filters = peers.flat_map(|peer| &peer.filters);
    let filters = filters.filter_map(|index| plan.filters.get(*index));
    let mut rules = filters.flat_map(|filter| &filter.rules.get(family).import);
    let asks = |condition: &Condition| matches!(condition, Condition::Interface(_));
    let rule = rules.find(|rule| rule.conditions.iter().any(asks))?;
    Some(format!(
        "{} asks for an interface, which the objects do not tell: it is taken not to hold",
        rule.origin
    ))
}

/// What the objects say about the prefix besides.
pub(super) fn notes(cluster: &Cluster, network: IpNet, holders: &[Arc<str>]) -> Vec<String> {
    let mut notes = Vec::new();
    let all = cluster.all();
    for (name, pool) in &all.pools {
        let is_disabled = cluster.is_pool_disabled(name);
        if let Ok(of_pool) = &pool.network
            && of_pool.contains(&network)
            && is_disabled
        {
            notes.push(format!(
                "IPPool({name}) is disabled (spec.disabled = true): no new blocks are made of it, and those that there are are told as ever"
            ));
        }
    }
    if holders.is_empty() {
        let affinities = cluster.affinities();
        let within = affinities.filter(|affinity| {
            let block = inputs::network(&affinity.spec.cidr);
            block.is_some_and(|block| block != network && network.contains(&block))
        });
        let count = within.count();
        if count > 0 {
            notes.push(format!(
                "nodes tell their blocks one by one, and {count} of them are in {network}: ask about one of these"
            ));
        }
    }
    notes
}

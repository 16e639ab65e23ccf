//! Route reflectors: whom they serve, by which cluster, and whether they know of each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv4Addr;

use super::{Examined, Finding};
use crate::plan::Origin;
use crate::{Cluster, Reason};

/// A reflector, and the nodes that it has sessions with.
struct Reflector<'a> {
    node: &'a str,
    id: Ipv4Addr,
    serves: BTreeSet<&'a str>,
}

pub(super) fn examine(cluster: &Cluster, examined: &[Examined], findings: &mut Vec<Finding>) {
    let names: HashMap<_, _> = examined
        .iter()
        .flat_map(|one| {
            let families = crate::Family::BOTH.into_iter();
            families.filter_map(|family| Some((cluster.address_of(&one.node, family)?, &*one.node)))
        })
        .collect();
    let reflectors: Vec<Reflector> = examined
        .iter()
        .filter_map(|one| {
            let peers = one.sessions.iter();
            Some(Reflector {
                node: &one.node,
                id: one.plan.cluster_id?,
                serves: peers
                    .filter_map(|peer| names.get(&peer.address).copied())
                    .collect(),
            })
        })
        .collect();
    clusters(&reflectors, findings);
    for (index, one) in reflectors.iter().enumerate() {
        for other in &reflectors[index + 1..] {
            findings.extend(apart(one, other));
        }
    }
}

/// Reflectors of the same nodes with different clusters keep what they reflect to each other.
fn clusters(reflectors: &[Reflector], findings: &mut Vec<Finding>) {
    let mut of_node: BTreeMap<&str, Vec<&Reflector>> = BTreeMap::new();
    for one in reflectors {
        for node in &one.serves {
            of_node.entry(node).or_default().push(one);
        }
    }
    let mut said = BTreeSet::new();
    for (node, of) in of_node {
        let Some(other) = of.iter().find(|other| other.id != of[0].id) else {
            continue;
        };
        let first = of[0];
        if !said.insert((first.node, other.node)) {
            continue;
        }
        let reason = Reason::new(format!(
            "{} and {} reflect routes to the same nodes, such as {node}, under different cluster ids: each keeps the routes of the other too",
            first.node, other.node
        ))
        .of(Origin::new("Node", other.node, "spec.bgp.routeReflectorClusterID"))
        .value(other.id)
        .remedy(format!("{}, which {} has", first.id, first.node));
        findings.push(Finding::warning(reason).on([first.node, other.node]));
    }
}

/// Two reflectors that do not speak with each other, and have clients that the other one has not.
fn apart(one: &Reflector, other: &Reflector) -> Option<Finding> {
    if one.serves.contains(other.node) || other.serves.contains(one.node) {
        return None;
    }
    let alone = |a: &Reflector, b: &Reflector| {
        let mut only = a.serves.iter().filter(|node| !b.serves.contains(**node));
        only.next().map(ToString::to_string)
    };
    let (a, b) = (alone(one, other)?, alone(other, one)?);
    let reason = Reason::new(format!(
        "{a} is a client of {} only and {b} of {} only, and the two reflectors have no session: {a} and {b} learn nothing of each other",
        one.node, other.node
    ))
    .of(Origin::new("Node", other.node, "spec.bgp.routeReflectorClusterID"))
    .value(other.id)
    .remedy("a BGPPeer whose nodeSelector and peerSelector both have the reflectors");
    Some(Finding::error(reason).on([one.node.to_owned(), other.node.to_owned(), a, b]))
}

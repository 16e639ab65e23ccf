//! Nodes by themselves: addresses, router ids, and whether they have anybody to speak with.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use super::{Examined, Finding};
use crate::plan::Origin;
use crate::{Cluster, Family, Reason};

pub(super) fn examine(cluster: &Cluster, examined: &[Examined], findings: &mut Vec<Finding>) {
    for one in examined {
        // That a node shares its address is said below.
        let problems = one.plan.problems.iter();
        let problems = problems.filter(|problem| problem.field != "spec.bgp");
        findings.extend(problems.map(|problem| Finding::error(problem.into()).on([&one.node])));
    }
    shared_addresses(cluster, findings);
    router_ids(cluster, examined, findings);
    missing_addresses(cluster, examined, findings);
    for one in examined.iter().filter(|one| one.count_sessions() == 0) {
        if examined.len() > 1 {
            findings.push(alone(cluster, one).on([&one.node]));
        }
    }
}

fn field(family: Family) -> &'static str {
    match family {
        Family::V4 => "spec.bgp.ipv4Address",
        Family::V6 => "spec.bgp.ipv6Address",
    }
}

fn shared_addresses(cluster: &Cluster, findings: &mut Vec<Finding>) {
    let mut holders: BTreeMap<IpAddr, &str> = BTreeMap::new();
    for (name, node) in &cluster.all().nodes {
        for family in Family::BOTH {
            let Some(address) = node.address(family) else {
                continue;
            };
            let Some(first) = holders.get(&address) else {
                holders.insert(address, name);
                continue;
            };
            let reason = Reason::new(format!("{address} is the address of Node({first}) too: others have a session with one of both only"))
                .of(Origin::new("Node", &**name, field(family)))
                .value(address)
                .remedy("the address that the machine itself has; `tortie node startup` finds it");
            findings.push(Finding::error(reason).on([*first, name]));
        }
    }
}

fn router_ids(cluster: &Cluster, examined: &[Examined], findings: &mut Vec<Finding>) {
    let mut holders: BTreeMap<Ipv4Addr, &str> = BTreeMap::new();
    for one in examined {
        let id = one.plan.router_id;
        let Some(first) = holders.get(&id) else {
            holders.insert(id, &one.node);
            continue;
        };
        let address = |name: &str| cluster.address_of(name, Family::V4);
        // That is said already.
        if address(first).is_some() && address(first) == address(&one.node) {
            continue;
        }
        let reason = Reason::new(format!(
            "{} and {first} both call themselves {id} as routers: they refuse sessions with each other, and drop what the other reflects",
            one.node
        ))
        .of(Origin::new("Node", one.node.as_str(), field(Family::V4)))
        .value(address(&one.node).map_or("none".to_owned(), |address| address.to_string()))
        .remedy(format!("an IPv4 address of its own; or another {} in the environment of its `tortie bgp`", tortie_variables::CALICO_ROUTER_ID));
        findings.push(Finding::error(reason).on([*first, &one.node]));
    }
}

/// Nodes without an address of an IP version that others have, where the mesh would have sessions with it.
fn missing_addresses(cluster: &Cluster, examined: &[Examined], findings: &mut Vec<Finding>) {
    let all = cluster.all();
    for family in Family::BOTH {
        let with = all
            .nodes
            .values()
            .filter(|node| node.address(family).is_some());
        let with = with.count();
        let is_wanted = with > 1 && 2 * with > all.nodes.len();
        for one in examined {
            let has = |family| cluster.address_of(&one.node, family).is_some();
            if has(family) || !is_wanted || !all.is_mesh_enabled() || one.is_reflector() {
                continue;
            }
            let reason = Reason::new(format!(
                "{} has no {family} address, and {with} other nodes have one: the mesh has no {family} sessions with it",
                one.node
            ))
            .of(Origin::new("Node", one.node.as_str(), field(family)))
            .remedy("its address with the length of its network; `tortie node startup` finds it");
            // Without the other one it is out of the mesh.
            let other = Family::BOTH
                .into_iter()
                .any(|other| other != family && has(other));
            let finding = if other {
                Finding::warning(reason)
            } else {
                Finding::error(reason)
            };
            findings.push(finding.on([&one.node]));
        }
    }
}

/// Why a node has no sessions.
fn alone(cluster: &Cluster, one: &Examined) -> Finding {
    let node = one.node.as_str();
    let all = cluster.all();
    let has_address = Family::BOTH
        .iter()
        .any(|family| cluster.address_of(node, *family).is_some());
    if !has_address {
        return Finding::error(
            Reason::new(format!("{node} has no address that a session could start from, and so no sessions"))
                .of(Origin::new("Node", node, field(Family::V4)))
                .remedy("its address with the length of its network, such as 192.0.2.1/24; `tortie node startup` finds it"),
        );
    }
    let text = format!("{node} has no sessions: it tells nobody of its blocks, and learns none");
    let remedy = "a BGPPeer for it; or nodeToNodeMeshEnabled: true in BGPConfiguration(default)";
    if one.is_reflector() && all.is_mesh_enabled() {
        let id = one
            .plan
            .cluster_id
            .map_or(String::new(), |id| id.to_string());
        return Finding::error(
            Reason::new(format!("{text}; the mesh leaves route reflectors out"))
                .of(Origin::new(
                    "Node",
                    node,
                    "spec.bgp.routeReflectorClusterID",
                ))
                .value(id)
                .remedy(
                    "a BGPPeer with nodeSelector: all() and a peerSelector that has the reflectors",
                ),
        );
    }
    if all.is_mesh_enabled() {
        return Finding::warning(Reason::new(text).of(Origin::new("Node", node, "spec.bgp")).remedy(
            "another node with an address of the same IP version that is no route reflector, or a BGPPeer",
        ));
    }
    Finding::error(
        Reason::new(format!(
            "{text}; the mesh is switched off, and no BGPPeer is for it"
        ))
        .of(Origin::new(
            "BGPConfiguration",
            "default",
            "spec.nodeToNodeMeshEnabled",
        ))
        .value(false)
        .remedy(remedy),
    )
}

//! Sessions between nodes: whether the other side has them too, and means the same. And those with routers, by themselves.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use tortie_api::kinds::bgp_peer::ReversePeering;

use super::pair::disagreements;
use super::{Examined, Finding};
use crate::inputs::NodeFacts;
use crate::plan::{Origin, Peer, PeerKind};
use crate::{Cluster, Family, Reason};

pub(super) fn examine(cluster: &Cluster, examined: &[Examined], findings: &mut Vec<Finding>) {
    let by_name: HashMap<&str, &Examined> = examined
        .iter()
        .map(|one| (one.node.as_str(), one))
        .collect();
    let sessions: HashMap<(&str, IpAddr), &Peer> = examined
        .iter()
        .flat_map(|one| {
            one.sessions
                .iter()
                .map(|peer| ((one.node.as_str(), peer.address), peer))
        })
        .collect();
    let holders = holders(cluster);
    for one in examined {
        for peer in &one.sessions {
            let Some(name) = holders.get(&peer.address) else {
                router(one, peer, findings);
                continue;
            };
            let (Some(other), Some(a)) = (by_name.get(&**name), one.end(peer)) else {
                continue;
            };
            let back = sessions.get(&(&**name, a.address));
            match back.and_then(|back| other.end(back)) {
                // Both sides come here: once is enough.
                Some(b) if one.node < other.node => findings.extend(disagreements(&a, &b)),
                Some(_) => {}
                None => findings.push(one_sided(cluster, one, other, peer)),
            }
        }
    }
    mesh(cluster, findings);
}

/// Of nodes with the same address the first one counts.
fn holders(cluster: &Cluster) -> HashMap<IpAddr, Arc<str>> {
    let mut holders = HashMap::new();
    for (name, node) in &cluster.all().nodes {
        for address in Family::BOTH
            .into_iter()
            .filter_map(|family| node.address(family))
        {
            holders.entry(address).or_insert_with(|| Arc::clone(name));
        }
    }
    holders
}

/// A node that opens a session that the other one knows nothing of.
fn one_sided(cluster: &Cluster, one: &Examined, other: &Examined, peer: &Peer) -> Finding {
    let (node, with) = (&one.node, &other.node);
    let name = &peer.origin.name;
    let origin = |field: &'static str| Origin::new("BGPPeer", Arc::clone(name), field);
    let entry = cluster.all().peers.get(name);
    let is_manual =
        entry.is_some_and(|entry| entry.spec.reverse_peering == Some(ReversePeering::Manual));
    let listens = other
        .plan
        .family(Family::of(peer.address))
        .listen_port
        .unwrap_or(179);
    let reason = if peer.as_number != other.plan.as_number {
        let told = other.plan.as_number;
        Reason::new(format!(
            "{node} expects the AS number {} of {with}, which has {told}: the session is refused",
            peer.as_number
        ))
        .of(origin("spec.asNumber"))
        .value(peer.as_number)
        .remedy(format!("{told}"))
    } else if peer.port.is_some_and(|port| port != listens) {
        let port = peer.port.unwrap_or_default();
        Reason::new(format!(
            "{node} connects to port {port} of {with}, which listens on {listens}"
        ))
        .of(origin("spec.peerIP"))
        .value(entry.map_or(String::new(), |entry| entry.spec.peer_ip.clone()))
        .remedy(format!("port {listens}, or none"))
    } else if is_manual {
        Reason::new(format!(
            "{node} opens a session with {with}, which has none with {node}"
        ))
        .of(origin("spec.reversePeering"))
        .value("Manual")
        .remedy(format!(
            "a BGPPeer of {with} with {node}; or Auto, so that {with} has the session by this one"
        ))
    } else {
        let field = if entry.is_some_and(|entry| !entry.spec.peer_selector.is_empty()) {
            "spec.peerSelector"
        } else {
            "spec.peerIP"
        };
        Reason::new(format!(
            "{node} opens a session with {with}, which has none with {node}"
        ))
        .of(origin(field))
        .remedy(format!("a BGPPeer of {with} with {node}"))
    };
    Finding::error(reason).on([node, with])
}

/// What can be said of a neighbour of which nothing else is known.
fn router(one: &Examined, peer: &Peer, findings: &mut Vec<Finding>) {
    if peer.kind == PeerKind::LocalWorkload {
        return;
    }
    let of_family = one.plan.family(Family::of(peer.address));
    let is_near = of_family
        .network
        .is_none_or(|network| network.contains(&peer.address));
    if is_near {
        return;
    }
    let network = of_family
        .network
        .map_or(String::new(), |network| network.to_string());
    let (node, address, name) = (&one.node, peer.address, &peer.origin.name);
    let origin = |field: &'static str| Origin::new("BGPPeer", Arc::clone(name), field);
    if peer.ttl_security == Some(1) {
        let reason = Reason::new(format!(
            "{address} is not in the network {network} of the node, so that its packets pass a router and are dropped"
        ))
        .of(origin("spec.ttlSecurity"))
        .value(1)
        .remedy("how many hops it is away: 2 or more");
        findings.push(Finding::error(reason).on([node]));
    }
    if of_family.reachable.iter().all(|via| via.address != address) {
        let reason = Reason::new(format!(
            "{address} is not in the network {network} of the node, and nothing says by which gateway it is reached: what it tells has no \
             next hop unless a route of the machine has it"
        ))
        .of(origin("spec.reachableBy"))
        .value("nothing")
        .remedy(format!("the address of a gateway in {network}"));
        findings.push(Finding::warning(reason).on([node]));
    }
}

/// In the mesh a node with an AS number of its own takes it for that of nodes that have none.
fn mesh(cluster: &Cluster, findings: &mut Vec<Finding>) {
    let all = cluster.all();
    if !all.is_mesh_enabled() {
        return;
    }
    let global = global_as(cluster);
    let own = |node: &NodeFacts| node.session.as_number.filter(|number| *number != 0);
    let members = || {
        all.nodes
            .iter()
            .filter(|(_, node)| node.session.cluster_id.is_none())
    };
    let without: Vec<_> = members().filter(|(_, node)| own(node).is_none()).collect();
    let mut with: BTreeMap<u32, Vec<&Arc<str>>> = BTreeMap::new();
    for (name, node) in members() {
        let is_met = without.iter().any(|(_, other)| {
            let both = |family: &Family| {
                node.address(*family).is_some() && other.address(*family).is_some()
            };
            Family::BOTH.iter().any(both)
        });
        if let Some(number) = own(node).filter(|number| *number != global && is_met) {
            with.entry(number).or_default().push(name);
        }
    }
    for (number, names) in with {
        let (first, count) = (names[0], without.len());
        let other = without[0].0;
        let reason = Reason::new(format!(
            "{first} takes its own AS number {number} for that of nodes without one, such as {other}, which have {global}: {count} sessions \
             of the mesh are refused"
        ))
        .of(Origin::new("Node", Arc::clone(first), "spec.bgp.asNumber"))
        .value(number)
        .remedy(format!("spec.bgp.asNumber: {global} for each node that has none, or one for all in spec.asNumber of BGPConfiguration(default)"));
        let nodes = names.iter().chain([&other]).map(ToString::to_string);
        findings.push(Finding::error(reason).on(nodes.collect::<Vec<_>>()));
    }
    if let Some((name, node)) = all
        .nodes
        .iter()
        .find(|(_, node)| node.session.cluster_id.is_some())
    {
        let id = node
            .session
            .cluster_id
            .map_or(String::new(), |id| id.to_string());
        let reason = Reason::new(format!(
            "the mesh goes on beside the route reflector {name} ({id}): nodes have a session with each other one still"
        ))
        .of(Origin::new("BGPConfiguration", "default", "spec.nodeToNodeMeshEnabled"))
        .value("true")
        .remedy("false, once all nodes have sessions with the reflectors");
        findings.push(Finding::warning(reason));
    }
}

/// That of nodes that nobody gave one.
fn global_as(cluster: &Cluster) -> u32 {
    let given = cluster.all().configuration.as_number.map(|number| number.0);
    given
        .filter(|number| *number != 0)
        .unwrap_or(crate::plan::DEFAULT_AS)
}

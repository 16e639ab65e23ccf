//! Which sessions a question is about, and why one that might be meant is not there.

use std::net::IpAddr;
use std::sync::Arc;

use super::holding::address_field;
use crate::inputs::{NodeFacts, PeerEntry, Remote};
use crate::plan::{Origin, Peer, Plan};
use crate::{Cluster, Family, Inputs, Reason};

/// The sessions of a node that a question is about.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) peers: Vec<Peer>,
    /// Why there is none where there might be one.
    pub(super) missing: Vec<Reason>,
}

/// Those with this peer, or all. A text that nothing has is an error.
pub(super) fn wanted(
    cluster: &mut Cluster,
    node: &str,
    plan: &Plan,
    family: Family,
    asked: Option<&str>,
) -> Result<Wanted, String> {
    let peers = &plan.family(family).peers;
    let Some(asked) = asked else {
        return Ok(Wanted {
            peers: peers.clone(),
            missing: not_there(plan, peers),
        });
    };
    let other = cluster.has_node(asked).then(|| asked.to_owned());
    let address: Option<IpAddr> = asked.parse().ok();
    let of_node = other
        .as_deref()
        .and_then(|other| cluster.address_of(other, family));
    let is_meant = |peer: &&Peer| {
        peer.name == asked
            || peer.origin.kind == "BGPPeer" && *peer.origin.name == *asked
            || [address, of_node].contains(&Some(peer.address))
    };
    let found: Vec<Peer> = peers.iter().filter(is_meant).cloned().collect();
    if !found.is_empty() {
        return Ok(Wanted {
            peers: found,
            missing: Vec::new(),
        });
    }
    let by_address = address.and_then(|address| cluster.node_at(address).cloned());
    let other = other.or_else(|| by_address.map(|name| name.to_string()));
    let inputs = cluster.inputs_of_sessions(node);
    let reason = if let Some(entry) = inputs.peers.get(asked) {
        of_peer(inputs, plan, asked, entry, family)
    } else if let Some(other) = other {
        between(inputs, plan, &other, family)
    } else if let Some(address) = address {
        of_address(inputs, plan, address)
    } else {
        return Err(format!(
            "nothing is called {asked}: say the name of a BGPPeer or a Node, an address, or BIRD's name of a session, such as {}",
            peers.first().map_or("Mesh_192_0_2_2", |peer| &peer.name)
        ));
    };
    Ok(Wanted {
        peers: Vec::new(),
        missing: vec![reason],
    })
}

/// What `BGPPeer`s ask for that there is no session for, because of a problem.
fn not_there(plan: &Plan, peers: &[Peer]) -> Vec<Reason> {
    let problems = plan.problems.iter().filter(|problem| {
        let mut with = peers.iter().filter(|peer| peer.origin.kind == "BGPPeer");
        problem.kind == "BGPPeer" && !with.any(|peer| *peer.origin.name == *problem.name)
    });
    problems.map(Reason::from).collect()
}

/// Why a `BGPPeer` makes no session of this node.
fn of_peer(inputs: &Inputs, plan: &Plan, name: &str, entry: &PeerEntry, family: Family) -> Reason {
    let mut problems = plan.problems.iter();
    let problem = problems.find(|problem| problem.kind == "BGPPeer" && problem.name == name);
    if let Some(problem) = problem {
        return Reason::from(problem);
    }
    let origin = |field: &'static str| Origin::new("BGPPeer", name, field);
    let (spec, node) = (&entry.spec, &plan.node);
    if !entry.forward && !entry.reverse {
        let (field, value) = if spec.node_selector.is_empty() {
            ("spec.node", &spec.node)
        } else {
            ("spec.nodeSelector", &spec.node_selector)
        };
        return Reason::new(format!("it is not for {node}"))
            .of(origin(field))
            .value(value)
            .remedy(format!(
                "let it select {node}: by name, by a label, or all() for all nodes"
            ));
    }
    if let Some(reason) = no_address(inputs, node, family) {
        return reason;
    }
    match &entry.remote {
        Remote::Address(address, _) if Family::of(*address) != family => Reason::new(format!(
            "its session is of {}, and routes of {family} need one of {family}",
            Family::of(*address)
        ))
        .of(origin("spec.peerIP"))
        .value(&spec.peer_ip)
        .remedy(format!("another BGPPeer with the peer's {family} address")),
        Remote::Address(address, _) if plan.family(family).address == Some(*address) => {
            Reason::new("its address is the node's own")
                .of(origin("spec.peerIP"))
                .value(&spec.peer_ip)
                .remedy("the neighbour's address; or a nodeSelector without the neighbour")
        }
        Remote::Selected(_) => Reason::new(format!(
            "no other node with an {family} address has these labels"
        ))
        .of(origin("spec.peerSelector"))
        .value(&spec.peer_selector)
        .remedy("label the nodes that are meant"),
        Remote::Workloads => Reason::new("no workload of the node that runs has these labels")
            .of(origin("spec.localWorkloadSelector"))
            .value(&spec.local_workload_selector)
            .remedy("it peers with workloads of this machine while `tortie bgp` runs here"),
        _ => Reason::new("another BGPPeer has a session with the same neighbour, which counts")
            .of(origin("spec.peerIP"))
            .value(&spec.peer_ip)
            .remedy("take one of both away"),
    }
}

fn of_address(inputs: &Inputs, plan: &Plan, address: IpAddr) -> Reason {
    let family = Family::of(address);
    let mut peers = inputs.peers.iter();
    let at =
        peers.find(|(_, entry)| matches!(entry.remote, Remote::Address(of, _) if of == address));
    if let Some((name, entry)) = at {
        return of_peer(inputs, plan, name, entry, family);
    }
    Reason::new(format!("no BGPPeer names {address}, and no Node has it")).remedy(format!(
        "a BGPPeer with spec.peerIP: {address} and the neighbour's spec.asNumber"
    ))
}

fn no_address(inputs: &Inputs, node: &str, family: Family) -> Option<Reason> {
    let facts = inputs.nodes.get(node)?;
    if facts.address(family).is_some() {
        return None;
    }
    let field = address_field(family);
    let mut unreadable = facts.session.unreadable.iter();
    let text = unreadable.find(|(of, _)| *of == field);
    let text = text.map_or("", |(_, text)| text);
    let reason = Reason::new(format!(
        "node {node} has no {family} address that a session could have"
    ));
    let right = if family == Family::V4 {
        "192.0.2.1/24"
    } else {
        "2001:db8::1/64"
    };
    Some(
        reason
            .of(Origin::new("Node", node, field))
            .value(format!("`{text}`"))
            .remedy(format!("its address with the length of its network, such as {right}; `tortie node startup` finds it")),
    )
}

/// Why two nodes have no session, as the first one plans it.
pub(super) fn between(inputs: &Inputs, plan: &Plan, other: &str, family: Family) -> Reason {
    let node = &*plan.node;
    if node == other {
        return Reason::new("a node has no session with itself");
    }
    for one in [node, other] {
        if let Some(reason) = no_address(inputs, one, family) {
            return reason;
        }
    }
    let facts = |name: &str| inputs.nodes.get(name);
    let address = facts(node).and_then(|facts| facts.address(family));
    if address.is_some() && address == facts(other).and_then(|facts| facts.address(family)) {
        return Reason::new(format!("nodes {node} and {other} have the same address"))
            .of(Origin::new("Node", other, address_field(family)))
            .value(address.map_or_else(String::new, |address| address.to_string()))
            .remedy("each node's own address");
    }
    // A BGPPeer that means this node, and cannot be used.
    let meant = inputs.peers.iter().filter(|(_, entry)| {
        entry.forward && facts(other).is_some_and(|facts| is_remote(entry, facts))
    });
    let named: Vec<&Arc<str>> = meant.map(|(name, _)| name).collect();
    let mut problems = plan.problems.iter();
    let problem = problems.find(|problem| {
        problem.kind == "BGPPeer" && named.iter().any(|name| ***name == *problem.name)
            || problem.field.starts_with("spec.nodeMeshPassword")
    });
    if let Some(problem) = problem {
        return Reason::from(problem);
    }
    no_mesh(inputs, node, other)
}

fn is_remote(entry: &PeerEntry, facts: &NodeFacts) -> bool {
    match &entry.remote {
        Remote::Address(address, _) => facts.has_address(*address),
        Remote::Selected(selector) => selector.matches(&facts.labels),
        Remote::Workloads | Remote::Unreadable(..) => false,
    }
}

fn no_mesh(inputs: &Inputs, node: &str, other: &str) -> Reason {
    let remedy = format!(
        "a BGPPeer whose nodeSelector has {node} and whose peerSelector has {other}, or the other way round"
    );
    if !inputs.is_mesh_enabled() {
        return Reason::new(format!(
            "the mesh is switched off, and no BGPPeer joins {node} and {other}"
        ))
        .of(Origin::new(
            "BGPConfiguration",
            "default",
            "spec.nodeToNodeMeshEnabled",
        ))
        .value(false)
        .remedy(remedy);
    }
    let reflects = |name: &&str| {
        let facts = inputs.nodes.get(*name);
        facts.is_some_and(|facts| facts.session.cluster_id.is_some())
    };
    if let Some(reflector) = [node, other].iter().find(|name| reflects(name)) {
        let id = inputs
            .nodes
            .get(*reflector)
            .and_then(|facts| facts.session.cluster_id);
        return Reason::new(format!("{reflector} is a route reflector, with which the mesh has no sessions, and no BGPPeer joins {node} and {other}"))
            .of(Origin::new("Node", *reflector, "spec.bgp.routeReflectorClusterID"))
            .value(id.map_or_else(String::new, |id| id.to_string()))
            .remedy(remedy);
    }
    Reason::new(format!("{node} and {other} have no session")).remedy(remedy)
}

/// Why a node has no session at all.
pub(super) fn nobody(cluster: &mut Cluster, plan: &Plan, family: Family) -> Reason {
    let node = &*plan.node;
    let names: Vec<Arc<str>> = cluster.nodes().cloned().collect();
    let inputs = cluster.inputs_of_sessions(node);
    if let Some(reason) = no_address(inputs, node, family) {
        return reason;
    }
    let other = names.iter().find(|name| {
        let facts = inputs.nodes.get(*name);
        ***name != *node && facts.is_some_and(|facts| facts.address(family).is_some())
    });
    match other {
        Some(other) => between(inputs, plan, other, family),
        None => Reason::new(format!("there is nobody to tell: no other node has an {family} address, and there is no BGPPeer"))
            .remedy("a BGPPeer with the router's peerIP and asNumber"),
    }
}

//! What concerns this node: who peers with it, directly or because a `BGPPeer` is followed in the other direction too.

use std::net::IpAddr;
use std::sync::Arc;

use tortie_api::kinds::bgp_peer::ReversePeering;

use super::{Inputs, NodeFacts, PeerEntry, Remote};
use crate::Family;

/// What another node has to do with this one.
#[derive(Debug, Default, PartialEq, Eq)]
struct Relation<'a> {
    is_mesh: bool,
    is_wireguard: bool,
    shares_address: bool,
    /// Peers by which this node opens a session to it, and by which it opens one to this node.
    forward: Vec<&'a str>,
    reverse: Vec<&'a str>,
}

impl Relation<'_> {
    fn is_any(&self) -> bool {
        *self != Relation::default()
    }
}

impl PeerEntry {
    /// Whether the other side opens a session too, without a `BGPPeer` of its own.
    pub(crate) fn is_reversed(&self) -> bool {
        self.spec.reverse_peering != Some(ReversePeering::Manual)
    }

    fn is_remote(&self, facts: &NodeFacts) -> bool {
        match &self.remote {
            Remote::Address(address, _) => facts.has_address(*address),
            Remote::Selected(selector) => selector.matches(&facts.labels),
            Remote::Workloads | Remote::Unreadable(..) => false,
        }
    }
}

impl Inputs {
    pub(crate) fn is_mesh_enabled(&self) -> bool {
        self.configuration.node_to_node_mesh_enabled.unwrap_or(true)
    }

    /// The port that a node listens on, if that is not left to BIRD.
    pub(crate) fn listen_port(&self, node: &str) -> Option<u16> {
        let own = if node == self.identity.node {
            Some(self.node_configuration.listen_port)
        } else {
            self.listen_ports.get(node).copied()
        };
        let port = own.filter(|port| *port != 0);
        port.or(Some(self.configuration.listen_port).filter(|port| *port != 0))
    }

    /// Finds out what a peer has to do with this node.
    pub(super) fn place_peer(&self, peer: &mut PeerEntry) {
        let nothing = NodeFacts::default();
        let name = &*self.identity.node;
        let local = self.local();
        let facts = local.unwrap_or(&nothing);
        peer.forward = peer.nodes.include(name, &facts.labels);
        peer.reverse = local.is_some() && peer.is_reversed() && peer.is_remote(facts);
    }

    pub(crate) fn place_all_peers(&mut self) {
        let mut peers = std::mem::take(&mut self.peers);
        for (name, peer) in &mut peers {
            self.place_peer(peer);
            self.note_concern(Arc::clone(name), peer.concerns());
        }
        self.peers = peers;
    }

    pub(super) fn note_concern(&mut self, name: Arc<str>, concerns: bool) {
        if concerns {
            self.concerning.insert(name);
        } else {
            self.concerning.remove(&name);
        }
    }

    /// Whether another version of this node's own facts makes another plan.
    pub(super) fn local_concerns(&self, before: Option<&NodeFacts>, after: &NodeFacts) -> bool {
        let Some(before) = before else {
            return true;
        };
        if before.session != after.session || before.is_excluded() != after.is_excluded() {
            return true;
        }
        let name = &*self.identity.node;
        self.peers.values().any(|peer| {
            peer.nodes.include(name, &before.labels) != peer.nodes.include(name, &after.labels)
                || peer.is_remote(before) != peer.is_remote(after)
        })
    }

    /// Whether another version of another node's facts makes another plan of this node.
    pub(super) fn remote_concerns(
        &self,
        name: &str,
        before: Option<&NodeFacts>,
        after: Option<&NodeFacts>,
    ) -> bool {
        let relation = |facts: Option<&NodeFacts>| {
            facts.map_or_else(Relation::default, |facts| self.relation(name, facts))
        };
        let (old, new) = (relation(before), relation(after));
        let is_same = before.map(|facts| &facts.session) == after.map(|facts| &facts.session);
        if is_same {
            old != new
        } else {
            old.is_any() || new.is_any()
        }
    }

    pub(super) fn is_related(&self, name: &str, facts: &NodeFacts) -> bool {
        self.relation(name, facts).is_any()
    }

    fn relation(&self, name: &str, facts: &NodeFacts) -> Relation<'_> {
        let Some(local) = self.local() else {
            return Relation::default();
        };
        let has_both = |family: Family| -> Option<(IpAddr, IpAddr)> {
            Some((local.address(family)?, facts.address(family)?))
        };
        let both = || Family::BOTH.into_iter().filter_map(has_both);
        let is_reflected = local.session.cluster_id.is_some() || facts.session.cluster_id.is_some();
        let is_wireguard = |family| {
            let has = |node: &NodeFacts| *node.session.has_wireguard.get(family);
            has(local) && has(facts) && facts.address(family).is_some()
        };
        let mut relation = Relation {
            is_mesh: self.is_mesh_enabled() && !is_reflected && both().next().is_some(),
            is_wireguard: Family::BOTH.into_iter().any(is_wireguard),
            shares_address: both().any(|(own, other)| own == other),
            ..Relation::default()
        };
        for peer_name in &self.concerning {
            let Some(peer) = self.peers.get(peer_name) else {
                continue;
            };
            if peer.forward && peer.is_remote(facts) {
                relation.forward.push(peer_name);
            }
            if peer.reverse && peer.nodes.include(name, &facts.labels) {
                relation.reverse.push(peer_name);
            }
        }
        relation
    }
}

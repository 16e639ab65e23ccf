//! The sessions that `BGPPeer`s ask for: those of all nodes first, then those of this one, then those that others have with it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::options::{self, Options, Way};
use super::{Context, Explicit, Key, usable_as};
use crate::Family;
use crate::inputs::{self, NodeFacts, PeerEntry, Remote};
use crate::plan::{NextHop, Origin, Peer, PeerKind, Problems, Via};

/// A neighbour, before it is known how to speak with it.
struct Neighbour {
    address: IpAddr,
    port: Option<u16>,
    as_number: u32,
    /// What makes it a route reflector.
    cluster_id: Option<Ipv4Addr>,
    /// Whether it is a node, and may open the session as well as this one.
    is_symmetric: bool,
    kind: PeerKind,
}

pub(super) fn plan(context: &Context, problems: &mut Problems) -> Explicit {
    let mut found = Explicit::default();
    let inputs = context.inputs;
    let mut peers = Vec::new();
    for name in &inputs.concerning {
        let Some(peer) = inputs.peers.get(name) else {
            continue;
        };
        if is_readable(name, peer, problems)
            && let Some(options) = Options::read(context, name, &peer.spec, problems)
        {
            peers.push((name, peer, options));
        }
    }
    for is_global in [true, false] {
        for (name, peer, options) in &peers {
            if !peer.forward || peer.is_global() != is_global {
                continue;
            }
            for neighbour in context.forward(name, peer, problems) {
                let way = match peer.remote {
                    Remote::Address(address, _) => {
                        options::gateway(name, &peer.spec, address, problems)
                    }
                    _ => Some(Way::Known),
                };
                if let Some(way) = way {
                    context.add(&mut found, (name, options), &neighbour, way, problems);
                }
            }
        }
    }
    for (name, peer, options) in &peers {
        if !peer.reverse {
            continue;
        }
        for neighbour in context.reverse(peer) {
            // Whoever asks for a session from this side has said how it is to be.
            if !found.has(&neighbour) {
                context.add(
                    &mut found,
                    (name, options),
                    &neighbour,
                    Way::Known,
                    problems,
                );
            }
        }
    }
    found
}

fn is_readable(name: &Arc<str>, peer: &PeerEntry, problems: &mut Problems) -> bool {
    let unreadable = peer.unreadable();
    for (field, reason) in &unreadable {
        problems.push(Origin::new("BGPPeer", Arc::clone(name), *field).problem(reason.clone()));
    }
    unreadable.is_empty()
}

impl Explicit {
    fn has(&self, neighbour: &Neighbour) -> bool {
        self.sessions.contains_key(&neighbour.key())
    }
}

impl Neighbour {
    fn key(&self) -> Key {
        (self.address, self.port)
    }
}

impl Context<'_> {
    /// The neighbours that a peer names.
    fn forward(
        &self,
        name: &Arc<str>,
        peer: &PeerEntry,
        problems: &mut Problems,
    ) -> Vec<Neighbour> {
        let kind = if peer.is_global() {
            PeerKind::Global
        } else {
            PeerKind::Node
        };
        match &peer.remote {
            Remote::Address(address, port) => {
                let neighbour = self.at_address(name, peer, (*address, *port), kind, problems);
                neighbour.into_iter().collect()
            }
            Remote::Selected(selector) => {
                let nodes = self.inputs.nodes.iter();
                let selected = nodes.filter(|(_, node)| selector.matches(&node.labels));
                let of_node = |(name, node)| self.of_node(name, node, &Family::BOTH, kind);
                selected.flat_map(of_node).collect()
            }
            Remote::Workloads => self.workloads(name, peer, problems),
            Remote::Unreadable(..) => Vec::new(),
        }
    }

    fn at_address(
        &self,
        name: &Arc<str>,
        peer: &PeerEntry,
        (address, port): Key,
        kind: PeerKind,
        problems: &mut Problems,
    ) -> Option<Neighbour> {
        let as_number = has_as_number(name, peer, problems)?;
        let family = Family::of(address);
        if self.own_address(family).is_none() {
            let origin = Origin::new("BGPPeer", Arc::clone(name), "spec.peerIP");
            let node = &self.inputs.identity.node;
            problems.push(origin.problem(format!(
                "Node({node}) has no {family} address from which a session with {address} could start: its \
                 spec.bgp.ip{}Address is empty or cannot be read",
                if family == Family::V4 { "v4" } else { "v6" }
            )));
        }
        let nodes = self.nodes.get(&address).map_or(&[][..], Vec::as_slice);
        // A node says itself at which port it listens.
        let same = nodes
            .iter()
            .find(|(_, node)| self.node_as(node) == as_number);
        let listen_port = || self.inputs.listen_port(same?.0);
        Some(Neighbour {
            address,
            port: port.or_else(listen_port),
            as_number,
            cluster_id: None,
            is_symmetric: kind == PeerKind::Global && !nodes.is_empty(),
            kind,
        })
    }

    fn workloads(
        &self,
        name: &Arc<str>,
        peer: &PeerEntry,
        problems: &mut Problems,
    ) -> Vec<Neighbour> {
        let workloads = self.inputs.workload_peers.iter();
        let mut workloads = workloads
            .filter(|(_, peer)| *peer.bgp_peer == **name)
            .peekable();
        if workloads.peek().is_none() {
            return Vec::new();
        }
        let Some(as_number) = has_as_number(name, peer, problems) else {
            return Vec::new();
        };
        let addresses = workloads.flat_map(|(id, peer)| {
            let v4 = peer.ipv4.map(IpAddr::V4).into_iter();
            let addresses = v4.chain(peer.ipv6.map(IpAddr::V6));
            addresses.map(move |address| (id, address))
        });
        let mut neighbours = Vec::new();
        for (id, address) in addresses {
            if !inputs::is_unicast(address) {
                let origin = Origin::new("WorkloadEndpoint", id.as_str(), "spec.ipNetworks");
                problems.push(origin.problem(format!(
                    "{address} is no address of a neighbour; no session is opened"
                )));
                continue;
            }
            neighbours.push(Neighbour {
                address,
                port: None,
                as_number,
                cluster_id: None,
                is_symmetric: false,
                kind: PeerKind::LocalWorkload,
            });
        }
        neighbours
    }

    /// The neighbours on the other side of a peer that names this node.
    fn reverse(&self, peer: &PeerEntry) -> Vec<Neighbour> {
        let families = match &peer.remote {
            Remote::Address(address, port) if self.is_this_node(peer, *port) => {
                vec![Family::of(*address)]
            }
            Remote::Selected(_) => Family::BOTH.to_vec(),
            _ => return Vec::new(),
        };
        let nodes = self.inputs.nodes.iter();
        let others = nodes.filter(|(name, node)| peer.nodes.include(name, &node.labels));
        let of_node = |(name, node)| self.of_node(name, node, &families, PeerKind::Node);
        others.flat_map(of_node).collect()
    }

    /// Whether AS number and port of a peer with this node's address are this node's.
    fn is_this_node(&self, peer: &PeerEntry, port: Option<u16>) -> bool {
        let asked = match peer.spec.as_number.0 {
            0 => self.settings.global_as,
            number => number,
        };
        let listens = self.inputs.listen_port(&self.inputs.identity.node);
        let is_port = match (port, listens) {
            (Some(port), Some(listens)) => port == listens,
            _ => true,
        };
        let own = self.inputs.local().map(|node| self.node_as(node));
        own == Some(asked) && is_port
    }

    fn of_node(
        &self,
        name: &Arc<str>,
        node: &NodeFacts,
        families: &[Family],
        kind: PeerKind,
    ) -> Vec<Neighbour> {
        if **name == *self.inputs.identity.node {
            return Vec::new();
        }
        let addresses = families.iter().filter_map(|family| node.address(*family));
        addresses
            .map(|address| Neighbour {
                address,
                port: self.inputs.listen_port(name),
                as_number: self.node_as(node),
                cluster_id: node.session.cluster_id,
                is_symmetric: false,
                kind,
            })
            .collect()
    }

    fn node_as(&self, node: &NodeFacts) -> u32 {
        usable_as(node).unwrap_or(self.settings.global_as)
    }

    fn add(
        &self,
        found: &mut Explicit,
        (name, options): (&Arc<str>, &Options),
        neighbour: &Neighbour,
        way: Way,
        problems: &mut Problems,
    ) {
        let address = neighbour.address;
        let family = Family::of(address);
        let Some(own) = self.own_address(family).filter(|own| *own != address) else {
            return;
        };
        let origin = Origin::new("BGPPeer", Arc::clone(name), "spec");
        let peer = self.peer(options, neighbour, own, origin);
        if let Some(first) = found.sessions.get(&neighbour.key()) {
            if !is_same_session(first, &peer) {
                let first = &first.origin.name;
                problems.push(peer.origin.problem(format!(
                    "BGPPeer({first}) has a session with {address} too, with other options, which count"
                )));
            }
            return;
        }
        found.sessions.insert(neighbour.key(), peer);
        if let Way::By(gateway) = way
            && !found.reachable.iter().any(|via| via.address == address)
        {
            found.reachable.push(Via {
                address,
                gateway,
                origin: Origin::new("BGPPeer", Arc::clone(name), "spec.reachableBy"),
            });
        }
    }

    fn peer(&self, options: &Options, neighbour: &Neighbour, own: IpAddr, origin: Origin) -> Peer {
        let address = neighbour.address;
        let own_as = options.local_as.unwrap_or(self.settings.as_number);
        let is_internal = neighbour.as_number == own_as;
        let keeps = options.keeps_external_next_hop && !is_internal;
        let cluster = self.settings.cluster_id;
        let is_client = is_internal && cluster.is_some() && neighbour.cluster_id != cluster;
        let source = match neighbour.kind {
            PeerKind::LocalWorkload => self.workload_side(Family::of(address)).or(Some(own)),
            _ => Some(own),
        };
        Peer {
            name: neighbour.kind.name(address, neighbour.port),
            kind: neighbour.kind,
            address,
            port: neighbour.port,
            as_number: neighbour.as_number,
            local_as: options.local_as,
            source: source.filter(|_| options.has_source),
            is_passive: neighbour.kind == PeerKind::LocalWorkload
                || neighbour.is_symmetric && address.to_string() > own.to_string(),
            ttl_security: options.ttl_security,
            restart_time: options.restart_time,
            keepalive_time: options.keepalive_time,
            reflects: cluster.filter(|_| is_client),
            next_hop: if keeps {
                NextHop::Keep
            } else {
                options.next_hop
            },
            allowed_local_as: options.allowed_local_as,
            password: options.password.clone(),
            filters: options.filters.clone(),
            origin,
        }
    }

    /// The address that the node shows to its workloads.
    fn workload_side(&self, family: Family) -> Option<IpAddr> {
        let spec = &self.inputs.configuration;
        let text = match family {
            Family::V4 => &spec.local_workload_peering_ipv4,
            Family::V6 => &spec.local_workload_peering_ipv6,
        };
        let address = tortie_api::net::parse_ip(text)?;
        (Family::of(address) == family).then_some(address)
    }
}

fn has_as_number(name: &Arc<str>, peer: &PeerEntry, problems: &mut Problems) -> Option<u32> {
    let number = peer.spec.as_number.0;
    if number == 0 {
        let origin = Origin::new("BGPPeer", Arc::clone(name), "spec.asNumber");
        problems.push(origin.problem(
            "it is missing or 0: say the neighbour's AS number, 1 to 4294967295; no session is opened",
        ));
    }
    (number != 0).then_some(number)
}

fn is_same_session(a: &Peer, b: &Peer) -> bool {
    let without = |peer: &Peer| Peer {
        origin: Origin::new("BGPPeer", "", ""),
        name: String::new(),
        kind: PeerKind::Node,
        ..peer.clone()
    };
    without(a) == without(b)
}

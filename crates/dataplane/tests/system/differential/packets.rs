//! Which packets are sent: between all places of a world, with the ports that its rules name and their neighbours.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::Rng;
use tortie_api::names::PolicyId;
use tortie_api::scalar::Protocol;
use tortie_engine::Message;
use tortie_engine::input::Icmp;
use tortie_engine::message::Rule;
use tortie_engine::verdict::{End, Flow, Gate, Hop};
use tortie_testkit::net::{Packet, Ports};

use crate::differential::places::{HostEndpoints, NODE, Place, Places};

/// Ports that endpoints and services have, with some that none has.
const DESTINATIONS: [u16; 9] = [22, 53, 79, 80, 81, 443, 2379, 8080, 65535];
const SOURCES: [u16; 4] = [53, 80, 8080, 49152];

/// Kinds of ICMP that begin something, for IPv4 and IPv6: echo, and one that no rule names.
const ICMP: [[u8; 2]; 2] = [[8, 13], [128, 139]];

/// Workloads may not send these, whatever policy says.
const VXLAN: u16 = 4789;

/// A packet, and where it begins and ends.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) packet: Packet,
}

/// The ports that rules in force name.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    policies: BTreeMap<Arc<PolicyId>, [BTreeSet<u16>; 2]>,
    profiles: BTreeMap<Arc<str>, [BTreeSet<u16>; 2]>,
}

/// Two places with addresses of the same family.
type Pair = (Place, IpAddr, Place, IpAddr);

impl Case {
    /// The packet, without the endpoints at its ends.
    pub(crate) fn flow(&self) -> Flow {
        let end = |address| End {
            address,
            endpoint: None,
        };
        let mut flow = Flow {
            source: end(self.source),
            destination: end(self.destination),
            protocol: None,
            source_port: None,
            destination_port: None,
            icmp: None,
        };
        let (protocol, ports) = match self.packet {
            Packet::Tcp(ports) => (Protocol::Tcp, Some(ports)),
            Packet::Udp(ports) => (Protocol::Udp, Some(ports)),
            Packet::UdpLite(ports) => (Protocol::UdpLite, Some(ports)),
            Packet::Sctp(ports) => (Protocol::Sctp, Some(ports)),
            Packet::Authenticated(_) => (Protocol::Number(51), None),
            Packet::Other(number) => (Protocol::Number(number), None),
            Packet::Icmp { kind, code } => {
                flow.icmp = Some(Icmp {
                    r#type: kind,
                    code: Some(code),
                });
                let is_v4 = self.source.is_ipv4();
                (
                    if is_v4 {
                        Protocol::Icmp
                    } else {
                        Protocol::Icmpv6
                    },
                    None,
                )
            }
        };
        flow.protocol = Some(protocol);
        flow.source_port = ports.and_then(|ports| ports.source);
        flow.destination_port = ports.map(|ports| ports.destination);
        flow
    }
}

impl Case {
    /// The node as the packet passes it.
    pub(crate) fn hop(&self, hosts: &HostEndpoints) -> Hop {
        let gate = |place: &Place| match place {
            Place::Pod(pod) => Gate::Workload(pod.key.clone()),
            Place::Host => Gate::Host,
            Place::Outside => Gate::Interface(hosts.uplink.clone()),
        };
        Hop {
            node: NODE.to_owned(),
            from: gate(&self.from),
            to: gate(&self.to),
            all_interfaces: hosts.any.clone(),
            source: None,
            arrives_for: None,
            translates: false,
        }
    }

    /// Whether it may be an answer from a port that stays open.
    fn may_answer(&self, places: &Places) -> bool {
        let flow = self.flow();
        let (protocol, port) = (flow.protocol, flow.source_port);
        let known = protocol.zip(port);
        known.is_some_and(|(protocol, port)| places.may_answer(&protocol, port))
    }
}

impl Vocabulary {
    pub(crate) fn note(&mut self, messages: &[Message]) {
        for message in messages {
            match message {
                Message::ActivePolicyUpdate(id, policy) => {
                    let rules = policy.inbound_rules.iter().chain(&policy.outbound_rules);
                    self.policies.insert(Arc::clone(id), ports(rules));
                }
                Message::ActivePolicyRemove(id) => {
                    self.policies.remove(id);
                }
                Message::ActiveProfileUpdate(name, profile) => {
                    let rules = profile.inbound_rules.iter().chain(&profile.outbound_rules);
                    self.profiles.insert(Arc::clone(name), ports(rules));
                }
                Message::ActiveProfileRemove(name) => {
                    self.profiles.remove(name);
                }
                _ => {}
            }
        }
    }

    /// Packets of one family.
    fn packets(&self, is_v4: bool) -> Vec<Packet> {
        let all = || self.policies.values().chain(self.profiles.values());
        let named = |side: usize| all().flat_map(move |ports| ports[side].iter().copied());
        let sources: BTreeSet<u16> = named(0).chain(SOURCES).collect();
        let destinations: BTreeSet<u16> = named(1).chain(DESTINATIONS).collect();
        let mut packets = Vec::new();
        for kind in [Packet::Tcp, Packet::Udp, Packet::Sctp] {
            for destination in &destinations {
                let source = Some(49152);
                packets.push(kind(Ports {
                    source,
                    destination: *destination,
                }));
            }
            for source in &sources {
                for destination in [53, 80, 8080] {
                    let source = Some(*source);
                    packets.push(kind(Ports {
                        source,
                        destination,
                    }));
                }
            }
        }
        let udp_lite = |destination| {
            Packet::UdpLite(Ports {
                source: Some(49152),
                destination,
            })
        };
        packets.extend([80, 8080].map(udp_lite));
        packets.extend([47, 50, 253].map(Packet::Other));
        for kind in ICMP[usize::from(!is_v4)] {
            packets.extend([0, 1].map(|code| Packet::Icmp { kind, code }));
        }
        packets
            .retain(|packet| !matches!(packet, Packet::Udp(ports) if ports.destination == VXLAN));
        packets
    }
}

/// The sources and destinations that rules tell apart.
fn ports<'a>(rules: impl Iterator<Item = &'a Rule>) -> [BTreeSet<u16>; 2] {
    let mut found = [BTreeSet::new(), BTreeSet::new()];
    for rule in rules {
        for (side, found) in [&rule.src, &rule.dst].into_iter().zip(&mut found) {
            for range in side.ports.iter().chain(&side.not_ports) {
                let around = [
                    range.first.saturating_sub(1),
                    range.first,
                    range.last,
                    range.last.saturating_add(1),
                ];
                found.extend(around.into_iter().filter(|port| *port > 0));
            }
        }
    }
    found
}

/// Chooses packets: from every place to every other as far as the number allows, each with some content.
pub(crate) fn choose(
    places: &Places,
    vocabulary: &Vocabulary,
    count: usize,
    rng: &mut impl Rng,
) -> Vec<Case> {
    let packets = [true, false].map(|is_v4| vocabulary.packets(is_v4));
    let pods = || {
        places.pods.iter().flat_map(|(pod, addresses)| {
            addresses
                .iter()
                .map(|address| (Place::Pod(Arc::clone(pod)), *address))
        })
    };
    let at = |place: Place, addresses: &[IpAddr]| -> Vec<(Place, IpAddr)> {
        addresses
            .iter()
            .map(|address| (place.clone(), *address))
            .collect()
    };
    let pods: Vec<(Place, IpAddr)> = pods().collect();
    let host = at(Place::Host, &places.host);
    let outside = at(Place::Outside, &places.outside);
    let hosts = &places.host_endpoints;
    // Without policies for the host there is little to see.
    let of_host = if hosts.uplink.is_some() || hosts.any.is_some() {
        4
    } else {
        1
    };
    let ways = [
        (&pods, &pods, 10),
        (&outside, &pods, 7),
        (&pods, &outside, 6),
        (&outside, &host, of_host),
        (&host, &outside, of_host),
        (&pods, &host, 1),
        (&host, &pods, 1),
    ];
    let whole: usize = ways.iter().map(|(_, _, share)| share).sum();
    let mut cases = Vec::with_capacity(count);
    for (from, to, share) in ways {
        let pairs = pairs(from, to);
        if pairs.is_empty() {
            continue;
        }
        let first = below(pairs.len(), rng);
        for number in 0..(count * share).div_ceil(whole) {
            let (from, source, to, destination) = pairs[(first + number) % pairs.len()].clone();
            let packets = &packets[usize::from(source.is_ipv6())];
            let packet = packets[below(packets.len(), rng)];
            let case = Case {
                from,
                to,
                source,
                destination,
                packet,
            };
            if !case.may_answer(places) {
                cases.push(case);
            }
        }
    }
    cases
}

fn pairs(from: &[(Place, IpAddr)], to: &[(Place, IpAddr)]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (a, source) in from {
        let others = to.iter().filter(|(b, destination)| {
            // What a pod sends to itself never leaves it.
            a != b && source.is_ipv4() == destination.is_ipv4()
        });
        pairs.extend(others.map(|(b, destination)| (a.clone(), *source, b.clone(), *destination)));
    }
    pairs
}

/// A number below another.
pub(crate) fn below(end: usize, rng: &mut impl Rng) -> usize {
    usize::try_from(rng.next_u32()).unwrap_or_default() % end
}

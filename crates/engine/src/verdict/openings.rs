//! What is open between two ends, if a question does not say which packet it is about.
//!
//! Rules tell packets apart by protocol, port and type of ICMP. Between the ports that they name, all are treated alike, so
//! that one of each stretch is asked about.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::Serialize;
use tortie_api::scalar::Protocol;

use super::{EndpointKey, Flow, Hop, Judge, Outcome};
use crate::input::Icmp;
use crate::is_default;
use crate::locals::LocalEndpoint;
use crate::message::{PortRange, Rule, SetId};

/// So many times are rules compared with packets at most: more would keep the user waiting.
const MOST: usize = 20_000_000;

/// What may pass between two ends, and what may not.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Openings {
    /// What may.
    pub open: Vec<Opening>,
    /// What may not.
    pub closed: Vec<Opening>,
}

/// Packets that are treated alike.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Opening {
    /// The protocol; none for all that the other list does not have.
    pub protocol: Option<Protocol>,
    /// The ports that they go to; all where empty.
    #[serde(skip_serializing_if = "is_default")]
    pub ports: Vec<PortRange>,
    /// The types of ICMP; all where empty.
    #[serde(skip_serializing_if = "is_default")]
    pub icmp: Vec<Icmp>,
    /// Whether it is all types of ICMP but those.
    #[serde(skip_serializing_if = "is_default")]
    pub but: bool,
}

/// What rules tell apart.
#[derive(Default)]
struct Named {
    /// Ports at which something may begin to be different.
    starts: BTreeSet<u32>,
    icmp: BTreeSet<(u8, Option<u8>)>,
    protocols: BTreeSet<u8>,
    rules: usize,
}

impl Openings {
    /// Whether all may pass.
    pub fn is_all_open(&self) -> bool {
        self.closed.is_empty()
    }

    /// Whether nothing may pass.
    pub fn is_all_closed(&self) -> bool {
        self.open.is_empty()
    }

    fn add(&mut self, is_open: bool, opening: Opening) {
        if is_open {
            self.open.push(opening);
        } else {
            self.closed.push(opening);
        }
    }
}

impl Judge<'_> {
    /// What is open for packets like this one, with any of the protocols, ports and types of ICMP that it does not say.
    /// None if there are too many rules to tell.
    pub fn openings(&mut self, flow: &Flow, hops: &[Hop]) -> Option<Openings> {
        let named = self.named(flow, hops);
        if named.rules.saturating_mul(3 * named.starts.len()) > MOST {
            return None;
        }
        let mut openings = Openings::default();
        match &flow.protocol {
            Some(protocol) => self.of_protocol(protocol, &named, flow, hops, &mut openings),
            None => self.of_all(&named, flow, hops, &mut openings),
        }
        Some(openings)
    }

    fn of_all(&mut self, named: &Named, flow: &Flow, hops: &[Hop], openings: &mut Openings) {
        let icmp = if flow.destination.address.is_ipv4() {
            Protocol::Icmp
        } else {
            Protocol::Icmpv6
        };
        let usual = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp, icmp];
        let others = named.protocols.iter().copied();
        let others = others.filter(|number| usual.iter().all(|p| p.number() != Some(*number)));
        let others: Vec<Protocol> = others.map(Protocol::Number).collect();
        for protocol in usual.iter().chain(&others) {
            self.of_protocol(protocol, named, flow, hops, openings);
        }
        let is_open = self.is_open(flow, hops);
        openings.add(is_open, Opening::default());
        // What is different is in the other list.
        let rest = if is_open {
            &mut openings.open
        } else {
            &mut openings.closed
        };
        rest.retain(|opening| opening.protocol.is_none());
    }

    fn of_protocol(
        &mut self,
        protocol: &Protocol,
        named: &Named,
        flow: &Flow,
        hops: &[Hop],
        openings: &mut Openings,
    ) {
        let flow = Flow {
            protocol: Some(protocol.clone()),
            ..flow.clone()
        };
        let found = if protocol.supports_ports() {
            self.of_ports(named, &flow, hops)
        } else if protocol.is_icmp() || protocol.is_icmpv6() {
            self.of_icmp(named, &flow, hops)
        } else {
            let is_open = self.is_open(&flow, hops);
            [is_open, !is_open].map(|is_it| is_it.then(Opening::default))
        };
        for (is_open, opening) in [true, false].into_iter().zip(found) {
            if let Some(opening) = opening {
                let protocol = Some(protocol.clone());
                openings.add(
                    is_open,
                    Opening {
                        protocol,
                        ..opening
                    },
                );
            }
        }
    }

    /// The ports that are open, and those that are not.
    fn of_ports(&mut self, named: &Named, flow: &Flow, hops: &[Hop]) -> [Option<Opening>; 2] {
        let mut ranges: [Vec<PortRange>; 2] = [Vec::new(), Vec::new()];
        let starts: Vec<u32> = named.starts.iter().copied().collect();
        let ends = starts.iter().skip(1).copied().chain([1 << 16]);
        for (start, end) in starts.iter().zip(ends) {
            let (Ok(first), Ok(last)) = (u16::try_from(*start), u16::try_from(end - 1)) else {
                continue;
            };
            let flow = Flow {
                destination_port: Some(first),
                ..flow.clone()
            };
            let ranges = &mut ranges[usize::from(!self.is_open(&flow, hops))];
            match ranges.last_mut() {
                Some(before) if u32::from(before.last) + 1 == *start => before.last = last,
                _ => ranges.push(PortRange { first, last }),
            }
        }
        let all = |ports: &[PortRange]| {
            matches!(
                ports,
                [PortRange {
                    first: 1,
                    last: u16::MAX
                }]
            )
        };
        ranges.map(|ports| {
            let is_there = !ports.is_empty();
            is_there.then(|| Opening {
                ports: if all(&ports) { Vec::new() } else { ports },
                ..Opening::default()
            })
        })
    }

    /// The types of ICMP that are open, and those that are not.
    fn of_icmp(&mut self, named: &Named, flow: &Flow, hops: &[Hop]) -> [Option<Opening>; 2] {
        let mut ask = |icmp: Option<Icmp>| {
            let flow = Flow {
                icmp,
                ..flow.clone()
            };
            self.is_open(&flow, hops)
        };
        let is_rest_open = ask(None);
        let mut different = Vec::new();
        let types: BTreeSet<u8> = named.icmp.iter().map(|(kind, _)| *kind).collect();
        for kind in types {
            let whole = Icmp {
                r#type: kind,
                code: None,
            };
            let is_open = ask(Some(whole));
            if is_open != is_rest_open {
                different.push(whole);
            }
            for (_, code) in named
                .icmp
                .iter()
                .filter(|(k, code)| *k == kind && code.is_some())
            {
                let one = Icmp {
                    code: *code,
                    ..whole
                };
                if ask(Some(one)) != is_open {
                    different.push(one);
                }
            }
        }
        let rest = Opening {
            but: !different.is_empty(),
            icmp: different.clone(),
            ..Opening::default()
        };
        let others = (!different.is_empty()).then(|| Opening {
            icmp: different,
            ..Opening::default()
        });
        if is_rest_open {
            [Some(rest), others]
        } else {
            [others, Some(rest)]
        }
    }

    fn is_open(&mut self, flow: &Flow, hops: &[Hop]) -> bool {
        self.pass(flow, hops).verdict == Outcome::Allow
    }

    fn named(&mut self, flow: &Flow, hops: &[Hop]) -> Named {
        let mut named = Named::default();
        named.starts.insert(1);
        let ends = [&flow.source, &flow.destination];
        let ends = ends.into_iter().filter_map(|end| end.endpoint.as_ref());
        let met: BTreeSet<&EndpointKey> =
            hops.iter().flat_map(Hop::endpoints).chain(ends).collect();
        for key in met {
            self.named_at(key, flow.destination.address, &mut named);
        }
        named
    }

    fn named_at(&mut self, key: &EndpointKey, destination: IpAddr, named: &mut Named) {
        let engine = self.engine;
        let Some(local) = engine.local(key) else {
            return;
        };
        if let LocalEndpoint::Host(host, _) = &local.endpoint {
            let failsafe = &self.host(&host.node).failsafe;
            let ports = failsafe.inbound.iter().chain(&failsafe.outbound);
            ports.for_each(|open| named.range(open.port, open.port));
        }
        let lists = engine.policies.classes.lists(local.class);
        let all = [
            &lists.normal,
            &lists.untracked,
            &lists.pre_dnat,
            &lists.forward,
        ];
        let tiers = all.into_iter().flat_map(|tiers| tiers.iter());
        let policies: BTreeSet<_> = tiers
            .flat_map(|tier| tier.ingress_policies.iter().chain(&tier.egress_policies))
            .collect();
        let ports_in = |set: &SetId| -> Vec<u16> {
            let found = engine.sets.find(set);
            found.map_or(Vec::new(), |set| {
                engine.sets.members(set).ports_of(destination).collect()
            })
        };
        for id in policies {
            let judged = self.judged_policy(id);
            let (inbound, outbound) = (
                &judged.message.inbound_rules,
                &judged.message.outbound_rules,
            );
            named.note(inbound.iter().chain(outbound), &ports_in);
        }
        for name in local.endpoint.profiles() {
            if let Some(idx) = engine.profiles.find(name) {
                let judged = self.judged_profile(idx);
                let (inbound, outbound) = (
                    &judged.message.inbound_rules,
                    &judged.message.outbound_rules,
                );
                named.note(inbound.iter().chain(outbound), &ports_in);
            }
        }
    }
}

impl Named {
    fn note<'r>(
        &mut self,
        rules: impl Iterator<Item = &'r Rule>,
        ports_in: &dyn Fn(&SetId) -> Vec<u16>,
    ) {
        for rule in rules {
            self.rules += 1;
            let protocols = [&rule.protocol, &rule.not_protocol].into_iter().flatten();
            self.protocols
                .extend(protocols.filter_map(Protocol::number));
            let icmp = [rule.icmp, rule.not_icmp].into_iter().flatten();
            self.icmp.extend(icmp.map(|icmp| (icmp.r#type, icmp.code)));
            let side = &rule.dst;
            for range in side.ports.iter().chain(&side.not_ports) {
                self.range(range.first, range.last);
            }
            let sets = side.named_port_sets.iter().chain(&side.not_named_port_sets);
            for port in sets.chain(&side.port_sets).flat_map(ports_in) {
                self.range(port, port);
            }
        }
    }

    /// Ports that may be treated otherwise than those before and after them.
    fn range(&mut self, first: u16, last: u16) {
        self.starts.insert(u32::from(first.max(1)));
        self.starts.insert(u32::from(last) + 1);
    }
}

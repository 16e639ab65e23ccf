//! The way of a packet through nodes, and what it meets there.
//!
//! At the ends of a connection stand the policies of its endpoints. On each node that a packet passes it also meets those of
//! host endpoints: before connection tracking and before destination NAT, where it comes in by an interface, and where it
//! is forwarded, once for the interface that it comes in by and once for that by which it leaves. What one of the first
//! two accepts, none of the host's other policies is asked about.

use std::borrow::Cow;
use std::net::IpAddr;

use serde::Serialize;
use tortie_api::rule::Action;
use tortie_config::{EndpointToHostAction, Origin};

use super::judged::Direction;
use super::{By, End, EndpointKey, Flow, Judge, Point, Side, Verdict};

/// A node that a packet passes.
#[derive(Debug, Clone, PartialEq)]
pub struct Hop {
    pub node: String,
    /// Where the packet comes from.
    pub from: Gate,
    /// Where it goes to.
    pub to: Gate,
    /// The host endpoint for all interfaces that have none of their own, those of workloads among them.
    pub all_interfaces: Option<EndpointKey>,
    /// Its source as this node sees it, where a node before it has translated that.
    pub source: Option<End>,
    /// Its destination when it comes in, where that is translated here or later.
    pub arrives_for: Option<Translated>,
    /// Whether it is translated here.
    pub translates: bool,
}

/// Where a packet comes into a node, or leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// A workload on the node.
    Workload(EndpointKey),
    /// The node itself.
    Host,
    /// Other machines, by an interface that has this host endpoint of its own.
    Interface(Option<EndpointKey>),
}

/// A destination before it is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translated {
    pub address: IpAddr,
    pub port: Option<u16>,
}

/// What policies of a host said to a packet on its way.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    pub node: String,
    /// Whether the packet was coming in, and not going out.
    pub is_inbound: bool,
    /// What was said.
    #[serde(flatten)]
    pub side: Side,
}

impl Judge<'_> {
    /// Whether a packet gets through all of these nodes, and why. Without nodes, the endpoints at both ends are asked.
    pub fn pass(&mut self, flow: &Flow, hops: &[Hop]) -> Verdict {
        if hops.is_empty() {
            return self.verdict(flow);
        }
        let mut egress = None;
        let mut ingress = None;
        let mut on_the_way = Vec::new();
        for hop in hops {
            let mut flow = Cow::Borrowed(flow);
            if let Some(source) = &hop.source {
                flow.to_mut().source.clone_from(source);
            }
            if let Some(original) = hop.arrives_for.filter(|_| !hop.translates) {
                original.put_into(flow.to_mut());
            }
            let passed = Passing {
                judge: self,
                hop,
                flow: &flow,
                on_the_way: &mut on_the_way,
            };
            let (out, into) = passed.ask();
            egress = egress.or(out);
            ingress = into.or(ingress);
        }
        let open = || {
            Side::unasked(By::NoEndpoint {
                action: Action::Allow,
            })
        };
        Verdict::new(
            egress.unwrap_or_else(open),
            ingress.unwrap_or_else(open),
            on_the_way,
        )
    }
}

impl Translated {
    fn put_into(self, flow: &mut Flow) {
        flow.destination = End {
            address: self.address,
            endpoint: None,
        };
        flow.destination_port = self.port;
    }
}

impl Hop {
    /// The host endpoint that policy at a gate is of.
    fn host_endpoint<'a>(&'a self, gate: &'a Gate) -> Option<&'a EndpointKey> {
        match gate {
            Gate::Interface(own) => own.as_ref().or(self.all_interfaces.as_ref()),
            Gate::Workload(_) => self.all_interfaces.as_ref(),
            Gate::Host => None,
        }
    }

    /// All endpoints whose policies a packet may meet here.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = &EndpointKey> {
        [&self.from, &self.to]
            .into_iter()
            .filter_map(|gate| match gate {
                Gate::Workload(key) | Gate::Interface(Some(key)) => Some(key),
                Gate::Host | Gate::Interface(None) => None,
            })
            .chain(&self.all_interfaces)
    }
}

/// A packet on a node.
struct Passing<'a, 'j> {
    judge: &'a mut Judge<'j>,
    hop: &'a Hop,
    flow: &'a Flow,
    on_the_way: &'a mut Vec<Stage>,
}

impl Passing<'_, '_> {
    /// What is said to a packet that leaves its source here, and to one that reaches its destination here.
    fn ask(mut self) -> (Option<Side>, Option<Side>) {
        if self.hop.from == Gate::Host {
            return self.sent_by_host();
        }
        let early = self.before_routing();
        match (&self.hop.from, &self.hop.to) {
            (Gate::Workload(workload), Gate::Host) => {
                self.note_early(early);
                let out = self.side(Some(workload), Direction::Egress);
                (Some(out), Some(self.endpoint_to_host()))
            }
            (from, Gate::Host) => {
                let side = early
                    .unwrap_or_else(|| self.side(self.hop.host_endpoint(from), Direction::Ingress));
                (None, Some(side))
            }
            (from, to) => self.forwarded(from, to, early),
        }
    }

    fn sent_by_host(&mut self) -> (Option<Side>, Option<Side>) {
        let hop = self.hop;
        match &hop.to {
            Gate::Workload(workload) => {
                let by = By::OwnNode {
                    node: hop.node.clone(),
                    action: Action::Allow,
                };
                let mut side = Side::unasked(by);
                side.endpoint = Some(workload.clone());
                (None, Some(side))
            }
            // The loopback interface has no host endpoint of its own.
            Gate::Host => {
                let any = hop.all_interfaces.as_ref();
                let out = self.side(any, Direction::Egress);
                (Some(out), Some(self.side(any, Direction::Ingress)))
            }
            to @ Gate::Interface(_) => (
                Some(self.side(hop.host_endpoint(to), Direction::Egress)),
                None,
            ),
        }
    }

    fn forwarded(
        &mut self,
        from: &Gate,
        to: &Gate,
        early: Option<Side>,
    ) -> (Option<Side>, Option<Side>) {
        let is_undecided = early.is_none();
        self.note_early(early);
        if is_undecided {
            self.forward(from, Direction::Ingress);
        }
        let mut side_of = |gate: &Gate, direction| match gate {
            Gate::Workload(workload) => Some(self.side(Some(workload), direction)),
            Gate::Host | Gate::Interface(_) => None,
        };
        let out = side_of(from, Direction::Egress);
        let into = side_of(to, Direction::Ingress);
        self.forward(to, Direction::Egress);
        (out, into)
    }

    /// What is decided before it is clear where the packet goes. Policies before connection tracking are for one interface;
    /// those before NAT may be for all.
    fn before_routing(&mut self) -> Option<Side> {
        let hop = self.hop;
        let own = match &hop.from {
            Gate::Interface(own) => own.as_ref(),
            Gate::Workload(_) | Gate::Host => None,
        };
        let before_nat = [own, hop.all_interfaces.as_ref()];
        let before_nat = before_nat
            .into_iter()
            .flatten()
            .find(|key| self.judge.has_pre_dnat(key));
        let mut flow = Cow::Borrowed(self.flow);
        if let Some(original) = hop.arrives_for {
            original.put_into(flow.to_mut());
        }
        for (key, point) in [(own, Point::Untracked), (before_nat, Point::PreDnat)] {
            let Some(key) = key else { continue };
            let decided = self.judge.side_at(&flow, key, Direction::Ingress, point);
            if decided.is_some() {
                return decided;
            }
        }
        None
    }

    fn note_early(&mut self, early: Option<Side>) {
        if let Some(side) = early {
            self.note(side, true);
        }
    }

    /// Policies for forwarded packets. Profiles have no say about them.
    fn forward(&mut self, gate: &Gate, direction: Direction) {
        let Some(key) = self.hop.host_endpoint(gate) else {
            return;
        };
        let decided = self
            .judge
            .side_at(self.flow, key, direction, Point::Forward);
        if let Some(side) = decided {
            self.note(side, direction == Direction::Ingress);
        }
    }

    fn note(&mut self, side: Side, is_inbound: bool) {
        self.on_the_way.push(Stage {
            node: self.hop.node.clone(),
            is_inbound,
            side,
        });
    }

    fn endpoint_to_host(&mut self) -> Side {
        let node = &self.hop.node;
        let host = self.judge.host(node);
        let setting = host.endpoint_to_host;
        Side::unasked(By::EndpointToHost {
            node: node.clone(),
            setting,
            is_set: host.endpoint_to_host_origin != Origin::Default,
            action: match setting {
                EndpointToHostAction::Drop => Action::Deny,
                EndpointToHostAction::Return | EndpointToHostAction::Accept => Action::Allow,
            },
        })
    }

    fn side(&mut self, endpoint: Option<&EndpointKey>, direction: Direction) -> Side {
        self.judge.side(self.flow, endpoint, direction)
    }
}

//! Who is asked about a connection: the endpoints at its ends, and what applies to them.

use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;
use tortie_api::names::PolicyId;
use tortie_api::rule::Action;
use tortie_api::scalar::Protocol;
use tortie_config::{FailsafePort, HostConfig};

use super::judged::{Direction, Judged};
use super::kernel::{Kernel, Place};
use super::{By, EndpointKey, Flow, Outcome, Point, Side, Step, Verdict};
use crate::Engine;
use crate::engine::profile_rules;
use crate::input::HostEndpointKey;
use crate::locals::{Local, LocalEndpoint};
use crate::message::{AUTHENTICATION_HEADER, Policy, Profile};
use crate::policies::packed;
use crate::profiles::ProfileIdx;

/// Answers for connections, with what the engine last flushed.
pub struct Judge<'a> {
    pub(super) engine: &'a Engine,
    pub(super) kernel: Option<&'a dyn Kernel>,
    policies: HashMap<Arc<PolicyId>, Rc<Judged<Policy>>>,
    profiles: HashMap<ProfileIdx, Rc<Judged<Profile>>>,
    hosts: HashMap<String, Rc<HostConfig>>,
}

/// What asking led to.
pub(super) enum Asked {
    Decided(Outcome, By),
    GoOn,
}

/// A packet where it is asked about.
#[derive(Clone, Copy)]
pub(super) struct Packet<'a> {
    pub(super) flow: &'a Flow,
    pub(super) direction: Direction,
    /// The node of the endpoint.
    node: &'a str,
    /// Whether rules cannot be compared with what comes behind its authentication header.
    pub(super) is_opaque: bool,
}

impl Engine {
    /// Answers for connections, with what was last flushed, of kernels that do what rules say.
    pub fn judge(&self) -> Judge<'_> {
        Judge {
            engine: self,
            kernel: None,
            policies: HashMap::new(),
            profiles: HashMap::new(),
            hosts: HashMap::new(),
        }
    }

    /// Like [`Engine::judge`], of kernels of which this is known.
    pub fn judge_with<'a>(&'a self, kernel: &'a dyn Kernel) -> Judge<'a> {
        Judge {
            kernel: Some(kernel),
            ..self.judge()
        }
    }
}

impl Judge<'_> {
    /// Whether the endpoints at both ends allow a connection, and why. What it meets on its way is not asked: see
    /// [`Judge::pass`].
    pub fn verdict(&mut self, flow: &Flow) -> Verdict {
        let egress = self.side(flow, flow.source.endpoint.as_ref(), Direction::Egress);
        let ingress = self.side(flow, flow.destination.endpoint.as_ref(), Direction::Ingress);
        Verdict::new(egress, ingress, Vec::new())
    }

    /// What an endpoint says.
    pub(super) fn side(
        &mut self,
        flow: &Flow,
        endpoint: Option<&EndpointKey>,
        direction: Direction,
    ) -> Side {
        let mut trace = Vec::new();
        let engine = self.engine;
        let found = endpoint.and_then(|key| engine.local(key));
        let key = found.map(|local| local.endpoint.key());
        let Some((local, key)) = found.zip(key) else {
            return Side::unasked(By::NoEndpoint {
                action: Action::Allow,
            });
        };
        let packet = self.packet(flow, direction, key.node());
        let interface = local.endpoint.interface();
        let (verdict, by) = match self.endpoint_denial(&packet, &key, interface) {
            Some(by) => (Outcome::Deny, by),
            None => self.endpoint(&packet, local, &mut trace),
        };
        Side {
            endpoint: Some(key),
            verdict,
            by,
            trace,
        }
    }

    /// What the policies of a host endpoint say that apply at one point, if they decide.
    pub(super) fn side_at(
        &mut self,
        flow: &Flow,
        key: &EndpointKey,
        direction: Direction,
        point: Point,
    ) -> Option<Side> {
        let engine = self.engine;
        let local = engine.local(key)?;
        let packet = self.packet(flow, direction, key.node());
        // Failsafe ports are not asked about where packets are forwarded.
        if let LocalEndpoint::Host(host, _) = &local.endpoint
            && point != Point::Forward
            && self.failsafe(&packet, host).is_some()
        {
            return None;
        }
        let mut trace = Vec::new();
        match self.at_point(&packet, local, point, &mut trace) {
            Asked::GoOn => None,
            Asked::Decided(verdict, by) => Some(Side {
                endpoint: Some(key.clone()),
                verdict,
                by,
                trace,
            }),
        }
    }

    /// Whether a host endpoint has policies that apply to incoming packets before destination NAT.
    pub(super) fn has_pre_dnat(&self, key: &EndpointKey) -> bool {
        let local = self.engine.local(key);
        local.is_some_and(|local| {
            let lists = self.engine.policies.classes.lists(local.class);
            !lists.pre_dnat.is_empty()
        })
    }

    fn packet<'a>(&self, flow: &'a Flow, direction: Direction, node: &'a str) -> Packet<'a> {
        let protocol = flow.protocol.as_ref().and_then(Protocol::number);
        let has_header =
            flow.destination.address.is_ipv6() && protocol == Some(AUTHENTICATION_HEADER);
        let kernel = self.kernel.filter(|_| has_header);
        Packet {
            flow,
            direction,
            node,
            is_opaque: kernel.is_some_and(|kernel| kernel.hides_behind_header(node)),
        }
    }

    fn endpoint_denial(
        &self,
        packet: &Packet<'_>,
        key: &EndpointKey,
        interface: &str,
    ) -> Option<By> {
        let because = self
            .kernel?
            .denial_of_endpoint(&packet.place(), key, interface)?;
        Some(By::Denial {
            object: key.to_string(),
            policy: None,
            tier: None,
            action: Action::Deny,
            point: Point::Normal,
            because,
        })
    }

    fn endpoint(
        &mut self,
        packet: &Packet<'_>,
        local: &Local,
        trace: &mut Vec<Step>,
    ) -> (Outcome, By) {
        let lists = self.engine.policies.classes.lists(local.class);
        let profiles = match &local.endpoint {
            LocalEndpoint::Workload(_, endpoint) => &endpoint.profiles,
            LocalEndpoint::Host(key, endpoint) => {
                if let Some(decided) = self.failsafe(packet, key) {
                    return decided;
                }
                for point in [Point::Untracked, Point::PreDnat] {
                    if let Asked::Decided(outcome, by) = self.at_point(packet, local, point, trace)
                    {
                        return (outcome, by);
                    }
                }
                &endpoint.profiles
            }
        };
        self.normal(packet, &lists.normal, profiles, trace)
    }

    /// Policies of a host that apply elsewhere than where connections end or begin.
    fn at_point(
        &mut self,
        packet: &Packet<'_>,
        local: &Local,
        point: Point,
        trace: &mut Vec<Step>,
    ) -> Asked {
        let lists = self.engine.policies.classes.lists(local.class);
        let tiers = match point {
            // The kernel has no place for untracked policy on all interfaces at once.
            Point::Untracked if local.endpoint.interface() != "*" => &lists.untracked,
            Point::PreDnat if packet.direction == Direction::Ingress => &lists.pre_dnat,
            Point::Forward => &lists.forward,
            _ => return Asked::GoOn,
        };
        self.tiers(packet, tiers, point, trace)
    }

    fn failsafe(&mut self, packet: &Packet<'_>, key: &HostEndpointKey) -> Option<(Outcome, By)> {
        let flow = packet.flow;
        let failsafe = &self.host(&key.node).failsafe;
        let (ports, peer) = match packet.direction {
            Direction::Ingress => (&failsafe.inbound, &flow.source),
            Direction::Egress => (&failsafe.outbound, &flow.destination),
        };
        let protocol = flow.protocol.as_ref().and_then(Protocol::number);
        let is_open = |open: &&FailsafePort| {
            Protocol::from(open.protocol).number() == protocol
                && Some(open.port) == flow.destination_port
                && open.network.is_none_or(|net| net.contains(&peer.address))
        };
        let open = ports.iter().find(is_open)?;
        Some((
            Outcome::Allow,
            By::Failsafe {
                port: open.to_string(),
                action: Action::Allow,
            },
        ))
    }

    /// What a node does with packets to and from itself.
    pub(super) fn host(&mut self, node: &str) -> Rc<HostConfig> {
        if let Some(known) = self.hosts.get(node) {
            return Rc::clone(known);
        }
        let started = self.kernel.and_then(|kernel| kernel.started_with(node));
        let mut sources = started.unwrap_or_default();
        sources.datastore = self.engine.network.parameters_of(node);
        let host = Rc::new(HostConfig::resolve(&sources));
        self.hosts.insert(node.to_owned(), Rc::clone(&host));
        host
    }

    pub(super) fn judged_policy(&mut self, id: &Arc<PolicyId>) -> Rc<Judged<Policy>> {
        if let Some(judged) = self.policies.get(id) {
            return Rc::clone(judged);
        }
        let judged = Rc::new(self.compile_policy(id).unwrap_or_default());
        self.policies.insert(Arc::clone(id), Rc::clone(&judged));
        judged
    }

    fn compile_policy(&self, id: &PolicyId) -> Option<Judged<Policy>> {
        let idx = self.engine.policies.find(id)?;
        let (_, message) = self.engine.policy_message(idx)?;
        let (_, inbound, outbound) = packed::unpack(&self.engine.policies.get(idx).packed);
        Some(Judged::new(message, &inbound, &outbound))
    }

    pub(super) fn judged_profile(&mut self, idx: ProfileIdx) -> Rc<Judged<Profile>> {
        if let Some(judged) = self.profiles.get(&idx) {
            return Rc::clone(judged);
        }
        let message = self.engine.profile_message(idx);
        let (inbound, outbound) = profile_rules(self.engine.profiles.get(idx).rules.as_deref());
        let judged = Rc::new(Judged::new(message, &inbound, &outbound));
        self.profiles.insert(idx, Rc::clone(&judged));
        judged
    }
}

impl Packet<'_> {
    pub(super) fn place(&self) -> Place<'_> {
        Place {
            node: self.node,
            is_ipv4: self.flow.destination.address.is_ipv4(),
            is_ingress: self.direction == Direction::Ingress,
            is_opaque: self.is_opaque,
        }
    }
}

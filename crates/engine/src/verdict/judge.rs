//! Asks tiers, policies, rules and profiles in the order in which the data plane does.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;
use tortie_api::names::PolicyId;
use tortie_api::rule::Action;
use tortie_api::scalar::Protocol;

use super::judged::{Direction, Judged};
use super::kernel::{Kernel, Place};
use super::rule_match::Explainer;
use super::{
    By, EndpointKey, Flow, Outcome, Point, PolicyStep, ProfileStep, RuleStep, Side, Step, TierStep,
    Verdict,
};
use crate::Engine;
use crate::engine::profile_rules;
use crate::input::{DefaultAction, HostEndpointKey};
use crate::locals::{Local, LocalEndpoint};
use crate::message::{AUTHENTICATION_HEADER, Policy, Profile, Rule, TierInfo};
use crate::policies::packed;
use crate::profiles::ProfileIdx;

/// Answers for connections, with what the engine last flushed.
pub struct Judge<'a> {
    pub(super) engine: &'a Engine,
    kernel: Option<&'a dyn Kernel>,
    policies: HashMap<Arc<PolicyId>, Rc<Judged<Policy>>>,
    profiles: HashMap<ProfileIdx, Rc<Judged<Profile>>>,
}

/// What asking led to.
enum Asked {
    Decided(Outcome, By),
    GoOn,
}

/// A packet where it is asked about.
#[derive(Clone, Copy)]
struct Packet<'a> {
    flow: &'a Flow,
    direction: Direction,
    /// The node of the endpoint.
    node: &'a str,
    /// Whether rules cannot be compared with what comes behind its authentication header.
    is_opaque: bool,
}

impl Engine {
    /// Answers for connections, with what was last flushed, of kernels that do what rules say.
    pub fn judge(&self) -> Judge<'_> {
        Judge {
            engine: self,
            kernel: None,
            policies: HashMap::new(),
            profiles: HashMap::new(),
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

    fn failsafe(&self, packet: &Packet<'_>, key: &HostEndpointKey) -> Option<(Outcome, By)> {
        let flow = packet.flow;
        let is_inbound = packet.direction == Direction::Ingress;
        let peer = if is_inbound {
            &flow.source
        } else {
            &flow.destination
        };
        let wanted = (flow.protocol.as_ref(), flow.destination_port?);
        let port =
            self.engine
                .host_parameters
                .failsafe(&key.node, is_inbound, wanted, peer.address)?;
        Some((
            Outcome::Allow,
            By::Failsafe {
                port,
                action: Action::Allow,
            },
        ))
    }

    /// Tiers, then profiles, then a drop.
    fn normal(
        &mut self,
        packet: &Packet<'_>,
        tiers: &[TierInfo],
        profiles: &[String],
        trace: &mut Vec<Step>,
    ) -> (Outcome, By) {
        if let Asked::Decided(outcome, by) = self.tiers(packet, tiers, Point::Normal, trace) {
            return (outcome, by);
        }
        for name in profiles {
            if let Asked::Decided(outcome, by) = self.profile(packet, name, trace) {
                return (outcome, by);
            }
        }
        (
            Outcome::Deny,
            By::NoProfile {
                action: Action::Deny,
            },
        )
    }

    fn tiers(
        &mut self,
        packet: &Packet<'_>,
        tiers: &[TierInfo],
        point: Point,
        trace: &mut Vec<Step>,
    ) -> Asked {
        for tier in tiers {
            let policies = match packet.direction {
                Direction::Ingress => &tier.ingress_policies,
                Direction::Egress => &tier.egress_policies,
            };
            if policies.is_empty() {
                continue;
            }
            let mut step = TierStep {
                tier: Arc::clone(&tier.name),
                point,
                policies: Vec::with_capacity(policies.len()),
                end: None,
            };
            let asked = self.tier(packet, tier, policies, &mut step);
            trace.push(Step::Tier(step));
            if let Asked::Decided(..) = asked {
                return asked;
            }
        }
        Asked::GoOn
    }

    fn tier(
        &mut self,
        packet: &Packet<'_>,
        tier: &TierInfo,
        policies: &[Arc<PolicyId>],
        step: &mut TierStep,
    ) -> Asked {
        let point = step.point;
        for id in policies {
            let judged = self.judged_policy(id);
            let is_staged = id.kind.is_staged();
            let kernel = self.kernel.filter(|_| !is_staged);
            let place = packet.place();
            let denial = kernel.and_then(|k| k.denial_of_policy(&place, id, &judged.message));
            if let Some(because) = denial {
                step.policies.push(PolicyStep {
                    policy: Arc::clone(id),
                    staged: false,
                    rules: Vec::new(),
                    denial: Some(because.clone()),
                });
                return Asked::Decided(
                    Outcome::Deny,
                    By::Denial {
                        object: id.full_name(),
                        policy: Some(Arc::clone(id)),
                        tier: Some(Arc::clone(&tier.name)),
                        action: Action::Deny,
                        point,
                        because,
                    },
                );
            }
            let (matched, asked) = self.ask(packet, judged.of(packet.direction));
            step.policies.push(PolicyStep {
                policy: Arc::clone(id),
                staged: is_staged,
                rules: asked,
                denial: None,
            });
            let Some((rule, action)) = matched.filter(|_| !is_staged) else {
                continue;
            };
            let Some(outcome) = outcome(action) else {
                // Pass: the rest of this tier is not asked.
                return Asked::GoOn;
            };
            return Asked::Decided(
                outcome,
                By::Rule {
                    tier: Arc::clone(&tier.name),
                    policy: Arc::clone(id),
                    rule,
                    action,
                    point,
                },
            );
        }
        // Policies that are only tried out do not make a tier drop anything.
        if policies.iter().all(|id| id.kind.is_staged()) {
            return Asked::GoOn;
        }
        let end = tier.default_action.unwrap_or(DefaultAction::Deny);
        step.end = Some(end);
        match end {
            DefaultAction::Pass => Asked::GoOn,
            DefaultAction::Deny => Asked::Decided(
                Outcome::Deny,
                By::EndOfTier {
                    tier: Arc::clone(&tier.name),
                    action: Action::Deny,
                    point,
                },
            ),
        }
    }

    fn profile(&mut self, packet: &Packet<'_>, name: &str, trace: &mut Vec<Step>) -> Asked {
        let Some(idx) = self.engine.profiles.find(name) else {
            return Asked::GoOn;
        };
        let judged = self.judged_profile(idx);
        let profile = self.engine.profiles.get(idx);
        let place = packet.place();
        let denial = self
            .kernel
            .and_then(|kernel| kernel.denial_of_profile(&place, name, &judged.message));
        let mut step = ProfileStep {
            profile: Arc::clone(&profile.name),
            missing: profile.rules.is_none(),
            rules: Vec::new(),
            denial: denial.clone(),
        };
        if let Some(because) = denial {
            trace.push(Step::Profile(step));
            return Asked::Decided(
                Outcome::Deny,
                By::Denial {
                    object: format!("Profile {name}"),
                    policy: None,
                    tier: None,
                    action: Action::Deny,
                    point: Point::Normal,
                    because,
                },
            );
        }
        let (matched, asked) = self.ask(packet, judged.of(packet.direction));
        step.rules = asked;
        trace.push(Step::Profile(step));
        match matched.and_then(|(rule, action)| Some((rule, action, outcome(action)?))) {
            None => Asked::GoOn,
            Some((rule, action, outcome)) => Asked::Decided(
                outcome,
                By::Profile {
                    profile: Arc::clone(&profile.name),
                    rule,
                    action,
                },
            ),
        }
    }

    /// Asks rules in order up to the first that decides; gives that one's place and action, and what each said.
    fn ask<'r>(
        &self,
        packet: &Packet<'_>,
        rules: impl ExactSizeIterator<Item = (&'r Rule, &'r Explainer)>,
    ) -> (Option<(usize, Action)>, Vec<RuleStep>) {
        let mut asked = Vec::with_capacity(rules.len());
        for (index, (rule, explainer)) in rules.enumerate() {
            let effective = if packet.is_opaque {
                rule.behind_header()
            } else {
                Some(Cow::Borrowed(rule))
            };
            let action = effective.as_ref().map_or(rule.action, |rule| rule.action);
            let reason = match &effective {
                Some(rule) => explainer.mismatch(rule, self.engine, packet.flow),
                None => Some(
                    "what comes behind an authentication header of IPv6 cannot be compared"
                        .to_owned(),
                ),
            };
            let matched = reason.is_none();
            asked.push(RuleStep {
                rule: index,
                action,
                matched,
                reason,
                text: explainer.text(),
            });
            // A log rule writes its line, and the next rule is asked.
            if matched && action != Action::Log {
                return (Some((index, action)), asked);
            }
        }
        (None, asked)
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
    fn place(&self) -> Place<'_> {
        Place {
            node: self.node,
            is_ipv4: self.flow.destination.address.is_ipv4(),
            is_ingress: self.direction == Direction::Ingress,
            is_opaque: self.is_opaque,
        }
    }
}

fn outcome(action: Action) -> Option<Outcome> {
    match action {
        Action::Allow => Some(Outcome::Allow),
        Action::Deny => Some(Outcome::Deny),
        Action::Log | Action::Pass => None,
    }
}

//! Asks tiers, policies, rules and profiles in the order in which the data plane does.

use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;
use tortie_api::names::PolicyId;
use tortie_api::rule::Action;

use super::rule_match::JudgedRule;
use super::{
    By, End, Flow, Outcome, Point, PolicyStep, ProfileStep, RuleStep, Side, Step, TierStep, Verdict,
};
use crate::Engine;
use crate::engine::profile_rules;
use crate::input::{self, DefaultAction, HostEndpointKey};
use crate::locals::LocalEndpoint;
use crate::message::{self, TierInfo};
use crate::policies::packed;
use crate::profiles::ProfileIdx;

/// Answers for connections, with what the engine last flushed.
pub struct Judge<'a> {
    engine: &'a Engine,
    policies: HashMap<Arc<PolicyId>, Rc<Rules>>,
    profiles: HashMap<ProfileIdx, Rc<Rules>>,
}

/// Rules of a policy or profile, ready to be asked.
#[derive(Default)]
struct Rules {
    inbound: Vec<JudgedRule>,
    outbound: Vec<JudgedRule>,
}

/// What asking led to.
enum Asked {
    Decided(Outcome, By),
    GoOn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Ingress,
    Egress,
}

impl Engine {
    /// Answers for connections, with what was last flushed.
    pub fn judge(&self) -> Judge<'_> {
        Judge {
            engine: self,
            policies: HashMap::new(),
            profiles: HashMap::new(),
        }
    }
}

impl Judge<'_> {
    /// Whether a connection is allowed, and why.
    pub fn verdict(&mut self, flow: &Flow) -> Verdict {
        let egress = self.side(flow, &flow.source, Direction::Egress);
        let ingress = self.side(flow, &flow.destination, Direction::Ingress);
        let is_allowed = egress.verdict == Outcome::Allow && ingress.verdict == Outcome::Allow;
        Verdict {
            verdict: if is_allowed {
                Outcome::Allow
            } else {
                Outcome::Deny
            },
            egress,
            ingress,
        }
    }

    fn side(&mut self, flow: &Flow, end: &End, direction: Direction) -> Side {
        let mut trace = Vec::new();
        let engine = self.engine;
        let found = end.endpoint.as_ref().and_then(|key| engine.local(key));
        let (verdict, by) = match found.map(|local| (&local.endpoint, local.class)) {
            None => (
                Outcome::Allow,
                By::NoEndpoint {
                    action: Action::Allow,
                },
            ),
            Some((LocalEndpoint::Workload(_, endpoint), class)) => {
                let lists = engine.policies.classes.lists(class);
                self.normal(
                    flow,
                    &lists.normal,
                    &endpoint.profiles,
                    direction,
                    &mut trace,
                )
            }
            Some((LocalEndpoint::Host(key, endpoint), class)) => {
                let lists = engine.policies.classes.lists(class);
                self.failsafe(flow, key, direction)
                    .or_else(|| {
                        // The kernel has no place for untracked policy on all interfaces at once.
                        let early = [
                            (
                                Point::Untracked,
                                &lists.untracked,
                                endpoint.interface != "*",
                            ),
                            (
                                Point::PreDnat,
                                &lists.pre_dnat,
                                direction == Direction::Ingress,
                            ),
                        ];
                        early
                            .into_iter()
                            .filter(|(_, _, applies)| *applies)
                            .find_map(|(point, tiers, _)| {
                                match self.tiers(flow, tiers, point, direction, &mut trace) {
                                    Asked::Decided(outcome, by) => Some((outcome, by)),
                                    Asked::GoOn => None,
                                }
                            })
                    })
                    .unwrap_or_else(|| {
                        self.normal(
                            flow,
                            &lists.normal,
                            &endpoint.profiles,
                            direction,
                            &mut trace,
                        )
                    })
            }
        };
        Side {
            endpoint: found.map(|local| local.endpoint.key()),
            verdict,
            by,
            trace,
        }
    }

    fn failsafe(
        &self,
        flow: &Flow,
        key: &HostEndpointKey,
        direction: Direction,
    ) -> Option<(Outcome, By)> {
        let is_inbound = direction == Direction::Ingress;
        let peer = if is_inbound {
            &flow.source
        } else {
            &flow.destination
        };
        let wanted = (flow.protocol.as_ref(), flow.destination_port?);
        let port = self
            .engine
            .failsafes
            .find(&key.node, is_inbound, wanted, peer.address)?;
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
        flow: &Flow,
        tiers: &[TierInfo],
        profiles: &[String],
        direction: Direction,
        trace: &mut Vec<Step>,
    ) -> (Outcome, By) {
        if let Asked::Decided(outcome, by) =
            self.tiers(flow, tiers, Point::Normal, direction, trace)
        {
            return (outcome, by);
        }
        for name in profiles {
            if let Asked::Decided(outcome, by) = self.profile(flow, name, direction, trace) {
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
        flow: &Flow,
        tiers: &[TierInfo],
        point: Point,
        direction: Direction,
        trace: &mut Vec<Step>,
    ) -> Asked {
        for tier in tiers {
            let policies = match direction {
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
            let asked = self.tier(flow, tier, policies, direction, &mut step);
            trace.push(Step::Tier(step));
            if let Asked::Decided(..) = asked {
                return asked;
            }
        }
        Asked::GoOn
    }

    fn tier(
        &mut self,
        flow: &Flow,
        tier: &TierInfo,
        policies: &[Arc<PolicyId>],
        direction: Direction,
        step: &mut TierStep,
    ) -> Asked {
        let point = step.point;
        for id in policies {
            let rules = self.policy_rules(id);
            let (matched, asked) = self.ask(flow, rules.of(direction));
            let is_staged = id.kind.is_staged();
            step.policies.push(PolicyStep {
                policy: Arc::clone(id),
                staged: is_staged,
                rules: asked,
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

    fn profile(
        &mut self,
        flow: &Flow,
        name: &str,
        direction: Direction,
        trace: &mut Vec<Step>,
    ) -> Asked {
        let Some(idx) = self.engine.profiles.find(name) else {
            return Asked::GoOn;
        };
        let rules = self.profile_rules(idx);
        let profile = self.engine.profiles.get(idx);
        let (matched, asked) = self.ask(flow, rules.of(direction));
        trace.push(Step::Profile(ProfileStep {
            profile: Arc::clone(&profile.name),
            missing: profile.rules.is_none(),
            rules: asked,
        }));
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
    fn ask(&self, flow: &Flow, rules: &[JudgedRule]) -> (Option<(usize, Action)>, Vec<RuleStep>) {
        let mut asked = Vec::with_capacity(rules.len());
        for (index, judged) in rules.iter().enumerate() {
            let reason = judged.mismatch(self.engine, flow);
            let matched = reason.is_none();
            let action = judged.rule.action;
            asked.push(RuleStep {
                rule: index,
                action,
                matched,
                reason,
            });
            // A log rule writes its line, and the next rule is asked.
            if matched && action != Action::Log {
                return (Some((index, action)), asked);
            }
        }
        (None, asked)
    }

    fn policy_rules(&mut self, id: &Arc<PolicyId>) -> Rc<Rules> {
        if let Some(rules) = self.policies.get(id) {
            return Rc::clone(rules);
        }
        let rules = Rc::new(self.compile_policy(id).unwrap_or_default());
        self.policies.insert(Arc::clone(id), Rc::clone(&rules));
        rules
    }

    fn compile_policy(&self, id: &PolicyId) -> Option<Rules> {
        let idx = self.engine.policies.find(id)?;
        let (_, message) = self.engine.policy_message(idx)?;
        let (_, inbound, outbound) = packed::unpack(&self.engine.policies.get(idx).packed);
        Some(Rules {
            inbound: judged(message.inbound_rules, &inbound),
            outbound: judged(message.outbound_rules, &outbound),
        })
    }

    fn profile_rules(&mut self, idx: ProfileIdx) -> Rc<Rules> {
        if let Some(rules) = self.profiles.get(&idx) {
            return Rc::clone(rules);
        }
        let message = self.engine.profile_message(idx);
        let (inbound, outbound) = profile_rules(self.engine.profiles.get(idx).rules.as_deref());
        let rules = Rc::new(Rules {
            inbound: judged(message.inbound_rules, &inbound),
            outbound: judged(message.outbound_rules, &outbound),
        });
        self.profiles.insert(idx, Rc::clone(&rules));
        rules
    }
}

impl Rules {
    fn of(&self, direction: Direction) -> &[JudgedRule] {
        match direction {
            Direction::Ingress => &self.inbound,
            Direction::Egress => &self.outbound,
        }
    }
}

fn judged(rules: Vec<message::Rule>, inputs: &[input::Rule]) -> Vec<JudgedRule> {
    rules
        .into_iter()
        .zip(inputs)
        .map(|(rule, input)| JudgedRule::new(rule, input))
        .collect()
}

fn outcome(action: Action) -> Option<Outcome> {
    match action {
        Action::Allow => Some(Outcome::Allow),
        Action::Deny => Some(Outcome::Deny),
        Action::Log | Action::Pass => None,
    }
}

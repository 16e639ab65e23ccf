//! Asks tiers, policies, rules and profiles in the order in which the data plane does.

use std::borrow::Cow;
use std::sync::Arc;

use tortie_api::names::PolicyId;
use tortie_api::rule::Action;

use super::judge::{Asked, Judge, Packet};
use super::judged::Direction;
use super::rule_match::Explainer;
use super::{By, Outcome, Point, PolicyStep, ProfileStep, RuleStep, Step, TierStep};
use crate::input::DefaultAction;
use crate::message::{Rule, TierInfo};

impl Judge<'_> {
    /// Tiers, then profiles, then a drop.
    pub(super) fn normal(
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

    pub(super) fn tiers(
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
}

fn outcome(action: Action) -> Option<Outcome> {
    match action {
        Action::Allow => Some(Outcome::Allow),
        Action::Deny => Some(Outcome::Deny),
        Action::Log | Action::Pass => None,
    }
}

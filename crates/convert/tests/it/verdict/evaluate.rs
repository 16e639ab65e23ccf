//! What becomes of a packet, told straight from what is documented about policies and from the objects as users write
//! them: no sets, no indexes, no conversion. Where the documentation is silent it follows Calico, and says so.

mod failsafe;
mod kubernetes;
pub(crate) mod party;
mod policy;
mod rule;

use std::sync::Arc;

use tortie_api::Resource;
use tortie_api::names::PolicyId;
use tortie_api::rule::{Action, PolicyType, Rule};
use tortie_engine::verdict::{By, End, Flow, Outcome, Point};

use crate::verdict::world::{Object, World, names};
use party::Party;
use policy::{Body, Policy, Rules};

/// The place of a tier that names none.
const TIER_ORDER: f64 = 1_000_000.0;

/// What was decided, and by what.
pub(crate) type Decision = (Outcome, By);

/// A world, ready to be asked.
pub(crate) struct Evaluator<'a> {
    world: &'a World,
    parties: Vec<Party<'a>>,
    policies: Vec<Policy<'a>>,
}

// === impl Evaluator ===

impl<'a> Evaluator<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        let mut policies: Vec<Policy<'a>> = world.objects.values().filter_map(policy::of).collect();
        // By order, without one last; then as the text of name, namespace and kind.
        let text = |id: &PolicyId| format!("{}/{}/{}", id.name, id.namespace, id.kind);
        policies.sort_by(|a, b| {
            a.order
                .total_cmp(&b.order)
                .then_with(|| text(&a.id).cmp(&text(&b.id)))
        });
        let parties = party::all(world);
        Self {
            world,
            parties,
            policies,
        }
    }

    /// A packet must get out of its source AND into its destination.
    pub(crate) fn verdict(&self, flow: &Flow) -> (Outcome, Decision, Decision) {
        let egress = self.side(flow, &flow.source, PolicyType::Egress);
        let ingress = self.side(flow, &flow.destination, PolicyType::Ingress);
        let overall = match (egress.0, ingress.0) {
            (Outcome::Allow, Outcome::Allow) => Outcome::Allow,
            _ => Outcome::Deny,
        };
        (overall, egress, ingress)
    }

    /// Of an endpoint: policies, then profiles, then a drop. A host has failsafe ports and two kinds of policy before.
    fn side(&self, flow: &Flow, end: &End, direction: PolicyType) -> Decision {
        let is_here = |party: &&Party<'_>| end.endpoint.is_some() && party.key == end.endpoint;
        let Some(party) = self.parties.iter().find(is_here) else {
            let action = Action::Allow;
            return (Outcome::Allow, By::NoEndpoint { action });
        };
        let early = party.host.and_then(|host| {
            let failsafe = self.failsafe(&host.node, flow, direction);
            // Nothing can be done before connection tracking on all interfaces at once.
            let untracked = || {
                self.tiers(party, flow, direction, Point::Untracked)
                    .filter(|_| host.interface_name != "*")
            };
            let pre_dnat = || self.tiers(party, flow, direction, Point::PreDnat);
            failsafe.or_else(untracked).or_else(pre_dnat)
        });
        let mut profiles = party.profiles.iter();
        let action = Action::Deny;
        early
            .or_else(|| self.tiers(party, flow, direction, Point::Normal))
            .or_else(|| profiles.find_map(|name| self.profile(name, flow, direction)))
            .unwrap_or((Outcome::Deny, By::NoProfile { action }))
    }

    /// The FIRST tier that decides. Policies before tracking and NAT decide only what their rules match.
    fn tiers(
        &self,
        party: &Party<'_>,
        flow: &Flow,
        direction: PolicyType,
        point: Point,
    ) -> Option<Decision> {
        self.tiers_in_order().into_iter().find_map(|(tier, end)| {
            let applied = self.policies.iter().filter(|policy| {
                policy.tier == tier
                    && policy.point == point
                    && policy.covers(direction)
                    && policy.selects(party)
            });
            let applied: Vec<&Policy<'_>> = applied.collect();
            let tier: Arc<str> = tier.into();
            // The FIRST policy with a rule that matches.
            let decided = applied
                .iter()
                .find_map(|policy| Some((policy, self.decide(policy, flow, direction)?)));
            match decided {
                Some((policy, (rule, action))) => {
                    let by = By::Rule {
                        tier,
                        policy: Arc::clone(&policy.id),
                        rule,
                        action,
                        point,
                    };
                    Some((outcome(action)?, by))
                }
                None if applied.is_empty() || point != Point::Normal || end == Action::Pass => None,
                None => {
                    let action = Action::Deny;
                    let by = By::EndOfTier {
                        tier,
                        action,
                        point,
                    };
                    Some((Outcome::Deny, by))
                }
            }
        })
    }

    /// Tiers by order and name, with what their end does; then those that policies name and nobody made.
    fn tiers_in_order(&self) -> Vec<(&'a str, Action)> {
        let resources = self.world.resources();
        let made = resources.filter_map(|resource| match resource {
            Resource::Tier(tier) => Some((&*tier.metadata.name, &tier.spec)),
            _ => None,
        });
        let made = made.map(|(name, spec)| {
            let end = spec.default_action.unwrap_or(Action::Deny);
            (spec.order.unwrap_or(TIER_ORDER), name, end)
        });
        let mut tiers: Vec<(f64, &str, Action)> = made.collect();
        for policy in &self.policies {
            if tiers.iter().all(|(_, name, _)| *name != policy.tier) {
                tiers.push((f64::INFINITY, policy.tier, Action::Deny));
            }
        }
        tiers.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)));
        let tiers = tiers.into_iter();
        tiers.map(|(_, name, end)| (name, end)).collect()
    }

    /// What a policy does: Calico's by the FIRST rule that matches, Kubernetes' by ANY.
    fn decide(
        &self,
        policy: &Policy<'_>,
        flow: &Flow,
        direction: PolicyType,
    ) -> Option<(usize, Action)> {
        let namespace = &policy.id.namespace;
        match &policy.body {
            Body::Calico { rules, .. } => self.first(rules.of(direction), namespace, flow),
            Body::Kubernetes(spec) => self
                .kubernetes_allows(spec, namespace, flow, direction)
                .then_some((0, Action::Allow)),
            Body::Cluster(spec) => self
                .cluster_action(spec, flow, direction)
                .map(|action| (0, action)),
        }
    }

    /// The FIRST rule that matches and does more than to write a line.
    fn first(&self, rules: &[Rule], namespace: &str, flow: &Flow) -> Option<(usize, Action)> {
        let mut rules = rules.iter().enumerate();
        let found = rules
            .find(|(_, rule)| rule.action != Action::Log && self.matches(rule, namespace, flow));
        found.map(|(index, rule)| (index, rule.action))
    }

    /// That of a namespace allows all, that of a service account has no rules; one that nobody made denies all.
    fn profile(&self, name: &str, flow: &Flow, direction: PolicyType) -> Option<Decision> {
        let made = self.world.objects.values().find_map(|object| match object {
            Object::Namespace(namespace)
                if name == format!("kns.{}", names(&namespace.metadata).1) =>
            {
                Some(Some((0, Action::Allow)))
            }
            Object::ServiceAccount(account) => {
                let (namespace, account) = names(&account.metadata);
                (name == format!("ksa.{namespace}.{account}")).then_some(None)
            }
            Object::Resource(Resource::Profile(profile)) if profile.metadata.name == name => {
                let rules = Rules {
                    ingress: &profile.spec.ingress,
                    egress: &profile.spec.egress,
                };
                Some(self.first(rules.of(direction), "", flow))
            }
            _ => None,
        });
        let (rule, action) = made.unwrap_or(Some((0, Action::Deny)))?;
        let by = By::Profile {
            profile: name.into(),
            rule,
            action,
        };
        Some((outcome(action)?, by))
    }
}

/// A pass goes on with the next tier, and in a profile with the next profile.
fn outcome(action: Action) -> Option<Outcome> {
    match action {
        Action::Allow => Some(Outcome::Allow),
        Action::Deny => Some(Outcome::Deny),
        Action::Log | Action::Pass => None,
    }
}

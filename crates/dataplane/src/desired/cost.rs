//! What each policy costs in the kernel.

use std::sync::Arc;

use hashbrown::HashSet;
use tortie_engine::message::{PolicyId, Rule, SetId};
use tortie_rules::MAX_POLICY_RULES;

use super::DesiredState;

/// What a policy costs in the kernel, for all IP versions together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyCost {
    pub policy: Arc<PolicyId>,
    /// Rules in its chains, of both directions. Policies of host endpoints have them in two tables; they count once.
    pub rules: usize,
    /// Sets that its rules refer to. Policies with the same selectors share them.
    pub sets: usize,
    /// Members of those sets.
    pub members: usize,
    /// One of its chains would have too many rules, and denies.
    pub is_too_large: bool,
}

impl DesiredState {
    /// What each policy would cost whether anything refers to it or not; the largest first.
    pub fn policy_costs(&self) -> Vec<PolicyCost> {
        let costs = self.policies.keys().map(|id| self.cost_of(id));
        let mut costs: Vec<PolicyCost> = costs.collect();
        costs.sort_by(|a, b| {
            let key = |cost: &PolicyCost| (cost.rules, cost.members, cost.sets);
            key(b).cmp(&key(a)).then_with(|| a.policy.cmp(&b.policy))
        });
        costs
    }

    fn cost_of(&self, id: &Arc<PolicyId>) -> PolicyCost {
        let mut cost = PolicyCost {
            policy: Arc::clone(id),
            rules: 0,
            sets: 0,
            members: 0,
            is_too_large: false,
        };
        let Some(policy) = self.policies.get(id) else {
            return cost;
        };
        for family in &self.families {
            let version = family.ip_version();
            let layouts = &|set: &SetId| self.sets.layout(set, version);
            let table = self.tables_of(policy).iter().take(1);
            let chains =
                table.flat_map(|table| family.renderer.policy_chains(*table, id, policy, layouts));
            for chain in chains {
                cost.rules += chain.rules.len();
                cost.is_too_large |= chain.rules.len() > MAX_POLICY_RULES;
            }
        }
        let rules = policy.inbound_rules.iter().chain(&policy.outbound_rules);
        let sets: HashSet<&SetId> = rules.flat_map(Rule::sets).collect();
        cost.sets = sets.len();
        cost.members = sets.iter().map(|set| self.sets.size(set)).sum();
        cost
    }
}

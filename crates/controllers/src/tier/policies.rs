//! Which policies are in which tier. Pure.

use std::collections::{BTreeMap, HashMap};

use tortie_api::k8s::is_kubernetes_policy;
use tortie_store::{Key, Kind, Resource};

/// The kinds of policies that are in tiers, with what messages call them.
pub(super) const KINDS: [(Kind, &str); 4] = [
    (Kind::GlobalNetworkPolicy, "GlobalNetworkPolic"),
    (Kind::NetworkPolicy, "NetworkPolic"),
    (Kind::StagedGlobalNetworkPolicy, "StagedGlobalNetworkPolic"),
    (Kind::StagedNetworkPolicy, "StagedNetworkPolic"),
];

#[derive(Debug, Default)]
pub(super) struct Policies {
    tiers: HashMap<Key, Box<str>>,
    counts: BTreeMap<(Box<str>, Kind), usize>,
}

impl Policies {
    /// Takes in a policy. Gives the tier that it left, if it did.
    pub(super) fn set(&mut self, policy: &Resource) -> Option<Box<str>> {
        let key = Key::of(policy);
        let tier = tier_of(policy)?;
        // Those of Kubernetes go with their own objects.
        if is_kubernetes_policy(key.kind, &key.name) {
            return None;
        }
        if self.tiers.get(&key).is_some_and(|known| **known == *tier) {
            return None;
        }
        let left = self.remove(&key);
        *self.counts.entry((tier.into(), key.kind)).or_default() += 1;
        self.tiers.insert(key, tier.into());
        left
    }

    /// Forgets a policy. Gives the tier that it was in.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Box<str>> {
        let tier = self.tiers.remove(key)?;
        let at = (tier, key.kind);
        if let Some(count) = self.counts.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&at);
            }
        }
        Some(at.0)
    }

    /// What is left in a tier, in words; nothing if nothing is.
    pub(super) fn left_in(&self, tier: &str) -> Option<String> {
        let parts: Vec<String> = KINDS
            .iter()
            .filter_map(|(kind, name)| {
                let count = *self.counts.get(&(tier.into(), *kind))?;
                let ending = if count == 1 { "y" } else { "ies" };
                Some(format!("{count} {name}{ending}"))
            })
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

fn tier_of(policy: &Resource) -> Option<&str> {
    let tier = match policy {
        Resource::GlobalNetworkPolicy(policy) => &policy.spec.tier,
        Resource::NetworkPolicy(policy) => &policy.spec.tier,
        Resource::StagedGlobalNetworkPolicy(policy) => &policy.spec.policy.tier,
        Resource::StagedNetworkPolicy(policy) => &policy.spec.policy.tier,
        _ => return None,
    };
    Some(if tier.is_empty() { "default" } else { tier })
}

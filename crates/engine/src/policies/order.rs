//! The order of tiers, and of policies in a tier.

use std::cmp::Ordering;

use hashbrown::HashMap;

use super::{Policies, Policy};
use crate::input::{DefaultAction, Tier};

/// The tiers that exist, by the number of their name.
#[derive(Default)]
pub(crate) struct Tiers {
    tiers: HashMap<u32, Tier>,
}

impl Tiers {
    pub(crate) fn update(&mut self, name: u32, tier: Option<&Tier>) {
        match tier {
            Some(tier) => self.tiers.insert(name, tier.clone()),
            None => self.tiers.remove(&name),
        };
    }

    pub(crate) fn contains(&self, name: u32) -> bool {
        self.tiers.contains_key(&name)
    }

    /// What happens at the end of a tier; not known if it does not exist.
    pub(crate) fn default_action(&self, name: u32) -> Option<DefaultAction> {
        self.tiers.get(&name).map(|tier| tier.default_action)
    }

    pub(crate) fn get(&self, name: u32) -> Option<&Tier> {
        self.tiers.get(&name)
    }
}

/// Tiers that exist come before those that are only referred to, then those with an order, by that, then by name.
pub(crate) fn compare_tiers(policies: &Policies, a: u32, b: u32) -> Ordering {
    let rank = |tier: u32| {
        let found = policies.tiers.get(tier);
        let order = found.and_then(|tier| tier.order);
        (found.is_none(), order.is_none(), order.unwrap_or(0.0))
    };
    let (a_rank, b_rank) = (rank(a), rank(b));
    (a_rank.0, a_rank.1)
        .cmp(&(b_rank.0, b_rank.1))
        .then_with(|| a_rank.2.total_cmp(&b_rank.2))
        .then_with(|| policies.tier_name(a).cmp(policies.tier_name(b)))
}

/// Policies of one tier: by order, then as the text `name/namespace/kind`.
pub(crate) fn compare_policies(a: &Policy, b: &Policy) -> Ordering {
    a.order.total_cmp(&b.order).then_with(|| {
        let text = |policy: &Policy| {
            let (name, namespace, kind) = policy.name_parts();
            [name, b"/", namespace, b"/", kind.name().as_bytes()].concat()
        };
        let (a_name, b_name) = (a.name_parts().0, b.name_parts().0);
        // Names nearly always decide; only where one is the start of the other does the rest matter.
        let shorter = a_name.len().min(b_name.len());
        match a_name[..shorter].cmp(&b_name[..shorter]) {
            Ordering::Equal => text(a).cmp(&text(b)),
            decided => decided,
        }
    })
}

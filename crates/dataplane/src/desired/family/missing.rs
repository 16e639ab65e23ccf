//! Chains whose rules were handed out, that were not needed for some time, and that are needed again.

use std::collections::BTreeSet;
use std::sync::Arc;

use tortie_rules::Table;

use super::{DesiredState, Family, key};
use crate::change::ChainKey;

impl Family {
    /// Renders chains again that nothing referred to for some time.
    pub(super) fn put_missing(&mut self, desired: &DesiredState) {
        loop {
            let missing = self.chains.take_missing();
            if missing.is_empty() {
                return;
            }
            self.put_again(desired, &missing);
            self.chains.deny_unknown(missing);
        }
    }

    fn put_again(&mut self, desired: &DesiredState, missing: &BTreeSet<ChainKey>) {
        let is_missing = |(table, name): &(Table, Arc<str>)| {
            missing.contains(&ChainKey {
                table: *table,
                name: Arc::clone(name),
            })
        };
        let policies = self.policy_chains.iter();
        let policies = policies.filter(|(_, chains)| chains.iter().any(is_missing));
        for id in policies.map(|(id, _)| Arc::clone(id)).collect::<Vec<_>>() {
            self.policy(desired, &id);
        }
        let profiles = self.profile_chains.iter();
        let profiles = profiles.filter(|(_, chains)| chains.iter().any(is_missing));
        for name in profiles
            .map(|(name, _)| Arc::clone(name))
            .collect::<Vec<_>>()
        {
            self.profile(desired, &name);
        }
        let fixed = self.renderer.fixed_chains().into_iter();
        for chain in fixed.filter(|chain| is_missing(&key(chain))) {
            self.chains.put(chain);
        }
    }
}

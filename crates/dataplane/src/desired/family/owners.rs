//! Whose chains are.

use std::sync::Arc;

use hashbrown::HashMap;
use tortie_engine::message::PolicyId;
use tortie_rules::Table;

use super::Family;

type Key = (Table, Arc<str>);

impl Family {
    /// The policy that a chain is of.
    pub(in crate::desired) fn policy_of(&self, chain: &Key) -> Option<&Arc<PolicyId>> {
        owner(&self.policy_chains, chain)
    }

    /// The profile that a chain is of.
    pub(in crate::desired) fn profile_of(&self, chain: &Key) -> Option<&Arc<str>> {
        owner(&self.profile_chains, chain)
    }

    /// The interface whose endpoint a chain is of.
    pub(in crate::desired) fn endpoint_of(&self, chain: &Key) -> Option<&Arc<str>> {
        owner(&self.chains_of, chain)
    }
}

fn owner<'a, T>(chains: &'a HashMap<T, Vec<Key>>, chain: &Key) -> Option<&'a T> {
    let mut owners = chains.iter();
    let found = owners.find(|(_, chains)| chains.contains(chain));
    found.map(|(owner, _)| owner)
}

//! Chains of policies that would have more rules than is good for the kernel.

use std::sync::Arc;

use tortie_rules::{Chain, IpVersion, MAX_POLICY_RULES, Renderer};

use super::{Family, key};
use crate::change::{Owner, Refused};

impl Family {
    /// The chain, or if that would be too large, one that denies.
    pub(super) fn bounded(&mut self, chain: Chain, owner: impl Fn() -> Owner) -> Chain {
        let key = key(&chain);
        let rules = chain.rules.len();
        if rules <= MAX_POLICY_RULES {
            self.too_large.remove(&key);
            return chain;
        }
        let owner = owner();
        tracing::error!(
            chain = %chain.name,
            ip_version = self.version_number(),
            %owner,
                rules,
                most = MAX_POLICY_RULES,
                "It needs more rules in the kernel than are allowed; \
             it denies all packets until it needs fewer: see `tortie render --cost`"
        );
        self.too_large.insert(key, (owner, rules));
        Renderer::stand_in(chain.table, chain.name, "Too many rules")
    }

    /// What denies because it would be too large.
    pub(in crate::desired) fn too_large(&self) -> impl Iterator<Item = Refused> {
        let version = self.version_number();
        let ip_version = self.ip_version();
        self.too_large.iter().map(move |((_, chain), (owner, rules))| Refused {
            owner: owner.clone(),
            ip_version,
            chain: Some(Arc::clone(chain)),
            reason: format!(
                "needs {rules} rules in chain {chain} for IPv{version}, and {MAX_POLICY_RULES} is the most"
            ),
        })
    }

    fn version_number(&self) -> u8 {
        match self.ip_version() {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

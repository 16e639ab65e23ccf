//! Groups of policies that share one chain.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha3::{Digest, Sha3_224};

use crate::{Direction, PolicyId};

/// Fills a chain name in iptables: 28 bytes less the prefix. nftables uses the same.
const UNIQUE_ID_LENGTH: usize = 20;

/// Neighbouring policies of one tier that have the same selector, for one direction.
///
/// An endpoint that one of them applies to has all of them, so endpoints can share the chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PolicyGroup {
    /// The direction; a policy can be in a group for each.
    pub direction: Direction,
    /// The selector that all the policies have, letter by letter.
    pub selector: String,
    /// The policies in the order in which they are evaluated.
    pub policies: Vec<PolicyId>,
}

impl PolicyGroup {
    /// Puts neighbours with the same selector into groups.
    pub fn divide<'a>(
        direction: Direction,
        policies: impl IntoIterator<Item = (&'a PolicyId, &'a str)>,
    ) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for (policy, selector) in policies {
            match groups.last_mut() {
                Some(group) if group.selector == selector => group.policies.push(policy.clone()),
                _ => groups.push(Self {
                    direction,
                    selector: selector.to_owned(),
                    policies: vec![policy.clone()],
                }),
            }
        }
        groups
    }

    /// A hash over all that makes the group what it is. It is computed anew by every call.
    pub fn unique_id(&self) -> String {
        let mut hasher = Sha3_224::new();
        let mut add_line = |line: &str| {
            hasher.update(line);
            hasher.update("\n");
        };
        add_line(&self.selector);
        add_line(self.direction.in_or_outbound());
        add_line(&self.policies.len().to_string());
        for policy in &self.policies {
            add_line(&policy.long_form());
        }
        let mut id = URL_SAFE_NO_PAD.encode(hasher.finalize());
        id.truncate(UNIQUE_ID_LENGTH);
        id
    }

    /// The chain of the group, the same in every dataplane. It exists unless the group
    /// [should be inlined](Self::should_be_inlined).
    pub fn chain_name(&self) -> String {
        let prefix = match self.direction {
            Direction::Ingress => "cali-gi-",
            Direction::Egress => "cali-go-",
        };
        [prefix, &self.unique_id()].concat()
    }

    /// Whether the endpoints' chains jump to the policies themselves, because a chain for the group
    /// would hold no more than one jump. Staged policies do not count.
    pub fn should_be_inlined(&self) -> bool {
        self.non_staged().nth(1).is_none()
    }

    /// Whether any policy of the group is enforced.
    pub fn has_non_staged(&self) -> bool {
        self.non_staged().next().is_some()
    }

    fn non_staged(&self) -> impl Iterator<Item = &PolicyId> {
        self.policies
            .iter()
            .filter(|policy| !policy.kind.is_staged())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicyKind;

    fn group(kinds: &[PolicyKind]) -> PolicyGroup {
        let policies = kinds.iter().enumerate().map(|(index, &kind)| PolicyId {
            kind,
            namespace: String::new(),
            name: format!("p{index}"),
        });
        PolicyGroup {
            direction: Direction::Ingress,
            selector: "all()".to_owned(),
            policies: policies.collect(),
        }
    }

    #[track_caller]
    fn check(kinds: &[PolicyKind], should_be_inlined: bool, has_non_staged: bool) {
        let group = group(kinds);
        assert_eq!(group.should_be_inlined(), should_be_inlined, "{kinds:?}");
        assert_eq!(group.has_non_staged(), has_non_staged, "{kinds:?}");
    }

    #[test]
    fn a_group_has_its_own_chain_from_two_enforced_policies_on() {
        let (live, staged) = (
            PolicyKind::GlobalNetworkPolicy,
            PolicyKind::StagedGlobalNetworkPolicy,
        );
        check(&[], true, false);
        check(&[staged, staged], true, false);
        check(&[live], true, true);
        check(&[staged, live, staged], true, true);
        check(&[live, staged, live], false, true);
    }

    #[test]
    fn the_chain_is_named_by_the_unique_id_and_the_direction() {
        let ingress = group(&[PolicyKind::NetworkPolicy]);
        let egress = PolicyGroup {
            direction: Direction::Egress,
            ..ingress.clone()
        };
        assert_eq!(
            ingress.chain_name(),
            format!("cali-gi-{}", ingress.unique_id())
        );
        assert_eq!(
            egress.chain_name(),
            format!("cali-go-{}", egress.unique_id())
        );
        assert_eq!(ingress.chain_name().len(), 28);
    }

    #[test]
    fn every_part_of_a_group_and_the_order_change_the_unique_id() {
        let original = group(&[PolicyKind::NetworkPolicy, PolicyKind::NetworkPolicy]);
        let with = |change: fn(&mut PolicyGroup)| {
            let mut changed = original.clone();
            change(&mut changed);
            changed
        };
        for changed in [
            with(|group| group.direction = Direction::Egress),
            with(|group| group.selector.push(' ')),
            with(|group| group.policies.reverse()),
            with(|group| group.policies.truncate(1)),
            with(|group| group.policies[0].kind = PolicyKind::StagedNetworkPolicy),
            with(|group| group.policies[0].namespace.push('n')),
            with(|group| group.policies[0].name.push('n')),
        ] {
            assert_ne!(changed.unique_id(), original.unique_id(), "{changed:?}");
        }
    }
}

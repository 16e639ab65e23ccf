//! The identity of a policy among all kinds of policy.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the names of policies start with that are made from Kubernetes' own.
pub const KUBERNETES_POLICY: &str = "knp.default.";

/// What the names of policies start with that are made from Kubernetes' cluster-wide ones.
pub const KUBERNETES_CLUSTER_POLICY: &str = "kcnp.";

/// Which policy: its kind, namespace and name.
///
/// It displays as the short identity that chain names are made of: `np/shop/web`, or
/// `gnp/deny-all` without a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PolicyId {
    /// The kind of the policy.
    pub kind: PolicyKind,
    /// The namespace; empty if the policy is for the whole cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name inside kind and namespace.
    pub name: String,
}

/// The kinds of policy that reach a node, from Calico's API and from Kubernetes'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PolicyKind {
    /// Calico's policy for one namespace.
    NetworkPolicy,
    /// Calico's policy for the cluster.
    GlobalNetworkPolicy,
    /// Kubernetes' policy for one namespace, which Kubernetes calls `NetworkPolicy` too.
    KubernetesNetworkPolicy,
    /// Kubernetes' policy for the cluster, there called `ClusterNetworkPolicy`.
    KubernetesClusterNetworkPolicy,
    /// A trial of a [`Self::NetworkPolicy`].
    StagedNetworkPolicy,
    /// A trial of a [`Self::GlobalNetworkPolicy`].
    StagedGlobalNetworkPolicy,
    /// A trial of a [`Self::KubernetesNetworkPolicy`].
    StagedKubernetesNetworkPolicy,
}

/// The text is not the name of a kind of policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a kind of policy: expected `NetworkPolicy`, `GlobalNetworkPolicy`, \
     `KubernetesNetworkPolicy`, `KubernetesClusterNetworkPolicy`, `StagedNetworkPolicy`, \
     `StagedGlobalNetworkPolicy` or `StagedKubernetesNetworkPolicy`"
)]
pub struct UnknownPolicyKind(pub String);

// === impl PolicyId ===

impl PolicyId {
    /// `shop/web`, or the name alone without a namespace.
    pub fn qualified_name(&self) -> String {
        match &*self.namespace {
            "" => self.name.clone(),
            namespace => format!("{namespace}/{}", self.name),
        }
    }

    /// What people call it: `NetworkPolicy shop/web`.
    pub fn full_name(&self) -> String {
        format!("{} {}", self.kind, self.qualified_name())
    }

    /// The form that goes into the hash that names a group of policies.
    pub fn long_form(&self) -> String {
        let Self {
            kind,
            namespace,
            name,
        } = self;
        format!("{{Name: {name}, Namespace: {namespace}, Kind: {kind}}}")
    }
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.short_name();
        if self.namespace.is_empty() {
            write!(f, "{kind}/{}", self.name)
        } else {
            write!(f, "{kind}/{}/{}", self.namespace, self.name)
        }
    }
}

// === impl PolicyKind ===

impl PolicyKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::NetworkPolicy,
        Self::GlobalNetworkPolicy,
        Self::KubernetesNetworkPolicy,
        Self::KubernetesClusterNetworkPolicy,
        Self::StagedNetworkPolicy,
        Self::StagedGlobalNetworkPolicy,
        Self::StagedKubernetesNetworkPolicy,
    ];

    /// The name in full, as in `NetworkPolicy`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NetworkPolicy => "NetworkPolicy",
            Self::GlobalNetworkPolicy => "GlobalNetworkPolicy",
            Self::KubernetesNetworkPolicy => "KubernetesNetworkPolicy",
            Self::KubernetesClusterNetworkPolicy => "KubernetesClusterNetworkPolicy",
            Self::StagedNetworkPolicy => "StagedNetworkPolicy",
            Self::StagedGlobalNetworkPolicy => "StagedGlobalNetworkPolicy",
            Self::StagedKubernetesNetworkPolicy => "StagedKubernetesNetworkPolicy",
        }
    }

    /// The abbreviation for where space is scarce: chain names and log prefixes.
    pub fn short_name(self) -> &'static str {
        match self {
            Self::NetworkPolicy => "np",
            Self::GlobalNetworkPolicy => "gnp",
            Self::KubernetesNetworkPolicy => "knp",
            Self::KubernetesClusterNetworkPolicy => "kcnp",
            Self::StagedNetworkPolicy => "snp",
            Self::StagedGlobalNetworkPolicy => "sgnp",
            Self::StagedKubernetesNetworkPolicy => "sknp",
        }
    }

    /// Whether policies of this kind only report what they would do.
    pub fn is_staged(self) -> bool {
        match self {
            Self::StagedNetworkPolicy
            | Self::StagedGlobalNetworkPolicy
            | Self::StagedKubernetesNetworkPolicy => true,
            Self::NetworkPolicy
            | Self::GlobalNetworkPolicy
            | Self::KubernetesNetworkPolicy
            | Self::KubernetesClusterNetworkPolicy => false,
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PolicyKind {
    type Err = UnknownPolicyKind;

    fn from_str(text: &str) -> Result<Self, UnknownPolicyKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| UnknownPolicyKind(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: PolicyKind, namespace: &str, name: &str, [short, long, full]: [&str; 3]) {
        let id = PolicyId {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        assert_eq!(id.to_string(), short);
        assert_eq!(id.long_form(), long);
        assert_eq!(id.full_name(), full);
    }

    #[test]
    fn the_short_identity_leaves_out_an_empty_namespace() {
        check(
            PolicyKind::KubernetesNetworkPolicy,
            "shop",
            "web",
            [
                "knp/shop/web",
                "{Name: web, Namespace: shop, Kind: KubernetesNetworkPolicy}",
                "KubernetesNetworkPolicy shop/web",
            ],
        );
        check(
            PolicyKind::KubernetesClusterNetworkPolicy,
            "",
            "web",
            [
                "kcnp/web",
                "{Name: web, Namespace: , Kind: KubernetesClusterNetworkPolicy}",
                "KubernetesClusterNetworkPolicy web",
            ],
        );
    }

    #[test]
    fn every_kind_is_read_back_from_its_name() {
        for kind in PolicyKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }

    #[test]
    fn staged_kinds_and_only_they_are_called_so() {
        for kind in PolicyKind::ALL {
            assert_eq!(kind.is_staged(), kind.name().starts_with("Staged"));
        }
    }

    #[test]
    fn an_unknown_kind_is_refused_by_a_message_that_lists_the_known_ones() {
        let message = "networkpolicy"
            .parse::<PolicyKind>()
            .expect_err("kinds are spelled exactly")
            .to_string();
        for text in PolicyKind::ALL.map(PolicyKind::name) {
            assert!(message.contains(&format!("`{text}`")), "{message}");
        }
        assert!(message.contains("`networkpolicy`"), "{message}");
    }
}

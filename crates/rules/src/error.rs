//! What can be wrong with the text of a name.

/// A failure of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not the name of a kind of policy.
    #[error(
        "`{0}` is not a kind of policy: expected `NetworkPolicy`, `GlobalNetworkPolicy`, \
         `KubernetesNetworkPolicy`, `KubernetesClusterNetworkPolicy`, `StagedNetworkPolicy`, \
         `StagedGlobalNetworkPolicy` or `StagedKubernetesNetworkPolicy`"
    )]
    UnknownPolicyKind(String),
}

//! `StagedGlobalNetworkPolicy`: trial of a global policy that reports but does not enforce.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::kinds::global_network_policy::GlobalNetworkPolicySpec;
use crate::kinds::rule::StagedAction;

/// The policy to try out, and what it would do to the enforced one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct StagedGlobalNetworkPolicySpec {
    /// Whether the staged policy would set or delete the enforced one. Default `Set`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "x-default" = "Set"))]
    pub staged_action: Option<StagedAction>,
    /// The policy, as it would be enforced.
    #[serde(flatten)]
    pub policy: GlobalNetworkPolicySpec,
}

//! `StagedKubernetesNetworkPolicy`: trial of a Kubernetes policy that reports but does not enforce.

use k8s_openapi::api::networking::v1::{NetworkPolicyEgressRule, NetworkPolicyIngressRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::kinds::rule::StagedAction;

/// The Kubernetes policy to try out, and what it would do to the enforced one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct StagedKubernetesNetworkPolicySpec {
    /// Whether the staged policy would set or delete the enforced one. Default `Set`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "x-default" = "Set"))]
    pub staged_action: Option<StagedAction>,
    /// Selects pods of the namespace by label; empty covers all of them.
    pub pod_selector: LabelSelector,
    /// Kubernetes rules for traffic into the pods; one match is enough to allow.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ingress: Vec<NetworkPolicyIngressRule>,
    /// Kubernetes rules for traffic out of the pods; one match is enough to allow.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub egress: Vec<NetworkPolicyEgressRule>,
    /// Directions the policy covers; ingress, plus egress when it has such rules, when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minItems" = 1, "maxItems" = 2, "x-kubernetes-list-type" = "set"))]
    pub policy_types: Vec<String>,
}

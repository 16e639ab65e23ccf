//! NetworkPolicy: policy for workloads in one namespace, with tiers, order and deny rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::kinds::rule::{PolicyType, Rule};

/// Endpoints of the namespace the policy covers, its place in the order, and its rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkPolicySpec {
    /// Name of the tier the policy belongs to; `default` when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-default" = "default", "x-check" = "name"))]
    pub tier: String,
    /// Position in the tier: lower goes first; without a number the policy goes last.
    #[serde(skip_serializing_if = "is_default", serialize_with = "crate::scalar::float")]
    pub order: Option<f64>,
    /// Rules for traffic into the endpoints, tried in order until one decides.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 1024, "x-kubernetes-list-type" = "atomic"))]
    pub ingress: Vec<Rule>,
    /// Rules for traffic out of the endpoints, tried in order until one decides.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 1024, "x-kubernetes-list-type" = "atomic"))]
    pub egress: Vec<Rule>,
    /// Selects endpoints of the namespace by label; empty covers all of them.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub selector: String,
    /// Directions the policy covers; worked out from the rules present when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minItems" = 1, "maxItems" = 2, "x-kubernetes-list-type" = "set"))]
    pub types: Vec<PolicyType>,
    /// Narrows the policy to pods whose service account has matching labels.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub service_account_selector: String,
    /// Hints that trade memory for speed and never change what is allowed.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-check" = "unique"))]
    pub performance_hints: Vec<PolicyPerformanceHint>,
}

/// Hints about how a policy is used.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum PolicyPerformanceHint {
    /// Keep the policy ready on every node, so that the first matching pod starts faster.
    AssumeNeededOnEveryNode,
}

//! `StagedGlobalNetworkPolicy`: trial of a global policy that reports but does not enforce.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::kinds::network_policy::PolicyPerformanceHint;
use crate::kinds::rule::{PolicyType, Rule, StagedAction};

/// The policy to try out, and what it would do to the enforced one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct StagedGlobalNetworkPolicySpec {
    /// Whether the staged policy would set or delete the enforced one. Default `Set`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "x-default" = "Set"))]
    pub staged_action: Option<StagedAction>,
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
    /// Selects the endpoints by label; empty covers all endpoints.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub selector: String,
    /// Directions the policy covers; worked out from the rules present when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minItems" = 1, "maxItems" = 2, "x-kubernetes-list-type" = "set"))]
    pub types: Vec<PolicyType>,
    /// Would enforce before connection tracking, without state. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub do_not_track: bool,
    /// Would enforce inbound before service and other DNAT happens; ingress only. Default `false`.
    #[serde(rename = "preDNAT", skip_serializing_if = "is_default")]
    pub pre_dnat: bool,
    /// Would also cover traffic a host endpoint forwards. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub apply_on_forward: bool,
    /// Narrows the policy to pods whose service account has matching labels.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub service_account_selector: String,
    /// Narrows the policy to workloads in namespaces with matching labels.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub namespace_selector: String,
    /// Hints that trade memory for speed and never change the verdict.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-check" = "unique"))]
    pub performance_hints: Vec<PolicyPerformanceHint>,
}

//! `Tier`: an ordered group of policies with its own default action.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::kinds::rule::Action;
use crate::meta::Condition;

/// The tiers that always exist, with the order and default action that they must have.
pub const BUILT_IN: [(&str, f64, Action); 3] = [
    ("default", 1_000_000.0, Action::Deny),
    ("kube-admin", 1_000.0, Action::Pass),
    ("kube-baseline", 10_000_000.0, Action::Pass),
];

/// What the controllers found out about the tier.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TierStatus {
    /// Current conditions; `Ready` tells whether the tier can be used.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Place of the tier and what happens at its end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TierSpec {
    /// Position among the tiers: lower goes first. Default 1000000.
    #[serde(skip_serializing_if = "is_default", serialize_with = "crate::scalar::float")]
    pub order: Option<f64>,
    /// Fate of traffic its policies cover but no rule decides: `Deny` or `Pass`. Default `Deny`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-unlisted" = true, "x-default" = "Deny", "x-check" = "oneof=Deny Pass"))]
    pub default_action: Option<Action>,
}

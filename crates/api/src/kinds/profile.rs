//! `Profile`: rules and labels that endpoints inherit, one per namespace and service account.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::kinds::rule::Rule;

/// Rules used when no policy covers an endpoint, and labels its endpoints inherit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ProfileSpec {
    /// Rules for traffic into endpoints with this profile, when no policy covers it.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 1024, "x-kubernetes-list-type" = "atomic"))]
    pub ingress: Vec<Rule>,
    /// Rules for traffic out of endpoints with this profile, when no policy covers it.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 1024, "x-kubernetes-list-type" = "atomic"))]
    pub egress: Vec<Rule>,
    /// Labels that endpoints with this profile inherit, for selectors to match.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "labels"))]
    pub labels_to_apply: BTreeMap<String, String>,
}

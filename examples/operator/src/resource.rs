//! The kind: what people write, and what they are told.

use std::collections::BTreeMap;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tortie_operator::{Custom, CustomKind};

/// Keeps a network policy in each selected namespace that denies what no other policy allows.
pub type NamespaceBaseline = Custom<NamespaceBaselineSpec>;

/// Which namespaces are protected, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceBaselineSpec {
    /// The labels that a namespace has to have, all of them.
    pub namespace_labels: BTreeMap<String, String>,
    /// Which directions are denied: Ingress, Egress or both. Both if not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<String>,
    /// Whether pods may ask for names nevertheless. Yes if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_dns: Option<bool>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceBaselineStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The namespaces that are protected, in order.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// `Ready` says whether all that was wanted is there.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

impl CustomKind for NamespaceBaselineSpec {
    const GROUP: &'static str = "example.tortie.dev";
    const VERSION: &'static str = "v1alpha1";
    const KIND: &'static str = "NamespaceBaseline";
    const PLURAL: &'static str = "namespacebaselines";
    type Scope = ClusterResourceScope;
    type Status = NamespaceBaselineStatus;
}

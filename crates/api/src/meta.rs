//! Object metadata, as Kubernetes shapes it, trimmed to what Calico resources carry.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Name, labels and bookkeeping of one object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// Name of the object, unique among objects of its kind (and namespace).
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// Prefix for a generated name; carried along, never used to make one.
    #[serde(skip_serializing_if = "is_default")]
    pub generate_name: String,
    /// Namespace of the object; empty for kinds that belong to the whole cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Identity of this very object, as opposed to a later one of the same name.
    #[serde(skip_serializing_if = "is_default")]
    pub uid: String,
    /// The datastore's revision of the object, for compare-and-swap.
    #[serde(skip_serializing_if = "is_default")]
    pub resource_version: String,
    /// Counts changes to the desired state.
    #[serde(skip_serializing_if = "is_default")]
    pub generation: Option<i64>,
    /// When the object was created.
    #[serde(skip_serializing_if = "is_default")]
    pub creation_timestamp: Option<Time>,
    /// When deletion was asked for; set while finalizers are pending.
    #[serde(skip_serializing_if = "is_default")]
    pub deletion_timestamp: Option<Time>,
    /// Seconds granted for deletion.
    #[serde(skip_serializing_if = "is_default")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Labels, which selectors match.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: BTreeMap<String, String>,
    /// Notes for tools and people; selectors do not see them.
    #[serde(skip_serializing_if = "is_default")]
    pub annotations: BTreeMap<String, String>,
    /// Objects this one belongs to.
    #[serde(skip_serializing_if = "is_default")]
    pub owner_references: Vec<OwnerReference>,
    /// Who must agree before the object goes away.
    #[serde(skip_serializing_if = "is_default")]
    pub finalizers: Vec<String>,
    /// Who manages which field, for server-side apply. Kept for the API server, which alone reads it.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub managed_fields: Option<Box<serde_json::Value>>,
    /// Accepted because old objects carry it; never kept.
    #[serde(skip_serializing)]
    #[schemars(with = "Option<String>")]
    pub self_link: Ignored,
}

/// A field that is read over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A reference to an object that this one belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    /// API group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    /// Whether the owner is the one managing controller.
    #[serde(skip_serializing_if = "is_default")]
    pub controller: Option<bool>,
    /// Whether the owner's deletion waits for this object.
    #[serde(skip_serializing_if = "is_default")]
    pub block_owner_deletion: Option<bool>,
}

/// One aspect of an object's state, as reported by a controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["lastTransitionTime", "message", "reason", "status", "type"]))]
pub struct Condition {
    /// When the status last changed.
    pub last_transition_time: Option<Time>,
    /// What happened, for people.
    #[schemars(extend("maxLength" = 32768))]
    pub message: String,
    /// The generation of the object that the condition was computed for.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0))]
    pub observed_generation: Option<i64>,
    /// What happened, as one CamelCase word for programs.
    #[schemars(extend("minLength" = 1, "maxLength" = 1024, "pattern" = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))]
    pub reason: String,
    /// `True`, `False` or `Unknown`.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// Which aspect this is about.
    #[schemars(extend("maxLength" = 316))]
    pub r#type: String,
}

/// One key of a Kubernetes Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["key"], "x-kubernetes-map-type" = "atomic"))]
pub struct SecretKeySelector {
    /// The key within the Secret.
    pub key: String,
    /// Name of the Secret, in the namespace where the node daemon runs.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-default" = ""))]
    pub name: String,
    /// Whether the Secret or the key may be missing.
    #[serde(skip_serializing_if = "is_default")]
    pub optional: Option<bool>,
}

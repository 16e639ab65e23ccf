//! `ClusterInformation`: facts about the installation, kept in one object named `default`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;

/// Identity, version and readiness of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterInformationSpec {
    /// Random identity of the cluster, 32 hexadecimal digits, made once at installation.
    #[serde(rename = "clusterGUID", skip_serializing_if = "is_default")]
    pub cluster_guid: String,
    /// Comma-separated hints about the platform, such as `k8s,bgp,kubeadm`.
    #[serde(skip_serializing_if = "is_default")]
    pub cluster_type: String,
    /// Version that last initialised the datastore.
    #[serde(skip_serializing_if = "is_default")]
    pub calico_version: String,
    /// While `false`, for example during a migration, all components hold their current state.
    #[serde(skip_serializing_if = "is_default")]
    pub datastore_ready: Option<bool>,
    /// Edition of the product that runs the cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub variant: String,
}

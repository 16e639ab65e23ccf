//! `LiveMigration`: a virtual machine on its way from one node to another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;

/// The two ends of the move.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LiveMigrationSpec {
    /// Workload that runs now and is being left.
    #[serde(skip_serializing_if = "is_default")]
    pub source: Option<LiveMigrationSource>,
    /// Workload that takes over.
    #[serde(skip_serializing_if = "is_default")]
    pub target: Option<LiveMigrationTarget>,
}

/// Identifies the workload being left; one member is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LiveMigrationSource {
    /// The workload as a whole, with all its endpoints.
    #[serde(skip_serializing_if = "is_default")]
    pub workload: Option<WorkloadIdentifier>,
    /// One endpoint of the workload.
    #[serde(skip_serializing_if = "is_default")]
    pub workload_endpoint: Option<WorkloadEndpointIdentifier>,
}

/// Identifies the workload that takes over; one member is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LiveMigrationTarget {
    /// Selects the endpoint by label, for targets not yet known by name.
    #[serde(skip_serializing_if = "is_default")]
    pub selector: Option<String>,
    /// Endpoint of the target, where its name is known.
    #[serde(skip_serializing_if = "is_default")]
    pub workload_endpoint: Option<WorkloadEndpointIdentifier>,
}

/// Names a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadIdentifier {
    /// Node the workload runs on.
    #[serde(skip_serializing_if = "is_default")]
    pub hostname: String,
    /// Orchestrator that made the workload, such as `k8s` or `openstack`.
    #[serde(rename = "orchestratorID", skip_serializing_if = "is_default")]
    pub orchestrator_id: String,
    /// Name of the workload in its orchestrator.
    #[serde(rename = "workloadID", skip_serializing_if = "is_default")]
    pub workload_id: String,
}

/// Names one endpoint of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadEndpointIdentifier {
    /// Node the workload runs on.
    #[serde(skip_serializing_if = "is_default")]
    pub hostname: String,
    /// Orchestrator that made the workload, such as `k8s` or `openstack`.
    #[serde(rename = "orchestratorID", skip_serializing_if = "is_default")]
    pub orchestrator_id: String,
    /// Name of the workload in its orchestrator.
    #[serde(rename = "workloadID", skip_serializing_if = "is_default")]
    pub workload_id: String,
    /// Which of the workload's interfaces is meant, such as `eth0`.
    #[serde(rename = "endpointID", skip_serializing_if = "is_default")]
    pub endpoint_id: String,
}

//! `KubeVirt`'s migrations of virtual machines as `LiveMigration`s.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::kinds::LiveMigration;
use crate::kinds::live_migration::{
    LiveMigrationSource, LiveMigrationSpec, LiveMigrationTarget, WorkloadIdentifier,
};
use crate::meta::Metadata;

/// The phases in which a migration concerns the network; in all others it counts as absent.
const ACTIVE_PHASES: [&str; 6] = [
    "Scheduling",
    "Scheduled",
    "PreparingTarget",
    "TargetReady",
    "Running",
    "Failed",
];

/// `kubevirt.io/v1` `VirtualMachineInstanceMigration`, as far as it is converted.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VirtualMachineInstanceMigration {
    /// Name, labels and bookkeeping.
    pub metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    vmi_name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: String,
    migration_state: MigrationState,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MigrationState {
    source_pod: String,
}

/// Converts a migration; `None` while it does not concern the network. The source is known only from a later phase
/// on, the target from the first.
pub fn live_migration(migration: &VirtualMachineInstanceMigration) -> Option<LiveMigration> {
    let VirtualMachineInstanceMigration {
        metadata: meta,
        spec,
        status,
    } = migration;
    let uid = meta.uid.clone().unwrap_or_default();
    if !ACTIVE_PHASES.contains(&status.phase.as_str()) || spec.vmi_name.is_empty() || uid.is_empty()
    {
        return None;
    }
    let namespace = meta.namespace.clone().unwrap_or_default();
    let vmi = &spec.vmi_name;
    // The first label names the machine since KubeVirt 1.7, the second before.
    let selector = format!(
        "(vmi.kubevirt.io/id == '{vmi}' || vm.kubevirt.io/name == '{vmi}') && kubevirt.io/migrationJobUID == '{uid}'"
    );
    let source_pod = &status.migration_state.source_pod;
    let source = (!source_pod.is_empty()).then(|| LiveMigrationSource {
        workload: Some(WorkloadIdentifier {
            orchestrator_id: "k8s".into(),
            workload_id: format!("{namespace}/{source_pod}"),
            ..WorkloadIdentifier::default()
        }),
        ..LiveMigrationSource::default()
    });
    let target = LiveMigrationTarget {
        selector: Some(selector),
        ..LiveMigrationTarget::default()
    };
    let metadata = Metadata {
        name: meta.name.clone().unwrap_or_default(),
        namespace,
        uid,
        resource_version: meta.resource_version.clone().unwrap_or_default(),
        creation_timestamp: meta.creation_timestamp.clone(),
        labels: meta.labels.clone().unwrap_or_default(),
        annotations: meta.annotations.clone().unwrap_or_default(),
        ..Metadata::default()
    };
    let spec = LiveMigrationSpec {
        source,
        target: Some(target),
    };
    Some(LiveMigration {
        metadata,
        spec,
        ..LiveMigration::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(phase: &str, source_pod: &str) -> Option<LiveMigration> {
        let migration = serde_json::json!({
            "metadata": {"name": "m", "namespace": "ns", "uid": "u"},
            "spec": {"vmiName": "vm"},
            "status": {"phase": phase, "migrationState": {"sourcePod": source_pod}},
        });
        live_migration(&serde_json::from_value(migration).unwrap())
    }

    #[test]
    fn the_source_is_left_out_until_it_is_known() {
        let migration = convert("Scheduling", "").unwrap();
        assert_eq!(migration.spec.source, None);
        let selector = "(vmi.kubevirt.io/id == 'vm' || vm.kubevirt.io/name == 'vm') && kubevirt.io/migrationJobUID == 'u'";
        assert_eq!(
            migration.spec.target.unwrap().selector.as_deref(),
            Some(selector)
        );
        let source = convert("Running", "launcher").unwrap().spec.source.unwrap();
        assert_eq!(source.workload.unwrap().workload_id, "ns/launcher");
    }

    #[test]
    fn a_migration_that_is_over_counts_as_absent() {
        assert_eq!(convert("Succeeded", "launcher"), None);
        assert_eq!(convert("Pending", ""), None);
    }
}

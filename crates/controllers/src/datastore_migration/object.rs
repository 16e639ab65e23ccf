//! `DatastoreMigration`, which asks for a migration and tells how far it has come.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use tortie_api::meta::{Condition, Time};

/// The only name that is acted on.
pub(super) const NAME: &str = "v1-to-v3";

/// The only type there is.
pub(super) const API_SERVER_TO_CRDS: &str = "APIServerToCRDs";

/// Holds the deletion up until everything is undone or cleaned up.
pub(super) const FINALIZER: &str = "migration.projectcalico.org/v1-crd-cleanup";

/// Holds the registration of the aggregated API server.
pub(super) const SAVED_API_SERVICE: &str = "migration.projectcalico.org/saved-apiservice";

/// On a `ClusterInformation` that was locked, and on resources that were copied: by which migration.
pub(super) const LOCKED_BY: &str = "migration.projectcalico.org/locked-by";
pub(super) const MIGRATED_BY: &str = "migration.projectcalico.org/migrated-by";

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct DatastoreMigration {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Spec,
    #[serde(default)]
    pub(super) status: Status,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Spec {
    pub(super) r#type: String,
}

/// What is told. Written as a whole: what is not said is removed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) phase: Phase,
    pub(super) message: String,
    pub(super) datastore_locked_at: Option<Time>,
    pub(super) started_at: Option<Time>,
    pub(super) completed_at: Option<Time>,
    pub(super) progress: Progress,
    pub(super) conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    #[default]
    Pending,
    Migrating,
    WaitingForConflictResolution,
    Converged,
    Complete,
    Failed,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(
    clippy::struct_field_names,
    reason = "the names are those of the object"
)]
pub(super) struct Progress {
    pub(super) total_types: usize,
    pub(super) completed_types: usize,
    pub(super) type_progress: String,
    pub(super) current_type: String,
    pub(super) total: usize,
    pub(super) migrated: usize,
    pub(super) skipped: usize,
    pub(super) conflicts: usize,
    pub(super) type_details: Vec<TypeProgress>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TypeProgress {
    pub(super) kind: String,
    pub(super) migrated: usize,
    pub(super) skipped: usize,
    pub(super) conflicts: usize,
}

impl DatastoreMigration {
    pub(super) fn has_finalizer(&self) -> bool {
        let finalizers = self.metadata.finalizers.iter().flatten();
        finalizers.into_iter().any(|name| name == FINALIZER)
    }

    /// Tells this migration from others of its name.
    pub(super) fn id(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn annotation(&self, name: &str) -> Option<&String> {
        self.metadata.annotations.as_ref()?.get(name)
    }
}

impl kube::Resource for DatastoreMigration {
    type DynamicType = ();
    type Scope = k8s_openapi::ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "DatastoreMigration".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "migration.projectcalico.org".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "datastoremigrations".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

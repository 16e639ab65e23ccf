//! `DatastoreMigration`, which asks for a migration and tells how far it has come.

use std::borrow::Cow;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tortie_api::meta::{Condition, Time};
use tortie_operator::CustomKind;

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

/// Asks for a move of all resources from crd.projectcalico.org/v1 to projectcalico.org/v3, and tells how far it has come.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["type"]))]
pub(super) struct Spec {
    /// Which migration.
    #[schemars(extend("enum" = [API_SERVER_TO_CRDS], "maxLength" = 64))]
    pub(super) r#type: String,
}

/// What is told. Written as a whole: what is not said is removed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    /// How far it has come.
    pub(super) phase: Phase,
    /// What is being done or waited for.
    #[schemars(extend("maxLength" = 1024))]
    pub(super) message: String,
    /// Since when nobody may write to the older group.
    pub(super) datastore_locked_at: Option<Time>,
    /// Since when resources are copied.
    pub(super) started_at: Option<Time>,
    /// When everything was done.
    pub(super) completed_at: Option<Time>,
    /// How many resources were copied.
    pub(super) progress: Progress,
    /// Conflicts and failures.
    #[schemars(extend("maxItems" = 64))]
    pub(super) conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) enum Phase {
    #[default]
    Pending,
    Migrating,
    WaitingForConflictResolution,
    Converged,
    Complete,
    Failed,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[expect(
    clippy::struct_field_names,
    reason = "the names are those of the object"
)]
pub(super) struct Progress {
    /// How many kinds there are.
    #[schemars(with = "i32")]
    pub(super) total_types: usize,
    /// How many kinds are done.
    #[schemars(with = "i32")]
    pub(super) completed_types: usize,
    /// Both, as in `5 / 21`.
    #[schemars(extend("maxLength" = 64))]
    pub(super) type_progress: String,
    /// The kind that is being copied.
    #[schemars(extend("maxLength" = 253))]
    pub(super) current_type: String,
    /// How many resources were looked at.
    #[schemars(with = "i32")]
    pub(super) total: usize,
    /// How many were copied.
    #[schemars(with = "i32")]
    pub(super) migrated: usize,
    /// How many were there already.
    #[schemars(with = "i32")]
    pub(super) skipped: usize,
    /// How many are there, but say something else.
    #[schemars(with = "i32")]
    pub(super) conflicts: usize,
    /// The same for each kind.
    #[schemars(extend(
        "maxItems" = 128,
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["kind"],
    ))]
    pub(super) type_details: Vec<TypeProgress>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["kind"]))]
pub(super) struct TypeProgress {
    /// Which kind.
    #[schemars(extend("maxLength" = 253))]
    pub(super) kind: String,
    /// How many were copied.
    #[schemars(with = "i32")]
    pub(super) migrated: usize,
    /// How many were there already.
    #[schemars(with = "i32")]
    pub(super) skipped: usize,
    /// How many are there, but say something else.
    #[schemars(with = "i32")]
    pub(super) conflicts: usize,
}

impl CustomKind for Spec {
    const GROUP: &'static str = "migration.projectcalico.org";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "DatastoreMigration";
    const PLURAL: &'static str = "datastoremigrations";
    type Scope = ClusterResourceScope;
    type Status = Status;
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
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Spec::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        Spec::GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        Spec::VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        Spec::PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

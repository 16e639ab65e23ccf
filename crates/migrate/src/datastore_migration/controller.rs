//! The phases, one step at a time.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tortie_api::crd::Group;
use tortie_api::meta::{Condition, Time};
use tortie_api::{Kind, Resource};
use tortie_backoff::{Backoff, Retries};
use tortie_error::Causes;
use tortie_store::{Error as StoreError, Key, Query};

use super::Settings;
use super::api_service::ApiServices;
use super::copy::{Groups, Owners};
use super::installation;
use super::locks;
use super::metrics::Metrics;
use super::object::{
    API_SERVER_TO_CRDS, DatastoreMigration, FINALIZER, NAME, Phase, Progress, SAVED_API_SERVICE,
    Status, TypeProgress,
};
use super::phase::{KINDS, conflict_conditions, rollout, tier_drift};

/// Delays after failures, but for the longest.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(200),
    most: Duration::from_millis(200),
    jitter: 0.1,
};

const DRIFT: &str = "Correct the following v1 tiers before migration can start: ";

/// Messages may not be longer.
const MAX_MESSAGE: usize = 1024;

pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) settings: Settings,
    metrics: Metrics,
    migrations: Api<DatastoreMigration>,
    pub(super) api_services: ApiServices,
}

/// What to do after a step.
pub(super) enum Next {
    /// The next step.
    GoOn,
    /// Look again after a while.
    Wait(Duration),
    /// The process has to start anew.
    Restart,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Final(String),
    #[error("{0}")]
    Unready(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Cluster(#[from] kube::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

pub(super) type Step = Result<Next, Failure>;

impl Controller {
    pub(super) fn new(client: Client, settings: Settings, metrics: Metrics) -> Self {
        Self {
            migrations: Api::all(client.clone()),
            api_services: ApiServices::new(&client),
            client,
            settings,
            metrics,
        }
    }

    pub(super) async fn run(self) {
        let mut retries = Retries::new(Backoff {
            most: self.settings.poll.max(RETRY.first),
            ..RETRY
        });
        loop {
            let pause = match self.step().await {
                Ok(next) => {
                    retries.reset();
                    match next {
                        Next::GoOn => continue,
                        Next::Wait(pause) => pause,
                        Next::Restart => return,
                    }
                }
                Err(failure) => {
                    self.note(&failure).await;
                    retries.failed()
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn step(&self) -> Step {
        let wait = Ok(Next::Wait(self.settings.poll));
        let migration = match self.migrations.get_opt(NAME).await {
            Ok(Some(migration)) => migration,
            // Nobody asks for one, or such cannot even be asked for.
            Ok(None) => return wait,
            Err(error) => return Err(error.into()),
        };
        let phase = migration.status.phase;
        self.metrics.set_phase(phase);
        if migration.metadata.deletion_timestamp.is_some() {
            return self.deleted(migration).await;
        }
        if phase != Phase::Failed && migration.spec.r#type != API_SERVER_TO_CRDS {
            let found = &migration.spec.r#type;
            let message = format!(
                "unsupported migration type: \"{found}\" (only \"{API_SERVER_TO_CRDS}\" is supported)"
            );
            return Err(Failure::Final(message));
        }
        match phase {
            Phase::Pending => self.pending(migration).await,
            Phase::Migrating => self.migrating(migration).await,
            Phase::WaitingForConflictResolution => self.waiting(migration).await,
            Phase::Converged => self.converged(migration).await,
            Phase::Complete | Phase::Failed => wait,
        }
    }

    /// Says in the object why it does not go on. What cannot succeed ends the migration.
    async fn note(&self, failure: &Failure) {
        tracing::warn!(
            error = %Causes(failure),
            "A step of the migration failed"
        );
        let Ok(Some(mut migration)) = self.migrations.get_opt(NAME).await else {
            return;
        };
        let status = &mut migration.status;
        status.message = failure.to_string();
        if matches!(failure, Failure::Final(_)) {
            status.phase = Phase::Failed;
            status.conditions.push(Condition {
                last_transition_time: Some(Time(Timestamp::now())),
                message: status.message.clone(),
                observed_generation: None,
                reason: "MigrationError".to_owned(),
                status: "True".to_owned(),
                r#type: "Failed".to_owned(),
            });
        }
        if let Err(error) = self.tell(&migration).await {
            tracing::warn!(error = %Causes(&error), "The state of the migration could not be noted");
        }
    }

    async fn pending(&self, mut migration: DatastoreMigration) -> Step {
        let wait = Next::Wait(self.settings.poll);
        // Before the finalizer: what can never start needs no undoing.
        if installation::definitions(&self.client, Group::V1)
            .await?
            .is_empty()
        {
            let message = "no v1 CRDs (crd.projectcalico.org) found - nothing to migrate";
            return Err(Failure::Final(message.to_owned()));
        }
        if !migration.has_finalizer() {
            let mut finalizers = migration.metadata.finalizers.clone().unwrap_or_default();
            finalizers.push(FINALIZER.to_owned());
            migration = self.annotate(&json!({ "finalizers": finalizers })).await?;
        }
        let locked_at = if let Some(at) = &migration.status.datastore_locked_at {
            at.0
        } else {
            if installation::definitions(&self.client, Group::V3)
                .await?
                .is_empty()
            {
                let message = "v3 CRDs (projectcalico.org) not installed - apply them before starting migration";
                return Err(Failure::Unready(message.to_owned()));
            }
            let drift = self.tier_drift().await?;
            if !drift.is_empty() {
                migration.status.message = format!("{DRIFT}{}", drift.join("; "));
                self.tell(&migration).await?;
                return Ok(wait);
            }
            locks::set_ready(&*self.settings.v1, false).await?;
            let now = Timestamp::now();
            migration.status.datastore_locked_at = Some(Time(now));
            "Waiting for in-flight datastore writes to drain"
                .clone_into(&mut migration.status.message);
            self.tell(&migration).await?;
            now
        };
        let waited = Timestamp::now().duration_since(locked_at);
        let waited = Duration::try_from(waited).unwrap_or_default();
        if let Some(left) = self
            .settings
            .drain
            .checked_sub(waited)
            .filter(|left| !left.is_zero())
        {
            return Ok(Next::Wait(left));
        }
        self.unregister(&migration).await?;
        let conflicts = self.groups().conflicts().await?;
        if conflicts.is_empty() {
            migration.status.phase = Phase::Migrating;
            migration.status.started_at = Some(Time(Timestamp::now()));
        } else {
            note_conflicts(&mut migration.status, &conflicts);
        }
        self.tell(&migration).await?;
        Ok(Next::GoOn)
    }

    async fn migrating(&self, mut migration: DatastoreMigration) -> Step {
        // Done before; again in case somebody undid it.
        locks::set_ready(&*self.settings.v1, false).await?;
        self.unregister(&migration).await?;
        locks::lock_v3(&self.settings, migration.id()).await?;

        let groups = self.groups();
        let mut owners = Owners::default();
        let mut conflicts = Vec::new();
        "Migrating resources".clone_into(&mut migration.status.message);
        migration.status.progress = Progress {
            total_types: KINDS.len(),
            ..Progress::default()
        };
        for (done, kind) in KINDS.into_iter().enumerate() {
            let progress = &mut migration.status.progress;
            progress.current_type = kind.to_string();
            progress.completed_types = done;
            progress.type_progress = format!("{done} / {}", KINDS.len());
            self.tell(&migration).await?;
            let start = std::time::Instant::now();
            let copied = groups.copy(kind, migration.id(), &mut owners).await;
            self.metrics
                .took(kind.as_str(), start.elapsed().as_secs_f64());
            let copied = copied.inspect_err(|_| self.metrics.failed(kind.as_str()))?;
            let details = TypeProgress {
                kind: kind.to_string(),
                migrated: copied.migrated,
                skipped: copied.skipped,
                conflicts: copied.conflicts.len(),
            };
            self.metrics
                .count(kind.as_str(), "migrated", details.migrated);
            self.metrics
                .count(kind.as_str(), "skipped", details.skipped);
            self.metrics
                .count(kind.as_str(), "conflict", details.conflicts);
            let progress = &mut migration.status.progress;
            progress.migrated += details.migrated;
            progress.skipped += details.skipped;
            progress.conflicts += details.conflicts;
            progress.total += details.migrated + details.skipped + details.conflicts;
            progress.type_details.push(details);
            conflicts.extend(copied.conflicts);
        }
        groups.remap(owners).await?;
        let status = &mut migration.status;
        status.progress.current_type.clear();
        status.progress.completed_types = KINDS.len();
        status.progress.type_progress = format!("{} / {}", KINDS.len(), KINDS.len());
        if conflicts.is_empty() {
            if let Some(started) = &status.started_at {
                let took = Timestamp::now().duration_since(started.0);
                self.metrics.seconds.observe(took.as_secs_f64());
            }
            // The older group stays locked: whoever still reads it must not give out addresses.
            locks::set_ready(&*self.settings.v3, true).await?;
            status.conditions.clear();
            status.phase = Phase::Converged;
            "Waiting for components to switch to v3 API group".clone_into(&mut status.message);
        } else {
            note_conflicts(status, &conflicts);
        }
        self.tell(&migration).await?;
        Ok(Next::GoOn)
    }

    async fn waiting(&self, mut migration: DatastoreMigration) -> Step {
        let conflicts = self.groups().conflicts().await?;
        if conflicts.is_empty() {
            migration.status.conditions.clear();
            migration.status.phase = Phase::Pending;
            self.tell(&migration).await?;
            return Ok(Next::GoOn);
        }
        let before = migration.status.clone();
        note_conflicts(&mut migration.status, &conflicts);
        if before.message != migration.status.message
            || before.conditions.len() != migration.status.conditions.len()
        {
            self.tell(&migration).await?;
        }
        Ok(Next::Wait(self.settings.poll))
    }

    pub(super) async fn converged(&self, mut migration: DatastoreMigration) -> Step {
        let namespace = &self.settings.namespace;
        let nodes: Api<DaemonSet> = Api::namespaced(self.client.clone(), namespace);
        let fan_outs: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        let Some(node) = nodes.get_opt("calico-node").await? else {
            return Ok(Next::Wait(self.settings.poll));
        };
        let fan_out = fan_outs.get_opt("calico-typha").await?;
        let has_operator = installation::has_operator(&self.client).await;
        if let Err(message) = rollout(&node, fan_out.as_ref(), has_operator) {
            if migration.status.message != message {
                migration.status.message = message;
                self.tell(&migration).await?;
            }
            return Ok(Next::Wait(self.settings.poll));
        }
        let status = &mut migration.status;
        status.phase = Phase::Complete;
        "Migration complete".clone_into(&mut status.message);
        status.completed_at = Some(Time(Timestamp::now()));
        self.tell(&migration).await?;
        self.metrics.set_phase(Phase::Complete);
        let is_deleted = migration.metadata.deletion_timestamp.is_some();
        if has_operator || is_deleted {
            return Ok(Next::GoOn);
        }
        tracing::info!("Migration complete; starting anew to use the v3 API group");
        Ok(Next::Restart)
    }

    /// Takes the aggregated API server out of the way, and remembers it.
    async fn unregister(&self, migration: &DatastoreMigration) -> Result<(), Failure> {
        let Some(service) = self.api_services.aggregated().await? else {
            return Ok(());
        };
        if migration.annotation(SAVED_API_SERVICE).is_none() {
            let saved = serde_json::to_string(&service)?;
            self.annotate(&json!({ "annotations": { SAVED_API_SERVICE: saved } }))
                .await?;
        }
        tracing::info!("Unregistering the aggregated API server");
        self.api_services.delete().await?;
        Ok(())
    }

    async fn tier_drift(&self) -> Result<Vec<String>, Failure> {
        let tiers = self.settings.v1.list(&Query::all(Kind::Tier)).await?;
        Ok(tier_drift(tiers.items.iter().filter_map(
            |tier| match tier {
                Resource::Tier(tier) => Some(&**tier),
                _ => None,
            },
        )))
    }

    pub(super) fn groups(&self) -> Groups<'_> {
        Groups {
            v1: &*self.settings.v1,
            v3: &*self.settings.v3,
            metrics: &self.metrics,
        }
    }

    pub(super) async fn tell(&self, migration: &DatastoreMigration) -> Result<(), Failure> {
        let mut status = migration.status.clone();
        status.message = status.message.chars().take(MAX_MESSAGE).collect();
        let patch = Patch::Merge(json!({ "status": status }));
        let parameters = PatchParams::default();
        self.migrations
            .patch_status(NAME, &parameters, &patch)
            .await?;
        Ok(())
    }

    pub(super) async fn annotate(
        &self,
        metadata: &serde_json::Value,
    ) -> Result<DatastoreMigration, Failure> {
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        Ok(self
            .migrations
            .patch(NAME, &PatchParams::default(), &patch)
            .await?)
    }
}

fn note_conflicts(status: &mut Status, conflicts: &[Key]) {
    status.phase = Phase::WaitingForConflictResolution;
    let number = conflicts.len();
    status.message = format!(
        "Datastore is locked: resolve {number} resource conflicts to let the migration continue"
    );
    status.conditions = conflict_conditions(conflicts, Timestamp::now());
}

//! What happens when the request for a migration is deleted: the last step, or the way back.

use kube::api::{DeleteParams, DynamicObject};
use serde_json::json;
use tortie_api::crd::Group;
use tortie_store::Error as StoreError;

use super::controller::{Controller, Failure, Next, Step};
use super::object::{DatastoreMigration, FINALIZER, Phase, SAVED_API_SERVICE};
use super::{installation, locks};

impl Controller {
    pub(super) async fn deleted(&self, mut migration: DatastoreMigration) -> Step {
        if !migration.has_finalizer() {
            return Ok(Next::Wait(self.settings.poll));
        }
        match migration.status.phase {
            Phase::Complete => {
                let definitions = installation::definition_api(&self.client);
                for name in installation::definitions(&self.client, Group::V1).await? {
                    tracing::info!(%name, "Deleting a definition of the older group");
                    match definitions.delete(&name, &DeleteParams::default()).await {
                        Err(kube::Error::Api(status)) if status.code == 404 => {}
                        deleted => drop(deleted?),
                    }
                }
            }
            Phase::Converged => {
                // Components may use the newer group already: there is no way back.
                let message = "Deletion pending: migration is Converged and cannot be rolled back. Waiting for completion.";
                if !migration.status.message.starts_with("Waiting") {
                    message.clone_into(&mut migration.status.message);
                    self.tell(&migration).await?;
                }
                return self.converged(migration).await;
            }
            _ => self.undo(&migration).await?,
        }
        let finalizers = migration.metadata.finalizers.unwrap_or_default();
        let finalizers: Vec<_> = finalizers
            .iter()
            .filter(|name| *name != FINALIZER)
            .collect();
        self.annotate(&json!({ "finalizers": finalizers })).await?;
        Ok(Next::GoOn)
    }

    /// Brings everything to where it was. The older group is unlocked last but for the registration: before that nobody
    /// could go on anyway.
    async fn undo(&self, migration: &DatastoreMigration) -> Result<(), Failure> {
        let status = &migration.status;
        if status.started_at.is_some() {
            self.groups().remove_copies(migration.id()).await;
        }
        locks::unlock_v3(&self.settings, migration.id()).await?;
        if status.datastore_locked_at.is_some() || status.started_at.is_some() {
            match locks::set_ready(&*self.settings.v1, true).await {
                Err(StoreError::NotFound(_)) => {}
                unlocked => unlocked?,
            }
        }
        if let Some(saved) = migration.annotation(SAVED_API_SERVICE) {
            let saved: DynamicObject = serde_json::from_str(saved)?;
            self.api_services.restore(&saved).await?;
        }
        Ok(())
    }
}

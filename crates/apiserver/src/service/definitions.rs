//! The deletion of definitions, with the custom resources that they define.

use serde_json::{Value, json};

use super::write::{DeleteOptions, Deleted};
use super::{Service, Unguarded, lifecycle};
use crate::custom;
use crate::failure::Result;
use crate::options::ListOptions;
use crate::registry::{Native, ResourceType};
use crate::storage::Mode;

impl Service {
    /// Closes a kind, deletes its objects, and then the definition. What is held back keeps it.
    pub(super) async fn delete_definition(
        &self,
        of: &ResourceType,
        object: &Value,
        mode: Mode,
    ) -> Result<Deleted> {
        if mode.is_dry_run {
            return Ok(Deleted::Gone(object.clone()));
        }
        let now = super::write::now();
        let closed = custom::closed(lifecycle::mark_deleted(object, &now), &now);
        let mut closed = if lifecycle::is_unchanged(object, &closed) {
            closed
        } else {
            self.storage.update(of, closed, mode).await?
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if let Some(inner) = self.registry.definitions().stored_type(name) {
            let (all, options) = (ListOptions::default(), DeleteOptions::default());
            let deleted = self.delete_all(inner, None, &all, &options, &Unguarded);
            if !deleted.await?.are_gone {
                return Ok(Deleted::Marked(closed));
            }
        }
        if let Some(finalizers) = closed["metadata"]["finalizers"].as_array_mut() {
            finalizers.retain(|finalizer| *finalizer != json!(custom::CLEANUP));
        }
        if lifecycle::has_finalizers(&closed) {
            let closed = self.storage.update(of, closed, mode).await?;
            return Ok(Deleted::Marked(closed));
        }
        self.storage.delete(of, &closed, mode).await?;
        Ok(Deleted::Gone(closed))
    }

    /// Deletes a definition that was only waiting for the object that is now gone.
    pub(super) async fn finish_definition(&self, inner: &ResourceType) {
        let name = custom::name_of(inner);
        let Some(of) = self.native(Native::CustomResourceDefinition) else {
            return;
        };
        let Ok(object) = self.storage.get(of, "", &name).await else {
            return;
        };
        if object["metadata"].get("deletionTimestamp").is_some()
            && let Err(failure) = self.delete_definition(of, &object, Mode::default()).await
        {
            tracing::warn!(name, %failure, "A definition is not deleted yet");
        }
    }
}

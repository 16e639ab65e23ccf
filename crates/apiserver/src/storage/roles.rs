//! Roles and bindings: kept as documents, and known to the authorizer before a write of them is answered.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Mutex;

use super::{DocumentStorage, Mode, Storage as _, to_the_end};
use crate::access::Roles;
use crate::failure::{Reason, Result};
use crate::registry::{Content, Native, Registry, ResourceType};

/// Writes roles and bindings. They are read as all other documents are.
#[derive(Clone)]
pub struct RoleStorage {
    documents: DocumentStorage,
    roles: Arc<Roles>,
    /// Who holds this reads what is stored and tells it, so that the last to do so tells the newest state.
    telling: Arc<Mutex<()>>,
}

impl RoleStorage {
    /// Tells the authorizer of everything that is stored.
    pub async fn open(documents: DocumentStorage, roles: Arc<Roles>) -> Result<Self> {
        let registry = Registry::standalone();
        for of in registry.types() {
            if let Some(native) = native_of(of) {
                for object in documents.list_readable(of).await? {
                    roles.put(native, &object);
                }
            }
        }
        Ok(Self {
            documents,
            roles,
            telling: Arc::default(),
        })
    }

    /// Stores a new one.
    pub(super) async fn create(
        &self,
        of: &ResourceType,
        object: Value,
        mode: Mode,
    ) -> Result<Value> {
        if mode.is_dry_run {
            return self.documents.create(of, object, mode).await;
        }
        let (documents, of_it, new) = (self.documents.clone(), of.clone(), object.clone());
        let create = async move { documents.create(&of_it, new, mode).await };
        self.write(of, &object, create).await
    }

    /// Replaces one that is at the revision in `object`.
    pub(super) async fn update(
        &self,
        of: &ResourceType,
        object: Value,
        mode: Mode,
    ) -> Result<Value> {
        if mode.is_dry_run {
            return self.documents.update(of, object, mode).await;
        }
        let (documents, of_it, new) = (self.documents.clone(), of.clone(), object.clone());
        let update = async move { documents.update(&of_it, new, mode).await };
        self.write(of, &object, update).await
    }

    /// Removes one that is at a revision.
    pub(super) async fn delete(&self, of: &ResourceType, object: &Value, mode: Mode) -> Result<()> {
        if mode.is_dry_run {
            return self.documents.delete(of, object, mode).await;
        }
        let (documents, of_it, old) = (self.documents.clone(), of.clone(), object.clone());
        let delete = async move { documents.delete(&of_it, &old, mode).await };
        self.write(of, object, delete).await
    }

    async fn write<T: Send + 'static>(
        &self,
        of: &ResourceType,
        object: &Value,
        write: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let text = |field: &str| {
            let text = object["metadata"][field].as_str();
            text.unwrap_or_default().to_owned()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        let (this, of) = (self.clone(), of.clone());
        let write = async move {
            let written = write.await;
            this.tell(&of, &namespace, &name).await;
            written
        };
        to_the_end("role or binding", write).await
    }

    async fn tell(&self, of: &ResourceType, namespace: &str, name: &str) {
        let Some(native) = native_of(of) else {
            return;
        };
        let _telling = self.telling.lock().await;
        match self.documents.get(of, namespace, name).await {
            Ok(object) => self.roles.put(native, &object),
            Err(failure) => {
                if failure.reason != Reason::NotFound {
                    tracing::error!(%failure, "A role or binding cannot be read, so it grants nothing");
                }
                self.roles.remove(native, namespace, name);
            }
        }
    }
}

fn native_of(of: &ResourceType) -> Option<Native> {
    match of.content {
        Content::Native(native) if native.is_role_or_binding() => Some(native),
        _ => None,
    }
}

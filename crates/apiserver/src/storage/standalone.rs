//! All objects of a server that stands alone.

use async_trait::async_trait;
use serde_json::Value;
use tortie_store::embedded::{Most, Snapshot, Stored};

use super::{
    CalicoStorage, Changes, DefinitionStorage, DocumentStorage, Mode, RoleStorage, ServiceStorage,
    Storage,
};
use crate::failure::Result;
use crate::registry::{Content, Native, ResourceType};

/// Calico's resources and Kubernetes' own objects, each where they belong.
#[derive(Clone)]
pub struct StandaloneStorage {
    calico: CalicoStorage,
    native: DocumentStorage,
    roles: RoleStorage,
    services: ServiceStorage,
    definitions: DefinitionStorage,
}

impl StandaloneStorage {
    /// All in one.
    pub fn new(
        calico: CalicoStorage,
        native: DocumentStorage,
        roles: RoleStorage,
        services: ServiceStorage,
        definitions: DefinitionStorage,
    ) -> Self {
        Self {
            calico,
            native,
            roles,
            services,
            definitions,
        }
    }

    fn of(&self, of: &ResourceType) -> &dyn Storage {
        match of.content {
            // What is not kept is refused there.
            Content::Calico(_) | Content::Review(_) => &self.calico,
            Content::Native(_) | Content::Custom => &self.native,
        }
    }
}

#[async_trait]
impl Storage for StandaloneStorage {
    fn complete(&self, of: &ResourceType, object: &mut Value) {
        self.of(of).complete(of, object);
    }

    fn unknown_fields(&self, of: &ResourceType, given: &Value, stored: &Value) -> Vec<String> {
        self.of(of).unknown_fields(of, given, stored)
    }

    async fn check_health(&self) -> Result<()> {
        self.calico.check_health().await
    }

    async fn get(&self, of: &ResourceType, namespace: &str, name: &str) -> Result<Value> {
        self.of(of).get(of, namespace, name).await
    }

    async fn list_each(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        take: &mut (dyn FnMut(Value) + Send),
    ) -> Result<u64> {
        self.of(of).list_each(of, namespace, take).await
    }

    fn snapshot(&self) -> Result<Option<Snapshot>> {
        self.calico.snapshot()
    }

    fn look(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        most: Most,
    ) -> Result<Vec<Stored>> {
        self.of(of).look(snapshot, of, namespace, after, most)
    }

    fn read(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>> {
        self.of(of).read(snapshot, of, namespace, name)
    }

    fn size(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: &str,
        name: &str,
    ) -> Result<usize> {
        self.of(of).size(snapshot, of, namespace, name)
    }

    async fn create(&self, of: &ResourceType, object: Value, mode: Mode) -> Result<Value> {
        match of.content {
            Content::Native(native) if native.is_role_or_binding() => {
                self.roles.create(of, object, mode).await
            }
            Content::Native(Native::Service) => self.services.create(of, object, mode).await,
            Content::Native(Native::CustomResourceDefinition) => {
                self.definitions.create(of, object, mode).await
            }
            _ => self.of(of).create(of, object, mode).await,
        }
    }

    async fn update(&self, of: &ResourceType, object: Value, mode: Mode) -> Result<Value> {
        match of.content {
            Content::Native(native) if native.is_role_or_binding() => {
                self.roles.update(of, object, mode).await
            }
            Content::Native(Native::Service) => self.services.update(of, object, mode).await,
            Content::Native(Native::CustomResourceDefinition) => {
                self.definitions.update(of, object, mode).await
            }
            _ => self.of(of).update(of, object, mode).await,
        }
    }

    async fn delete(&self, of: &ResourceType, object: &Value, mode: Mode) -> Result<()> {
        match of.content {
            Content::Native(native) if native.is_role_or_binding() => {
                self.roles.delete(of, object, mode).await
            }
            Content::Native(Native::Service) => self.services.delete(of, object, mode).await,
            Content::Native(Native::CustomResourceDefinition) => {
                self.definitions.delete(of, object, mode).await
            }
            _ => self.of(of).delete(of, object, mode).await,
        }
    }

    async fn watch(&self, of: &ResourceType, from: u64) -> Result<Changes> {
        self.of(of).watch(of, from).await
    }
}

//! Definitions of custom resources: kept as documents, and served before a write of one is answered.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Mutex;

use super::{DocumentStorage, Mode, Step, Storage as _, native, to_the_end};
use crate::custom::Definitions;
use crate::failure::Result;
use crate::registry::{Content, Native, Registry, ResourceType};

/// Writes definitions. They are read as all other documents are.
#[derive(Clone)]
pub struct DefinitionStorage {
    documents: DocumentStorage,
    definitions: Arc<Definitions>,
    /// Who holds this decides about names, writes and tells, so that no name is given twice.
    writing: Arc<Mutex<()>>,
}

impl DefinitionStorage {
    /// Serves what the definitions that are stored describe.
    pub async fn open(documents: DocumentStorage, definitions: Arc<Definitions>) -> Result<Self> {
        let registry = Registry::standalone();
        let mut types = registry.types().iter();
        let own = Content::Native(Native::CustomResourceDefinition);
        if let Some(of) = types.find(|of| of.content == own) {
            for definition in documents.list_readable(of).await? {
                definitions.put(&definition);
            }
        }
        Ok(Self {
            documents,
            definitions,
            writing: Arc::default(),
        })
    }

    /// Stores a new one.
    pub(super) async fn create(
        &self,
        of: &ResourceType,
        object: Value,
        mode: Mode,
    ) -> Result<Value> {
        self.write(Step::Create, of, object, mode).await
    }

    /// Replaces one that is at the revision in `object`.
    pub(super) async fn update(
        &self,
        of: &ResourceType,
        object: Value,
        mode: Mode,
    ) -> Result<Value> {
        self.write(Step::Update, of, object, mode).await
    }

    /// Removes one that is at a revision.
    pub(super) async fn delete(&self, of: &ResourceType, object: &Value, mode: Mode) -> Result<()> {
        let deleted = self.write(Step::Delete, of, object.clone(), mode).await;
        deleted.map(drop)
    }

    async fn write(
        &self,
        step: Step,
        of: &ResourceType,
        object: Value,
        mode: Mode,
    ) -> Result<Value> {
        let (this, of) = (self.clone(), of.clone());
        let write = async move { this.write_whole(step, &of, object, mode).await };
        to_the_end("definition", write).await
    }

    async fn write_whole(
        &self,
        step: Step,
        of: &ResourceType,
        object: Value,
        mode: Mode,
    ) -> Result<Value> {
        let _writing = self.writing.lock().await;
        if let Step::Delete = step {
            self.documents.delete(of, &object, mode).await?;
            if !mode.is_dry_run {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                self.definitions.remove(name);
            }
            return Ok(object);
        }
        let mut object = native::checked(of, object, mode)?;
        let is_going = object["metadata"].get("deletionTimestamp").is_some();
        if !mode.is_status && !is_going {
            let old = object["status"].take();
            let now = jiff::Timestamp::now().as_second();
            let now = jiff::Timestamp::from_second(now).unwrap_or_default();
            object["status"] = self.definitions.status(&object, &old, &now.to_string());
        }
        let stored = match step {
            Step::Create => self.documents.create(of, object, mode).await?,
            _ => self.documents.update(of, object, mode).await?,
        };
        if !mode.is_dry_run {
            self.definitions.put(&stored);
        }
        Ok(stored)
    }
}

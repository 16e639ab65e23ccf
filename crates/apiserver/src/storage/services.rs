//! Services: kept as documents, each with addresses and ports on nodes that no other has.

mod allocations;
mod check;
mod form;

use std::sync::Arc;

use ipnet::IpNet;
use serde_json::Value;
use tokio::sync::Mutex;
use tortie_api::Problems;

use self::allocations::Allocations;
pub(super) use self::check::check;
use self::check::check_change;
pub(crate) use self::form::keep_allocated;
use super::{DocumentStorage, Mode, Step, Storage as _, native, to_the_end};
use crate::failure::{Failure, Result};
use crate::registry::{Content, Native, Registry, ResourceType};

/// Writes services. They are read as all other documents are.
#[derive(Clone)]
pub struct ServiceStorage {
    documents: DocumentStorage,
    /// Who holds this gives and takes, and writes, so that nothing is given twice.
    allocations: Arc<Mutex<Allocations>>,
}

impl ServiceStorage {
    /// Learns what is given to the services that are stored, and gives to those that an earlier version left without.
    pub async fn open(documents: DocumentStorage, network: IpNet) -> Result<Self> {
        let registry = Registry::standalone();
        let mut types = registry.types().iter();
        let services = types.find(|of| of.content == Content::Native(Native::Service));
        let mut allocations = Allocations::new(network);
        let mut bare = Vec::new();
        if let Some(of) = services {
            for object in documents.list_readable(of).await? {
                allocations.take(&object);
                if form::lacks_address(&object) {
                    bare.push((of, object));
                }
            }
        }
        let this = Self {
            documents,
            allocations: Arc::new(Mutex::new(allocations)),
        };
        let mode = Mode {
            drops_unknown_fields: true,
            ..Mode::default()
        };
        for (of, object) in bare {
            if let Err(failure) = this.update(of, object, mode).await {
                tracing::warn!(%failure, "A service got no address");
            }
        }
        Ok(this)
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
        to_the_end("service", write).await
    }

    async fn write_whole(
        &self,
        step: Step,
        of: &ResourceType,
        object: Value,
        mode: Mode,
    ) -> Result<Value> {
        let mut allocations = self.allocations.lock().await;
        if let Step::Delete = step {
            self.documents.delete(of, &object, mode).await?;
            if !mode.is_dry_run {
                allocations.give_back(&object);
            }
            return Ok(object);
        }
        let mut object = native::checked(of, object, mode)?;
        let text = |field: &str| {
            let text = object["metadata"][field].as_str();
            text.unwrap_or_default().to_owned()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        let mut problems = Problems::default();
        if let Step::Update = step {
            let old = self.documents.get(of, &namespace, &name).await?;
            check_change(&old, &object, &mut problems);
        }
        if problems.is_empty() {
            allocations.assign(&mut object, &mut problems);
        }
        if !problems.is_empty() {
            return Err(Failure::invalid(of.group, of.kind, &name, &problems));
        }
        let stored = match step {
            Step::Create => self.documents.create(of, object, mode).await?,
            _ => self.documents.update(of, object, mode).await?,
        };
        if !mode.is_dry_run {
            allocations.give_back(&stored);
            allocations.take(&stored);
        }
        Ok(stored)
    }
}

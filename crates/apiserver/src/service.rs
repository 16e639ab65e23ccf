//! What can be done with objects: the verbs of the API, without HTTP.

mod hubs;
mod lifecycle;
mod read;
mod watch;
mod write;

use std::sync::Arc;

use crate::apply::{Manager, Operation};
use crate::failure::{Failure, Reason, Result};
use crate::registry::{Content, Native, Registry, ResourceType};
use crate::storage::Storage;

use self::hubs::Hubs;
pub use self::read::Page;
pub use self::watch::{WatchEvent, WatchKind, Watching};
pub use self::write::{Body, DeleteOptions, Deleted, Write};

/// Objects, and what can be done with them.
pub struct Service {
    registry: Registry,
    storage: Arc<dyn Storage>,
    hubs: Hubs,
}

impl Service {
    /// Serves what a storage holds.
    pub fn new(registry: Registry, storage: Arc<dyn Storage>) -> Arc<Self> {
        Arc::new(Self {
            registry,
            storage,
            hubs: Hubs::default(),
        })
    }

    /// The resources that are served.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Fails if the objects cannot be read.
    pub async fn check_ready(&self) -> Result<()> {
        match self.registry.types().first() {
            Some(of) => self.storage.list(of, None).await.map(drop),
            None => Ok(()),
        }
    }

    /// Whether this server keeps namespaces itself, so that objects can only be made in one that is there.
    fn namespaces(&self) -> Option<&ResourceType> {
        let mut types = self.registry.types().iter();
        types.find(|found| found.content == Content::Native(Native::Namespace))
    }

    /// Objects can be made only in a namespace that is there and will stay.
    async fn check_namespace(&self, of: &ResourceType, namespace: Option<&str>) -> Result<()> {
        let (Some(namespaces), Some(namespace)) = (self.namespaces(), namespace) else {
            return Ok(());
        };
        let found = self.storage.get(namespaces, "", namespace).await?;
        if found["metadata"].get("deletionTimestamp").is_some() {
            let what = format!(
                "is forbidden: unable to create new content in namespace {namespace} because it is being terminated"
            );
            return Err(Failure::about(
                Reason::Forbidden,
                of.group,
                of.plural,
                "",
                what,
            ));
        }
        Ok(())
    }
}

/// Who writes, for the list of who manages what.
fn manager(of: &ResourceType, name: &str, operation: Operation, is_status: bool) -> Manager {
    Manager {
        name: name.to_owned(),
        operation,
        api_version: of.api_version(),
        subresource: if is_status { "status" } else { "" }.to_owned(),
    }
}

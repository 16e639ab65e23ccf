//! What can be done with objects: the verbs of the API, without HTTP.

mod guard;
mod hubs;
mod lifecycle;
mod limits;
mod namespaces;
mod pages;
mod read;
mod watch;
mod write;

use std::sync::Arc;

use serde_json::Value;
use tortie_api::Kind;
use tortie_api::crd::Group;

use crate::apply::{Manager, Operation};
use crate::failure::{Failure, Reason, Result};
use crate::options::ListOptions;
use crate::registry::{Registry, ResourceType};
use crate::storage::Storage;

pub use self::guard::{Guard, Unguarded};
use self::hubs::Hubs;
use self::pages::Pages;
pub use self::read::Page;
pub use self::watch::{WatchEvent, WatchKind, Watching};
pub use self::write::{Body, DeleteOptions, Deleted, Write};

/// Objects, and what can be done with them.
pub struct Service {
    registry: Registry,
    storage: Arc<dyn Storage>,
    hubs: Hubs,
    pages: Pages,
}

impl Service {
    /// Serves what a storage holds.
    pub fn new(registry: Registry, storage: Arc<dyn Storage>) -> Arc<Self> {
        Arc::new(Self {
            registry,
            storage,
            hubs: Hubs::default(),
            pages: Pages::default(),
        })
    }

    /// The resources that are served.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Fails if objects cannot be read or written.
    pub async fn check_ready(&self) -> Result<()> {
        self.storage.check_health().await?;
        match self.registry.types().first() {
            Some(of) => self.storage.list(of, None).await.map(drop),
            None => Ok(()),
        }
    }

    /// The type of the tiers that policies are in.
    fn tiers(&self) -> Result<&ResourceType> {
        let group = Group::V3;
        let found = self
            .registry
            .find(group.name(), group.version(), Kind::Tier.plural());
        found.ok_or_else(|| Failure::new(Reason::Internal, "there are policies here, but no tiers"))
    }

    /// The names of all tiers.
    pub async fn tier_names(&self) -> Result<Vec<String>> {
        let tiers = self.storage.list(self.tiers()?, None).await?;
        let name = |tier: &Value| tier.pointer("/metadata/name")?.as_str().map(str::to_owned);
        Ok(tiers.items.iter().filter_map(name).collect())
    }

    /// Follows what becomes of tiers from now on.
    pub async fn watch_tiers(&self) -> Result<Watching> {
        let options = ListOptions {
            sends_initial: Some(false),
            ..ListOptions::default()
        };
        self.watch(self.tiers()?, None, &options).await
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

//! What can be done with objects: the verbs of the API, without HTTP.

mod decoded;
mod definitions;
mod events;
mod existence;
mod expiring;
mod guard;
mod hubs;
mod lifecycle;
mod limits;
mod listing;
mod namespaces;
mod pages;
mod read;
mod roles;
mod shared_read;
mod snapshots;
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

use self::decoded::Decoded;
pub use self::guard::{Guard, Unguarded};
use self::hubs::Hubs;
pub(crate) use self::lifecycle::check_envelope;
pub use self::listing::{End, Listing};
use self::pages::Pages;
use self::shared_read::SharedReads;
use self::snapshots::Snapshots;
pub use self::watch::{WatchEvent, WatchKind, Watching};
pub use self::write::{Body, DeleteOptions, Deleted, DeletedAll, Write, Written};

/// The name of an object that is asked for to see whether an answer comes; that there is none is one.
const PROBE: &str = "readiness-probe";

/// Objects, and what can be done with them.
pub struct Service {
    registry: Registry,
    storage: Arc<dyn Storage>,
    hubs: Hubs,
    reads: SharedReads,
    snapshots: Snapshots,
    decoded: Arc<Decoded>,
    pages: Arc<Pages>,
}

impl Service {
    /// Serves what a storage holds.
    pub fn new(registry: Registry, storage: Arc<dyn Storage>) -> Arc<Self> {
        Arc::new(Self {
            registry,
            storage,
            hubs: Hubs::default(),
            reads: SharedReads::default(),
            snapshots: Snapshots::default(),
            decoded: Arc::default(),
            pages: Arc::default(),
        })
    }

    /// The resources that are served.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Fails if objects cannot be read or written.
    pub async fn check_ready(&self) -> Result<()> {
        self.storage.check_health().await?;
        let Some(of) = self.registry.types().first() else {
            return Ok(());
        };
        let namespace = if of.is_namespaced { "default" } else { "" };
        match self.storage.get(of, namespace, PROBE).await {
            Err(failure) if failure.reason != Reason::NotFound => Err(failure),
            _ => Ok(()),
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

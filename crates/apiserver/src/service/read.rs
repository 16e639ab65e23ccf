//! Reads: one object, or a list.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::Service;
use super::listing::{Listing, Position, Source};
use super::pages::Scope;
use super::shared_read::Objects;
use crate::access::tiers::tier_of;
use crate::failure::Result;
use crate::hub::Object;
use crate::options::ListOptions;
use crate::registry::ResourceType;
use crate::selector::{FieldSelector, LabelSelector};

impl Service {
    /// Reads one object.
    pub async fn get(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value> {
        self.storage
            .get(of, namespace.unwrap_or_default(), name)
            .await
    }

    /// How many bytes of JSON an object is, where that can be told without reading it; nothing if there is none. Blocks.
    pub fn size(&self, of: &ResourceType, namespace: Option<&str>, name: &str) -> Result<usize> {
        let Some(snapshot) = self.storage.snapshot()? else {
            return Ok(0);
        };
        let namespace = namespace.unwrap_or_default();
        self.storage.size(&snapshot, of, namespace, name)
    }

    /// Begins to read a page of the objects that the options select, for a reader of some name. All pages show the state
    /// of the first.
    pub async fn list(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        options: &ListOptions,
        reader: &str,
    ) -> Result<Listing> {
        let scope = Scope::new(of, namespace, options, reader);
        if !options.continuation.is_empty() {
            let (id, source, position) = self.pages.find(&options.continuation, &scope)?;
            let mut listing = self.listing(of, options, scope, source, position).await;
            listing.id = Some(id);
            return Ok(listing);
        }
        let source = match self.snapshots.begin(&*self.storage)? {
            Some(snapshot) => Source::Snapshot(snapshot),
            None => Source::Objects(self.read_all(of, namespace, options).await?),
        };
        let start = source.start();
        Ok(self.listing(of, options, scope, source, start).await)
    }

    async fn listing(
        &self,
        of: &ResourceType,
        options: &ListOptions,
        scope: Scope,
        source: Source,
        position: Position,
    ) -> Listing {
        Listing {
            of: of.clone(),
            options: options.clone(),
            scope,
            source,
            position,
            left: match options.limit {
                0 => usize::MAX,
                limit => limit,
            },
            upcoming: VecDeque::new(),
            piece: 0,
            storage: Arc::clone(&self.storage),
            hub: self.hubs.running(of).await,
            decoded: Arc::clone(&self.decoded),
            pages: Arc::clone(&self.pages),
            id: None,
        }
    }

    /// Objects at hand as a list.
    pub async fn list_of(&self, of: &ResourceType, items: Vec<Object>) -> Listing {
        let options = ListOptions::default();
        let scope = Scope::new(of, None, &options, "");
        let source = Source::Objects(Arc::new(Objects { items, revision: 0 }));
        let start = source.start();
        self.listing(of, &options, scope, source, start).await
    }

    /// All objects that are selected, where a state cannot be shown for a while.
    async fn read_all(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Arc<Objects>> {
        // Who lists goes on to watch from there: somebody must be taking down what changes.
        let hub = self.hubs.of(of, &self.storage, None).await?;
        let read = async {
            let mut items = Vec::new();
            let mut take = |object| items.push(hub.share(object));
            let revision = self.storage.list_each(of, namespace, &mut take).await?;
            Ok(Objects { items, revision })
        };
        let read = self.reads.read(of, namespace, read).await?;
        if options.selects_all() {
            return Ok(read);
        }
        let selected = read.items.iter();
        let selected = selected.filter(|object| options.selects(object.head()));
        Ok(Arc::new(Objects {
            items: selected.cloned().collect(),
            revision: read.revision,
        }))
    }
}

impl ListOptions {
    /// Whether an object is meant.
    pub(super) fn selects(&self, object: &Value) -> bool {
        let is_in_tier = |tiers: &BTreeSet<String>| tiers.contains(tier_of(object));
        self.labels.selects(object)
            && self.fields.selects(object)
            && self.tiers.as_ref().is_none_or(is_in_tier)
    }

    /// Whether all objects are meant.
    pub(super) fn selects_all(&self) -> bool {
        self.labels == LabelSelector::default()
            && self.fields == FieldSelector::default()
            && self.tiers.is_none()
    }
}

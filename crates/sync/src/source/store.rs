//! Resources of one kind, from a datastore.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use tortie_api::Resource;
use tortie_store::{self as store, Invalid, Key, Kind, Query, Revision, Store};

use super::{Change, Event, Events, Failure, Snapshot, Source};
use crate::object::{Item, Name, State};

pub(crate) struct StoreSource {
    store: Arc<dyn Store>,
    query: Query,
}

impl StoreSource {
    pub(crate) fn new(store: Arc<dyn Store>, kind: Kind) -> Self {
        let query = Query::all(kind);
        Self { store, query }
    }
}

#[async_trait]
impl Source for StoreSource {
    async fn list(&self) -> Result<Snapshot, Failure> {
        let list = self.store.list(&self.query).await?;
        let readable = list.items.into_iter().map(item);
        let unreadable = list.invalid.into_iter().map(unreadable);
        Ok(Snapshot {
            items: readable.chain(unreadable).collect(),
            revision: list.revision,
        })
    }

    async fn watch(&self, from: &Revision) -> Result<Events, Failure> {
        let watch = match self.store.watch(&self.query, from).await {
            Err(store::Error::NotFound(_) | store::Error::Unsupported { .. }) => {
                return Err(Failure::NotWatchable);
            }
            started => started?,
        };
        Ok(watch.map(|event| Ok(event_of(event?))).boxed())
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Gone(_) => Self::Gone,
            store::Error::NotFound(_) | store::Error::Unsupported { .. } => Self::MissingKind,
            error if error.is_retryable() => Self::Unreachable(error.into()),
            error => Self::Other(error.into()),
        }
    }
}

fn event_of(event: store::Event) -> Event {
    let change = match event.change {
        store::Change::Put(resource) => Change::Set(item(resource)),
        store::Change::Invalid(invalid) => Change::Set(unreadable(invalid)),
        store::Change::Delete(key) => Change::Remove(name_of(&key)),
        store::Change::Bookmark => Change::Nothing,
    };
    Event {
        revision: event.revision,
        change,
    }
}

fn item(resource: Resource) -> Item {
    let metadata = resource.metadata();
    let is_namespaced = resource.kind().is_namespaced();
    let namespace = if is_namespaced {
        &metadata.namespace
    } else {
        ""
    };
    Item {
        name: Name::new(namespace, &metadata.name),
        version: metadata.resource_version.as_str().into(),
        state: State::Resource(resource),
    }
}

fn unreadable(invalid: Invalid) -> Item {
    Item::unreadable(name_of(&invalid.key), invalid.reason, invalid.stand_in)
}

fn name_of(key: &Key) -> Name {
    Name::new(&key.namespace, &key.name)
}

//! Resources of one kind, from a datastore.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use tortie_api::Resource;
use tortie_store::{self as store, Invalid, Key, List, Query, Revision, Store};

use super::{Change, Event, Events, Failure, Part, Source};
use crate::object::{Item, Name, State};

/// The resources that a query selects.
pub struct StoreSource {
    store: Arc<dyn Store>,
    query: Query,
    /// Whether the last list in parts took so long that its revision was forgotten: then the next one is read at once.
    is_too_slow: AtomicBool,
}

impl StoreSource {
    /// The resources that a query selects.
    pub fn new(store: Arc<dyn Store>, query: Query) -> Self {
        Self {
            store,
            query,
            is_too_slow: AtomicBool::new(false),
        }
    }
}

#[async_trait]
impl<V: From<Resource> + Send + 'static> Source<V> for StoreSource {
    fn list(&self) -> BoxStream<'_, Result<Part<V>, Failure>> {
        let parts = if self.is_too_slow.swap(false, Ordering::Relaxed) {
            stream::once(self.store.list(&self.query)).boxed()
        } else {
            self.store.list_in_parts(&self.query)
        };
        parts
            .map(|part| match part {
                Ok(part) => Ok(part_of(part)),
                Err(error) => {
                    let is_gone = matches!(error, store::Error::Gone(_));
                    self.is_too_slow.store(is_gone, Ordering::Relaxed);
                    Err(error.into())
                }
            })
            .boxed()
    }

    async fn watch(&self, from: &Revision) -> Result<Events<V>, Failure> {
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

fn part_of<V: From<Resource>>(list: List) -> Part<V> {
    let readable = list.items.into_iter().map(item);
    let unreadable = list.invalid.into_iter().map(unreadable);
    Part {
        items: readable.chain(unreadable).collect(),
        revision: list.revision,
    }
}

fn event_of<V: From<Resource>>(event: store::Event) -> Event<V> {
    let change = match event.change {
        store::Change::Put(resource) => Some(Change::Set(item(resource))),
        store::Change::Invalid(invalid) => Some(Change::Set(unreadable(invalid))),
        store::Change::Delete(key) => Some(Change::Remove(name_of(&key))),
        store::Change::Bookmark => None,
    };
    Event {
        revision: event.revision,
        change,
    }
}

fn item<V: From<Resource>>(resource: Resource) -> Item<V> {
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
        state: State::Present(resource.into()),
    }
}

fn unreadable<V: From<Resource>>(invalid: Invalid) -> Item<V> {
    let stand_in = invalid
        .stand_in
        .map(|stand_in| Box::new((*stand_in).into()));
    Item::unreadable(name_of(&invalid.key), invalid.reason, stand_in)
}

fn name_of(key: &Key) -> Name {
    Name::new(&key.namespace, &key.name)
}

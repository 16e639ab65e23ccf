//! A datastore as something to follow.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use tortie_api::Resource;
use tortie_error::Causes;
use tortie_sync::{
    Change as Told, Event as Followed, Events, Failure, Item, Name, Pace, Part, Reading, Resumed,
    Revision, Source, State, Step, Topic, Watched,
};

use crate::error::{Error, Result};
use crate::key::{Key, Query};
use crate::store::{Change, Event, Invalid, List, Store, Watch};

/// The resources that a query selects.
#[derive(Clone)]
pub struct StoreSource {
    store: Arc<dyn Store>,
    query: Query,
}

impl StoreSource {
    /// The resources that a query selects.
    pub fn new(store: Arc<dyn Store>, query: Query) -> Self {
        Self { store, query }
    }

    /// The same, to be followed with others.
    pub fn topic<V: From<Resource> + Send + 'static>(
        store: &Arc<dyn Store>,
        query: Query,
    ) -> Topic<V> {
        Topic {
            name: query.kind.to_string(),
            source: Arc::new(Self::new(Arc::clone(store), query)),
            is_optional: false,
        }
    }
}

/// Follows the changes after a revision, for who needs them and nothing else. What cannot work at all fails at once; after
/// that, a connection that is lost is replaced, however long it takes, and the stream ends only with an error that retries
/// do not cure, such as [`Error::Gone`].
pub async fn watch_resumed(
    store: &Arc<dyn Store>,
    query: &Query,
    from: &Revision,
) -> Result<Watch> {
    let source = StoreSource::new(Arc::clone(store), query.clone());
    let mut resumed = Resumed::new(source, from.clone(), Pace::default().retry);
    if let Step::Ended {
        failure: Some(error),
        ..
    } = resumed.next().await
    {
        return Err(error);
    }
    let events = stream::unfold(Some(resumed), |resumed| async move {
        let mut resumed = resumed?;
        let kind = resumed.watched().query.kind;
        loop {
            match resumed.next().await {
                Step::Opened | Step::Ended { failure: None, .. } => {}
                Step::Events(events) => return Some((Ok(events), Some(resumed))),
                Step::Ended {
                    failure: Some(error),
                    ..
                } => {
                    if !error.is_retryable() {
                        return Some((Err(error), None));
                    }
                    tracing::warn!(%kind, error = %Causes(&error), "Watch was interrupted; will resume");
                }
            }
        }
    });
    let events = events.map_ok(|events| stream::iter(events).map(Ok));
    Ok(events.try_flatten().boxed())
}

impl Watched for StoreSource {
    type Event = Event;
    type Failure = Error;

    async fn open(&self, from: &Revision) -> Result<Watch> {
        self.store.watch(&self.query, from).await
    }

    fn revision(event: &Event) -> &Revision {
        &event.revision
    }
}

#[async_trait]
impl<V: From<Resource> + Send + 'static> Source<V> for StoreSource {
    fn list(&self, reading: Reading) -> BoxStream<'_, Result<Part<V>, Failure>> {
        let parts = match reading {
            Reading::InParts => self.store.list_in_parts(&self.query),
            Reading::AtOnce => stream::once(self.store.list(&self.query)).boxed(),
        };
        parts.map_ok(part_of).map_err(Failure::from).boxed()
    }

    async fn watch(&self, from: &Revision) -> Result<Events<V>, Failure> {
        let watch = match self.open(from).await {
            Err(Error::NotFound(_) | Error::Unsupported { .. }) => {
                return Err(Failure::NotWatchable);
            }
            started => started?,
        };
        Ok(watch.map_ok(event_of).map_err(Failure::from).boxed())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Gone(_) => Self::Gone,
            Error::NotFound(_) | Error::Unsupported { .. } => Self::MissingKind,
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

fn event_of<V: From<Resource>>(event: Event) -> Followed<V> {
    let change = match event.change {
        Change::Put(resource) => Some(Told::Set(item(resource))),
        Change::Invalid(invalid) => Some(Told::Set(unreadable(invalid))),
        Change::Delete(key) => Some(Told::Remove(name_of(&key))),
        Change::Bookmark => None,
    };
    Followed {
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

//! Objects of one kind, of which the API server may serve one version or another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::connection::Told;
use super::endpoint::{Endpoint, Selection};
use super::page::{PAGE_SIZE, Page};
use crate::object::{Item, Name, State};
use crate::revision::Revision;
use crate::source::{Change, Event, Events, Failure, Part, Reading, Source};

/// Reads an object that is given as JSON.
type Read<V> = dyn Fn(&str) -> serde_json::Result<Item<V>> + Send + Sync;

/// Objects of one kind. A cluster that does not serve them does not serve them yet.
pub struct KubernetesSource<V> {
    client: kube::Client,
    /// The versions of the API that may serve the objects, the best one first.
    endpoints: Vec<Endpoint>,
    /// Which of them does.
    served: AtomicUsize,
    selection: Selection,
    page_size: u32,
    read: Arc<Read<V>>,
}

/// What tells an object and its version from others, where the rest of it cannot be read or is of no interest.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    metadata: HeadMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct HeadMetadata {
    namespace: String,
    name: String,
    resource_version: String,
}

impl<V> KubernetesSource<V> {
    /// All objects, of the first of these versions that is served.
    pub fn new(
        client: kube::Client,
        endpoints: Vec<Endpoint>,
        read: impl Fn(&str) -> serde_json::Result<Item<V>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            client,
            endpoints,
            served: AtomicUsize::new(0),
            selection: Selection::default(),
            page_size: PAGE_SIZE,
            read: Arc::new(read),
        }
    }

    /// Only these objects.
    #[must_use]
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// So many objects at a time, at least one.
    #[must_use]
    pub fn in_pages_of(mut self, page_size: u32) -> Self {
        self.page_size = page_size.max(1);
        self
    }

    /// Finds the version that is served, and reads its first page.
    async fn first_page(&self, limit: Option<u32>) -> Result<Page<Item<V>>, Failure> {
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            match self.page(endpoint, limit, None).await {
                Err(Failure::MissingKind) => {}
                page => {
                    self.served.store(index, Ordering::Relaxed);
                    return page;
                }
            }
        }
        let paths: Vec<String> = self.endpoints.iter().map(Endpoint::path).collect();
        let message = format!("Kubernetes answers 404 for {}", paths.join(" and "));
        Err(Failure::Other(message.into()))
    }

    async fn next_page(&self, limit: Option<u32>, from: String) -> Result<Page<Item<V>>, Failure> {
        let Some(endpoint) = self.served() else {
            return Err(Failure::Gone);
        };
        match self.page(endpoint, limit, Some(from)).await {
            // The version of the API is no longer served; another list finds the one that is.
            Err(Failure::MissingKind) => Err(Failure::Gone),
            page => page,
        }
    }

    async fn page(
        &self,
        endpoint: &Endpoint,
        limit: Option<u32>,
        from: Option<String>,
    ) -> Result<Page<Item<V>>, Failure> {
        let take = |object: &str| {
            Ok((self.read)(object).unwrap_or_else(|error| unreadable(object, &error)))
        };
        let page = endpoint.page(&self.client, &self.selection, limit, from, take);
        Ok(page.await?)
    }

    fn served(&self) -> Option<&Endpoint> {
        self.endpoints.get(self.served.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl<V: Send + 'static> Source<V> for KubernetesSource<V> {
    fn list(&self, reading: Reading) -> BoxStream<'_, Result<Part<V>, Failure>> {
        let limit = match reading {
            Reading::InParts => Some(self.page_size),
            Reading::AtOnce => None,
        };
        // The token of the next page, empty for the first; none after the last.
        let pages = stream::try_unfold(Some(String::new()), move |token| async move {
            let page = match token {
                None => return Ok(None),
                Some(token) if token.is_empty() => self.first_page(limit).await?,
                Some(token) => self.next_page(limit, token).await?,
            };
            let part = Part {
                items: page.items,
                revision: Revision(page.revision),
            };
            Ok(Some((part, page.next)))
        });
        pages.boxed()
    }

    async fn watch(&self, from: &Revision) -> Result<Events<V>, Failure> {
        let Some(endpoint) = self.served() else {
            return Err(Failure::Gone);
        };
        let connection = endpoint.watch(&self.client, &self.selection, &from.0).await;
        let connection = match connection.map_err(Failure::from) {
            // The version of the API is no longer served; a list finds the one that is.
            Err(Failure::MissingKind) => return Err(Failure::Gone),
            connection => connection?,
        };
        let read = Arc::clone(&self.read);
        let events = connection.map_ok(move |told| event(&told, &*read));
        Ok(events.map_err(Failure::from).boxed())
    }
}

fn event<V>(told: &Told, read: &Read<V>) -> Event<V> {
    let (revision, change) = match told {
        Told::Set(object) => {
            let read = read(object.get());
            let revision = match &read {
                Ok(item) => item.version.to_string(),
                Err(_) => Head::of(object.get()).metadata.resource_version,
            };
            let item = read.unwrap_or_else(|error| unreadable(object.get(), &error));
            (revision, Some(Change::Set(item)))
        }
        Told::Deleted(object) => {
            let head = Head::of(object.get());
            let name = head.name();
            (head.metadata.resource_version, Some(Change::Remove(name)))
        }
        Told::Bookmark(object) => (Head::of(object.get()).metadata.resource_version, None),
    };
    Event {
        revision: Revision(revision),
        change,
    }
}

fn unreadable<V>(object: &str, error: &serde_json::Error) -> Item<V> {
    Item::unreadable(Head::of(object).name(), error.to_string(), None)
}

/// An object with this metadata.
pub fn item<V>(metadata: &ObjectMeta, value: V) -> Item<V> {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    Item {
        name: Name::new(&text(&metadata.namespace), &text(&metadata.name)),
        version: text(&metadata.resource_version).into(),
        state: State::Present(value),
    }
}

impl Head {
    /// Nothing can be told of what is no object at all.
    fn of(object: &str) -> Self {
        serde_json::from_str(object).unwrap_or_default()
    }

    fn name(&self) -> Name {
        Name::new(&self.metadata.namespace, &self.metadata.name)
    }
}

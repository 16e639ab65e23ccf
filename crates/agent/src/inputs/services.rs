//! Kubernetes objects that have no resource: services, and the endpoints behind them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Service, ServiceSpec, ServiceStatus};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, ObjectList, WatchEvent, WatchParams};
use kube::core::Status;
use serde::Deserialize;
use tortie_convert as convert;
use tortie_engine::Update;
use tortie_store::Revision;
use tortie_sync::{Change, Event, Events, Failure, Item, Name, Part, Source, State};

use super::Input;

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// Longest time for one request and its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Seconds after which the API server ends a watch; bookmarks come more often than this.
const WATCH_SECONDS: u32 = 240;

/// A watch that is silent for longer than it may last is dead.
const WATCH_SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 30);

pub(super) struct KubernetesSource {
    /// The versions of the API that may serve the objects, the best one first.
    apis: Vec<Api<DynamicObject>>,
    /// Which of them does.
    served: AtomicUsize,
    read: fn(DynamicObject) -> Result<Update, serde_json::Error>,
}

/// What is used of a service, apart from its metadata.
#[derive(Deserialize)]
struct ServiceContent {
    spec: Option<ServiceSpec>,
    status: Option<ServiceStatus>,
}

/// What is used of a slice, apart from its metadata; the same in all versions of the API.
#[derive(Deserialize)]
struct SliceContent {
    endpoints: Option<Vec<Endpoint>>,
    ports: Option<Vec<EndpointPort>>,
}

impl KubernetesSource {
    pub(super) fn services(client: &kube::Client) -> Self {
        let apis = [("", "v1")];
        Self::new(client, &apis, ("Service", "services"), read_service)
    }

    pub(super) fn endpoint_slices(client: &kube::Client) -> Self {
        let group = "discovery.k8s.io";
        let apis = [(group, "v1"), (group, "v1beta1")];
        let names = ("EndpointSlice", "endpointslices");
        Self::new(client, &apis, names, read_slice)
    }

    fn new(
        client: &kube::Client,
        apis: &[(&str, &str)],
        (kind, plural): (&str, &str),
        read: fn(DynamicObject) -> Result<Update, serde_json::Error>,
    ) -> Self {
        let api = |(group, version): &(&str, &str)| {
            let separator = if group.is_empty() { "" } else { "/" };
            let resource = ApiResource {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
                api_version: format!("{group}{separator}{version}"),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
            };
            Api::all_with(client.clone(), &resource)
        };
        Self {
            apis: apis.iter().map(api).collect(),
            served: AtomicUsize::new(0),
            read,
        }
    }

    /// Finds the version that is served, and reads its first page.
    async fn first_page(&self) -> Result<ObjectList<DynamicObject>, Failure> {
        for (index, api) in self.apis.iter().enumerate() {
            match in_time(api.list(&ListParams::default().limit(PAGE))).await {
                Err(Failure::MissingKind) => {}
                listed => {
                    self.served.store(index, Ordering::Relaxed);
                    return listed;
                }
            }
        }
        // Every cluster has services and slices: one that does not serve them does not serve them yet.
        Err(Failure::Other(
            "Kubernetes does not serve them (404)".into(),
        ))
    }

    async fn next_page(&self, token: &str) -> Result<ObjectList<DynamicObject>, Failure> {
        let Some(api) = self.served() else {
            return Err(Failure::Gone);
        };
        let parameters = ListParams::default().limit(PAGE).continue_token(token);
        in_time(api.list(&parameters)).await
    }

    fn served(&self) -> Option<&Api<DynamicObject>> {
        self.apis.get(self.served.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl Source<Input> for KubernetesSource {
    fn list(&self) -> BoxStream<'_, Result<Part<Input>, Failure>> {
        // The token of the next page, empty for the first; none after the last.
        let pages = stream::try_unfold(Some(String::new()), async |token| {
            let page = match token {
                None => return Ok(None),
                Some(token) if token.is_empty() => self.first_page().await?,
                Some(token) => self.next_page(&token).await?,
            };
            let next = page.metadata.continue_.clone();
            Ok(Some((page, next.filter(|token| !token.is_empty()))))
        });
        let parts = pages.map_ok(|page: ObjectList<DynamicObject>| {
            let objects = page.items.into_iter();
            Part {
                items: objects.map(|object| item(object, self.read)).collect(),
                revision: Revision(page.metadata.resource_version.unwrap_or_default()),
            }
        });
        parts.boxed()
    }

    async fn watch(&self, from: &Revision) -> Result<Events<Input>, Failure> {
        let Some(api) = self.served() else {
            return Err(Failure::Gone);
        };
        let parameters = WatchParams::default().timeout(WATCH_SECONDS);
        let events = in_time(api.watch(&parameters, &from.0)).await;
        let events = match events {
            // The version of the API is no longer served; a list finds the one that is.
            Err(Failure::MissingKind) => return Err(Failure::Gone),
            events => events?,
        };
        let read = self.read;
        let events = stream::unfold(events.boxed(), move |mut events| async move {
            let event = match tokio::time::timeout(WATCH_SILENCE, events.next()).await {
                Ok(event) => event?.map_err(failure_of),
                Err(silence) => Err(Failure::Unreachable(silence.into())),
            };
            Some((event.and_then(|event| event_of(event, read)), events))
        });
        Ok(events.boxed())
    }
}

fn failure_of(error: kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => of_status(status),
        error @ (kube::Error::HyperError(_)
        | kube::Error::Service(_)
        | kube::Error::ReadEvents(_)) => Failure::Unreachable(error.into()),
        error => Failure::Other(error.into()),
    }
}

fn of_status(status: Box<Status>) -> Failure {
    match (status.code, status.reason.as_str()) {
        (410, _) | (_, "Expired" | "Gone") => Failure::Gone,
        (404, _) => Failure::MissingKind,
        (429 | 500..=599, _) => Failure::Unreachable(kube::Error::Api(status).into()),
        _ => Failure::Other(kube::Error::Api(status).into()),
    }
}

async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(answer) => answer.map_err(failure_of),
        Err(elapsed) => Err(Failure::Unreachable(elapsed.into())),
    }
}

fn event_of(
    event: WatchEvent<DynamicObject>,
    read: fn(DynamicObject) -> Result<Update, serde_json::Error>,
) -> Result<Event<Input>, Failure> {
    let revision_of =
        |object: &DynamicObject| object.metadata.resource_version.clone().unwrap_or_default();
    let (revision, change) = match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            (revision_of(&object), Some(Change::Set(item(object, read))))
        }
        WatchEvent::Deleted(object) => {
            (revision_of(&object), Some(Change::Remove(name_of(&object))))
        }
        WatchEvent::Bookmark(bookmark) => (bookmark.metadata.resource_version, None),
        WatchEvent::Error(status) => return Err(of_status(status)),
    };
    let revision = Revision(revision);
    Ok(Event { revision, change })
}

fn item(
    object: DynamicObject,
    read: fn(DynamicObject) -> Result<Update, serde_json::Error>,
) -> Item<Input> {
    let name = name_of(&object);
    let version = object.metadata.resource_version.clone().unwrap_or_default();
    match read(object) {
        Ok(update) => Item {
            name,
            version: version.into(),
            state: State::Present(Input::Update(Box::new(update))),
        },
        Err(error) => Item::unreadable(name, error.to_string(), None),
    }
}

fn name_of(object: &DynamicObject) -> Name {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let metadata = &object.metadata;
    Name::new(&part(&metadata.namespace), &part(&metadata.name))
}

fn read_service(object: DynamicObject) -> Result<Update, serde_json::Error> {
    let ServiceContent { spec, status } = serde_json::from_value(object.data)?;
    Ok(convert::service(&Service {
        metadata: object.metadata,
        spec,
        status,
    }))
}

fn read_slice(object: DynamicObject) -> Result<Update, serde_json::Error> {
    let SliceContent { endpoints, ports } = serde_json::from_value(object.data)?;
    Ok(convert::endpoint_slice(&EndpointSlice {
        metadata: object.metadata,
        endpoints,
        ports,
        ..EndpointSlice::default()
    }))
}

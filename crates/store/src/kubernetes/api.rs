//! Requests to the API server for one kind of Kubernetes object, as plain JSON.
//!
//! # Invariants
//! - Every request ends within [`REQUEST_TIMEOUT`], and every watch connection within its own limit.
//! - Only names that are plain path segments become part of a path.

use std::future::Future;
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt};
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions, WatchParams};
use kube::core::{Request, WatchEvent};
use serde::Deserialize;
use serde_json::Value;

use super::failure::Failure;

/// Longest time for one request and its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How many objects to ask for at once.
pub(super) const PAGE_SIZE: u32 = 500;

/// Seconds after which the API server ends a watch; bookmarks come more often than this.
const WATCH_SECONDS: u32 = 240;

/// A watch that is silent for longer than it may last is dead.
pub(super) const WATCH_SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 30);

/// Where the API server has objects of one kind.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// `/api/v1`, or `/apis/` with group and version.
    pub(super) base: String,
    /// The plural of the kind.
    pub(super) plural: &'static str,
    /// Whether objects have a namespace.
    pub(super) is_namespaced: bool,
}

/// Which objects of an endpoint are meant; empty fields select all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) namespace: String,
    pub(super) name: String,
    /// A label selector of Kubernetes; matters to lists only.
    pub(super) labels: String,
}

/// Some objects of a selection. All pages of a list show one revision.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) items: Vec<Value>,
    pub(super) revision: String,
    /// Where the next page begins; nothing if this is the last one.
    pub(super) next: Option<String>,
}

/// The API server's changes to objects, until the connection ends.
pub(super) type Connection = BoxStream<'static, Result<WatchEvent<Value>, kube::Error>>;

#[derive(Deserialize)]
struct PageJson {
    #[serde(default)]
    metadata: PageMetadata,
    items: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    r#continue: String,
}

impl Endpoint {
    /// Reads one object.
    pub(super) async fn get(
        &self,
        client: &kube::Client,
        at: &Selection,
    ) -> Result<Value, Failure> {
        let request = self
            .named(at)?
            .get(path_segment(&at.name)?, &kube::api::GetParams::default());
        in_time("a read", client.request(built(request)?)).await
    }

    /// Reads so many objects of a selection, or all, from the start or where the page before ended.
    pub(super) async fn page(
        &self,
        client: &kube::Client,
        at: &Selection,
        limit: Option<u32>,
        from: Option<String>,
    ) -> Result<Page, Failure> {
        let params = ListParams {
            limit,
            continue_token: from,
            field_selector: at.field_selector(),
            label_selector: (!at.labels.is_empty()).then(|| at.labels.clone()),
            ..ListParams::default()
        };
        let request = self.collection(&at.namespace)?.list(&params);
        let page: PageJson = in_time("a list", client.request(built(request)?)).await?;
        let PageMetadata {
            resource_version,
            r#continue,
        } = page.metadata;
        Ok(Page {
            items: page.items.unwrap_or_default(),
            revision: resource_version,
            next: (!r#continue.is_empty()).then_some(r#continue),
        })
    }

    /// Stores a new object.
    pub(super) async fn create(
        &self,
        client: &kube::Client,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, Failure> {
        let request = self
            .collection(namespace)?
            .create(&PostParams::default(), to_body(object));
        in_time("a write", client.request(built(request)?)).await
    }

    /// Replaces an object, or only its status.
    pub(super) async fn replace(
        &self,
        client: &kube::Client,
        at: &Selection,
        subresource: Option<&str>,
        object: &Value,
    ) -> Result<Value, Failure> {
        let (named, name, params) = (
            self.named(at)?,
            path_segment(&at.name)?,
            PostParams::default(),
        );
        let request = match subresource {
            Some(subresource) => {
                named.replace_subresource(subresource, name, &params, to_body(object))
            }
            None => named.replace(name, &params, to_body(object)),
        };
        in_time("a write", client.request(built(request)?)).await
    }

    /// Removes an object if it still is the one with this UID and, where given, at this revision.
    pub(super) async fn delete(
        &self,
        client: &kube::Client,
        at: &Selection,
        uid: &str,
        revision: Option<&str>,
    ) -> Result<(), Failure> {
        let preconditions = Preconditions {
            uid: (!uid.is_empty()).then(|| uid.to_owned()),
            resource_version: revision.map(ToOwned::to_owned),
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let request = self.named(at)?.delete(path_segment(&at.name)?, &params);
        in_time("a delete", client.request::<Value>(built(request)?))
            .await
            .map(drop)
    }

    /// Connects to the changes after a revision.
    pub(super) async fn watch(
        &self,
        client: &kube::Client,
        at: &Selection,
        revision: &str,
    ) -> Result<Connection, Failure> {
        let params = WatchParams {
            field_selector: at.field_selector(),
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            ..WatchParams::default()
        };
        let request = self.collection(&at.namespace)?.watch(&params, revision);
        let events = in_time("a watch", client.request_events(built(request)?)).await?;
        Ok(events.boxed())
    }

    fn collection(&self, namespace: &str) -> Result<Request, Failure> {
        let Self { base, plural, .. } = self;
        Ok(Request::new(
            if self.is_namespaced && !namespace.is_empty() {
                format!("{base}/namespaces/{}/{plural}", path_segment(namespace)?)
            } else {
                format!("{base}/{plural}")
            },
        ))
    }

    /// Like [`Endpoint::collection`], for a request that needs the namespace.
    fn named(&self, at: &Selection) -> Result<Request, Failure> {
        if self.is_namespaced && at.namespace.is_empty() {
            return Err(Failure::NoSuchName);
        }
        self.collection(&at.namespace)
    }
}

impl Selection {
    fn field_selector(&self) -> Option<String> {
        (!self.name.is_empty()).then(|| format!("metadata.name={}", self.name))
    }
}

async fn in_time<T>(
    what: &'static str,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(answer) => answer.map_err(Failure::from),
        Err(_) => Err(Failure::TimedOut(what)),
    }
}

fn built<T>(request: Result<T, kube::core::request::Error>) -> Result<T, Failure> {
    request.map_err(|error| kube::Error::BuildRequest(error).into())
}

fn to_body(object: &Value) -> Vec<u8> {
    object.to_string().into_bytes()
}

/// The name, if it cannot change the meaning of a path that it is part of.
fn path_segment(name: &str) -> Result<&str, Failure> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if name.is_empty() || name == "." || name == ".." || !name.bytes().all(is_plain) {
        return Err(Failure::NoSuchName);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_change_the_path_are_refused() {
        for name in ["", ".", "..", "a/b", "a?b", "a%2fb", "a b", "ä"] {
            assert!(path_segment(name).is_err(), "{name}");
        }
        assert!(path_segment("knp.default.a-b").is_ok());
    }
}

//! Lists, written item by item: all of them at once may be more than should be in memory.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::Response;
use futures::{StreamExt as _, stream};
use serde_json::json;

use super::accept::View;
use super::reply;
use crate::hub::Object;
use crate::registry::ResourceType;
use crate::service::Page;
use crate::table;

/// Items are joined up to about so many bytes.
const ENOUGH: usize = 64 << 10;

/// What is left of a list to write.
struct Lines {
    view: View,
    /// What comes before the items; none once that is written.
    head: Option<String>,
    items: std::vec::IntoIter<Object>,
    /// The text of a large object that comes next. It is not copied: who reads slowly holds nothing of his own.
    large: Option<Bytes>,
    is_first: bool,
    is_over: bool,
}

/// A page of a list.
pub(super) fn response(view: View, of: &ResourceType, page: Page) -> Response {
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if !page.continuation.is_empty() {
        metadata["continue"] = json!(page.continuation);
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    let (kind, api_version) = match view {
        View::Whole => (format!("{}List", of.kind), of.api_version()),
        View::Metadata(version) => (
            "PartialObjectMetadataList".to_owned(),
            format!("meta.k8s.io/{}", version.as_str()),
        ),
        View::Table(options) => {
            let now = jiff::Timestamp::now();
            let table = if options.include == table::Include::Object {
                let items: Vec<_> = page.items.iter().map(Object::whole).collect();
                let items = items.iter().map(AsRef::as_ref);
                table::table(of, items, &metadata, options, now)
            } else {
                let items = page.items.iter().map(Object::head);
                table::table(of, items, &metadata, options, now)
            };
            return reply::json(StatusCode::OK, &table);
        }
    };
    let mut lines = Lines {
        view,
        head: Some(format!(
            "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[",
            json!(kind),
            json!(api_version)
        )),
        items: page.items.into_iter(),
        large: None,
        is_first: true,
        is_over: false,
    };
    let first = lines.next().unwrap_or_default();
    if lines.is_over {
        return reply::bytes(StatusCode::OK, first.into());
    }
    // Written when the client has taken what came before, and not on the threads that serve all.
    let rest = stream::unfold(lines, async |mut lines| {
        let written = tokio::task::spawn_blocking(move || {
            let next = lines.next();
            (next, lines)
        });
        let (next, lines) = written.await.ok()?;
        Some((next?, lines))
    });
    let all = stream::iter([first]).chain(rest);
    let body = Body::from_stream(all.map(Ok::<Bytes, Infallible>));
    reply::bytes(StatusCode::OK, body)
}

impl Lines {
    /// The next bytes; none after the last.
    fn next(&mut self) -> Option<Bytes> {
        if let Some(large) = self.large.take() {
            return Some(large);
        }
        if self.is_over {
            return None;
        }
        let mut bytes = self.head.take().unwrap_or_default().into_bytes();
        while bytes.len() < ENOUGH {
            let Some(item) = self.items.next() else {
                self.is_over = true;
                bytes.extend_from_slice(b"]}\n");
                break;
            };
            if !self.is_first {
                bytes.push(b',');
            }
            self.is_first = false;
            match self.view {
                View::Metadata(version) => {
                    let partial = table::partial(item.head(), version);
                    bytes.extend_from_slice(partial.to_string().as_bytes());
                }
                View::Whole | View::Table(_) => match item.text() {
                    None => item.write(&mut bytes),
                    large => {
                        self.large = large;
                        break;
                    }
                },
            }
        }
        Some(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::registry::Registry;

    async fn read(page: Page) -> (bool, Value) {
        let registry = Registry::standalone();
        let of = registry.find("", "v1", "configmaps").unwrap();
        let response = response(View::Whole, of, page);
        let is_whole = axum::body::HttpBody::size_hint(response.body())
            .exact()
            .is_some();
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await;
        (is_whole, serde_json::from_slice(&bytes.unwrap()).unwrap())
    }

    #[tokio::test]
    async fn small_lists_come_as_a_whole_and_large_ones_in_pieces() {
        for (count, is_whole) in [(0, true), (1, true), (10, true), (100, false)] {
            let item = |number: usize| json!({"data": {number.to_string(): "x".repeat(4096)}});
            let items: Vec<_> = (0..count).map(item).collect();
            let page = Page {
                items: items.iter().cloned().map(Object::new).collect(),
                revision: 7,
                continuation: "more".to_owned(),
                remaining: Some(3),
            };
            let expected = json!({
                "kind": "ConfigMapList", "apiVersion": "v1", "items": items,
                "metadata": {"resourceVersion": "7", "continue": "more", "remainingItemCount": 3},
            });
            assert_eq!(read(page).await, (is_whole, expected), "{count}");
        }
    }

    #[tokio::test]
    async fn large_objects_are_written_between_small_ones() {
        let item = |size: usize| json!({"data": {"key": vec!["text"; size]}});
        for sizes in [&[50_000][..], &[1, 50_000, 1], &[50_000, 50_000]] {
            let items: Vec<_> = sizes.iter().map(|size| item(*size)).collect();
            let page = Page {
                items: items.iter().cloned().map(Object::new).collect(),
                revision: 7,
                continuation: String::new(),
                remaining: None,
            };
            let (is_whole, list) = read(page).await;
            assert!(!is_whole);
            assert_eq!(list["items"], Value::Array(items), "{sizes:?}");
        }
    }
}

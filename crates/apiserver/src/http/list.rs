//! Lists, written item by item: all of them at once may be more than should be in memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::Response;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::accept::View;
use super::budget::{Budget, Client, PATIENCE};
use super::reply;
use crate::failure::{Failure, Reason, Result};
use crate::hub::Object;
use crate::service::Listing;
use crate::table;

/// Items are joined up to about so many bytes.
const ENOUGH: usize = 64 << 10;

/// How long a list whose beginning was sent waits for its turn: it cannot be told to come back.
const LONG_PATIENCE: Duration = Duration::from_mins(2);

/// Whose list it is, and what that one may hold.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) client: Client,
    pub(super) budget: Arc<Budget>,
}

/// What is left of a list to write.
struct Lines {
    view: View,
    reader: Reader,
    /// Away while somebody reads from it.
    listing: Option<Listing>,
    /// What comes before the items; none once that is written.
    head: Option<String>,
    is_first: bool,
    now: Timestamp,
}

/// What is written of a list at a time.
struct Piece {
    texts: Vec<Bytes>,
    is_last: bool,
}

/// A list, or a page of one.
pub(super) async fn response(view: View, listing: Listing, reader: Reader) -> Result<Response> {
    let mut lines = Lines::new(view, listing, reader);
    let first = lines.next(PATIENCE).await?;
    if first.is_last && first.texts.len() == 1 {
        let all = first.texts.into_iter().next().unwrap_or_default();
        return Ok(reply::bytes(StatusCode::OK, all.into()));
    }
    // Read when the client has taken what came before. What fails now ends the connection.
    let is_last = first.is_last;
    let rest = stream::unfold((!is_last).then_some(lines), async |lines| {
        let mut lines = lines?;
        match lines.next(LONG_PATIENCE).await {
            Ok(piece) => {
                let lines = (!piece.is_last).then_some(lines);
                Some((Ok(piece), lines))
            }
            Err(failure) => {
                tracing::warn!(reason = %failure, "A list could not be sent to its end");
                Some((Err(failure), None))
            }
        }
    });
    let pieces = stream::iter([Ok(first)]).chain(rest);
    let texts = pieces.flat_map(|piece| match piece {
        Ok(piece) => stream::iter(piece.texts.into_iter().map(Ok).collect::<Vec<_>>()),
        Err(failure) => stream::iter(vec![Err(failure)]),
    });
    Ok(reply::bytes(StatusCode::OK, Body::from_stream(texts)))
}

impl Lines {
    fn new(view: View, listing: Listing, reader: Reader) -> Self {
        let of = listing.of();
        let (kind, api_version) = match view {
            View::Whole => (format!("{}List", of.kind), of.api_version()),
            View::Metadata(version) => (
                "PartialObjectMetadataList".to_owned(),
                table::api_version(version),
            ),
            View::Table(options) => ("Table".to_owned(), table::api_version(options.version)),
        };
        let items = match view {
            View::Table(options) => {
                let columns = Value::Array(table::column_definitions(of, options));
                format!("\"columnDefinitions\":{columns},\"rows\":[")
            }
            View::Whole | View::Metadata(_) => "\"items\":[".to_owned(),
        };
        Self {
            view,
            reader,
            head: Some(format!(
                "{{\"kind\":{},\"apiVersion\":{},{items}",
                json!(kind),
                json!(api_version)
            )),
            listing: Some(listing),
            is_first: true,
            now: Timestamp::now(),
        }
    }

    /// What comes next, and how much memory it takes to read that is counted before it is read.
    async fn next(&mut self, patience: Duration) -> Result<Piece> {
        let mut listing = self.listing.take().ok_or_else(lost)?;
        loop {
            let (given_back, width) = self
                .reading(move || {
                    let width = listing.look()?;
                    Ok((listing, width))
                })
                .await?;
            listing = given_back;
            let Reader { client, budget } = &self.reader;
            let share = budget
                .take(client, width.unwrap_or_default(), patience)
                .await?;
            let mut pen = Pen {
                view: self.view,
                now: self.now,
                is_first: self.is_first,
                bytes: self.head.take().unwrap_or_default().into_bytes(),
                texts: Vec::new(),
            };
            let (given_back, mut pen, is_last) = self
                .reading(move || {
                    while let Some(object) = listing.next_object()? {
                        pen.write(&listing, &object);
                    }
                    let is_last = listing.look()?.is_none();
                    if is_last {
                        pen.finish(&mut listing)?;
                    }
                    Ok((listing, pen, is_last))
                })
                .await?;
            listing = given_back;
            self.is_first = pen.is_first;
            pen.cut();
            if pen.texts.is_empty() {
                // Nothing of it was selected.
                continue;
            }
            self.listing = Some(listing);
            return Ok(Piece {
                texts: share.cover(pen.texts),
                is_last,
            });
        }
    }
}

impl Lines {
    /// Reads where that holds up nobody.
    async fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        // Never closed.
        let _permit = self.reader.budget.reading.acquire().await;
        let read = tokio::task::spawn_blocking(read);
        read.await.unwrap_or_else(|_| Err(lost()))
    }
}

/// Writes items, one after the other.
struct Pen {
    view: View,
    now: Timestamp,
    is_first: bool,
    bytes: Vec<u8>,
    texts: Vec<Bytes>,
}

impl Pen {
    fn write(&mut self, listing: &Listing, item: &Object) {
        if !self.is_first {
            self.bytes.push(b',');
        }
        self.is_first = false;
        let value = match self.view {
            View::Whole => {
                match item.text() {
                    None => item.write(&mut self.bytes),
                    // There is one for all, which is not copied.
                    Some(text) => {
                        self.cut();
                        self.texts.push(text);
                    }
                }
                None
            }
            View::Metadata(version) => Some(table::partial(item.head(), version)),
            View::Table(options) => {
                let of = listing.of();
                let row = if options.include == table::Include::Object {
                    table::row(of, &item.whole(), options, self.now)
                } else {
                    table::row(of, item.head(), options, self.now)
                };
                Some(row)
            }
        };
        if let Some(value) = value {
            // Writing a value into memory does not fail.
            drop(serde_json::to_writer(&mut self.bytes, &value));
        }
        if self.bytes.len() >= ENOUGH {
            self.cut();
        }
    }

    /// What a list says of itself comes last: only now is it known whether there is more.
    fn finish(&mut self, listing: &mut Listing) -> Result<()> {
        let end = listing.end()?;
        let mut metadata = json!({"resourceVersion": listing.revision().to_string()});
        if !end.continuation.is_empty() {
            metadata["continue"] = json!(end.continuation);
        }
        if let Some(remaining) = end.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        let text = format!("],\"metadata\":{metadata}}}\n");
        self.bytes.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn cut(&mut self) {
        if !self.bytes.is_empty() {
            self.texts.push(std::mem::take(&mut self.bytes).into());
        }
    }
}

fn lost() -> Failure {
    Failure::new(Reason::Internal, "the list could not be read to its end")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::User;
    use crate::http::metrics::FlowControl;
    use crate::registry::Registry;
    use crate::service::Service;
    use crate::storage::{
        CalicoStorage, DefinitionStorage, DocumentStorage, RoleStorage, ServiceStorage,
        StandaloneStorage,
    };
    use tortie_client::Client as StoreClient;
    use tortie_store::embedded::EmbeddedStore;

    async fn read(items: &[Value], view: View) -> (bool, Value) {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(EmbeddedStore::open(folder.path().join("store")).unwrap());
        let native = DocumentStorage::new(store.documents());
        let calico = CalicoStorage::new(StoreClient::new(store));
        let roles = RoleStorage::open(native.clone(), Arc::default())
            .await
            .unwrap();
        let network = crate::standalone::SERVICE_NETWORK.into();
        let defined = DefinitionStorage::open(native.clone(), Arc::default()).await;
        let defined = defined.unwrap();
        let services = ServiceStorage::open(native.clone(), network).await.unwrap();
        let storage = Arc::new(StandaloneStorage::new(
            calico, native, roles, services, defined,
        ));
        let service = Service::new(Registry::standalone(), storage);
        let of = service.registry().find("", "v1", "configmaps").unwrap();
        let items = items.iter().cloned().map(Object::new).collect();
        let reader = Reader {
            client: (&User::administrator()).into(),
            budget: Budget::new(1 << 20, FlowControl::default()),
        };
        let listing = service.list_of(of, items).await;
        let response = response(view, listing, reader).await.unwrap();
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
            let expected = json!({
                "kind": "ConfigMapList", "apiVersion": "v1", "items": items,
                "metadata": {"resourceVersion": "0"},
            });
            assert_eq!(
                read(&items, View::Whole).await,
                (is_whole, expected),
                "{count}"
            );
        }
    }

    #[tokio::test]
    async fn large_objects_are_written_between_small_ones() {
        let item = |size: usize| json!({"data": {"key": vec!["text"; size]}});
        for sizes in [&[50_000][..], &[1, 50_000, 1], &[50_000, 50_000]] {
            let items: Vec<_> = sizes.iter().map(|size| item(*size)).collect();
            let (is_whole, list) = read(&items, View::Whole).await;
            assert!(!is_whole);
            assert_eq!(list["items"], Value::Array(items), "{sizes:?}");
        }
    }

    #[tokio::test]
    async fn rows_are_what_a_table_has() {
        let items: Vec<_> = (0..3)
            .map(|number| json!({"metadata": {"name": format!("c{number}")}}))
            .collect();
        let options = table::Options::default();
        let (_, list) = read(&items, View::Table(options)).await;
        let registry = Registry::standalone();
        let of = registry.find("", "v1", "configmaps").unwrap();
        let metadata = json!({"resourceVersion": "0"});
        let expected = table::table(of, &items, &metadata, options, Timestamp::now());
        assert_eq!(list, expected);
    }
}

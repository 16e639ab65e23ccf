//! Kubernetes' own objects in the embedded store, for a server that stands alone.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tortie_store::embedded::{
    Document, DocumentChange, DocumentError, DocumentKey, Documents, Most, Snapshot, Stored,
};

use super::{Change, Changes, Mode, Storage, What, before_writing, events, native, store_failure};
use crate::custom::Definitions;
use crate::failure::{Failure, Reason, Result};
use crate::registry::{Content, Native, ResourceType};

/// Kubernetes' own objects.
#[derive(Clone)]
pub struct DocumentStorage {
    documents: Documents,
    /// What custom resources look like.
    definitions: Arc<Definitions>,
}

impl DocumentStorage {
    /// What documents hold.
    pub fn new(documents: Documents) -> Self {
        Self {
            documents,
            definitions: Arc::default(),
        }
    }

    /// The same, with what these definitions describe.
    #[must_use]
    pub fn with_definitions(self, definitions: Arc<Definitions>) -> Self {
        Self {
            definitions,
            ..self
        }
    }

    /// The object as it is stored.
    fn checked(&self, of: &ResourceType, object: Value, mode: Mode) -> Result<Value> {
        match of.content {
            Content::Custom => {
                let drops = mode.drops_unknown_fields;
                self.definitions.checked(of, object, drops)
            }
            _ => native::checked(of, object, mode),
        }
    }

    /// All objects of a type that can be read. Others are named in the log.
    pub(super) async fn list_readable(&self, of: &ResourceType) -> Result<Vec<Value>> {
        let listed = self.documents.list(&collection(of), None).await;
        let (documents, _) = listed.map_err(|error| failure(of, "", error))?;
        let readable = |document: &Document| match decode(of, document) {
            Ok(object) => Some(object),
            Err(failure) => {
                tracing::error!(key = %document.key, %failure, "An object cannot be read");
                None
            }
        };
        Ok(documents.iter().filter_map(readable).collect())
    }
}

#[async_trait]
impl Storage for DocumentStorage {
    fn complete(&self, of: &ResourceType, object: &mut Value) {
        match of.content {
            Content::Custom => self.definitions.complete(of, object),
            _ => native::complete(of, object),
        }
    }

    fn unknown_fields(&self, _: &ResourceType, given: &Value, stored: &Value) -> Vec<String> {
        let mut unknown = Vec::new();
        native::collect_unknown(given, stored, "", &mut unknown);
        unknown
    }

    async fn get(&self, of: &ResourceType, namespace: &str, name: &str) -> Result<Value> {
        let found = self.documents.get(&key(of, namespace, name));
        decode(of, &found.map_err(|error| failure(of, name, error))?)
    }

    async fn list_each(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        take: &mut (dyn FnMut(Value) + Send),
    ) -> Result<u64> {
        let listed = self.documents.list(&collection(of), namespace).await;
        let (documents, revision) = listed.map_err(|error| failure(of, "", error))?;
        for document in documents {
            take(decode(of, &document)?);
        }
        Ok(revision)
    }

    fn snapshot(&self) -> Result<Option<Snapshot>> {
        let snapshot = self.documents.snapshot().map(Some);
        snapshot.map_err(|error| Failure::new(Reason::Unavailable, error.to_string()))
    }

    fn look(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        most: Most,
    ) -> Result<Vec<Stored>> {
        let found = snapshot.documents(&collection(of).into(), namespace, after, most);
        found.map_err(|error| failure(of, "", error))
    }

    fn read(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>> {
        let key = key(of, namespace, name);
        let found = snapshot.document(&key);
        match decode(of, &found.map_err(|error| failure(of, name, error))?) {
            Ok(object) => Ok(Some(object)),
            Err(failure) => {
                tracing::warn!(object = %key, reason = failure.message, "An object cannot be read");
                Ok(None)
            }
        }
    }

    fn size(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: &str,
        name: &str,
    ) -> Result<usize> {
        let size = snapshot.document_size(&key(of, namespace, name));
        size.map_err(|error| failure(of, name, error))
    }

    async fn create(&self, of: &ResourceType, object: Value, mode: Mode) -> Result<Value> {
        if of.content == Content::Custom {
            self.definitions.check_open(of)?;
        }
        let object = self.checked(of, object, mode)?;
        let key = key_of(of, &object);
        if mode.is_dry_run {
            return Ok(object);
        }
        before_writing().await;
        let stored = self
            .documents
            .create(key.clone(), encode(of, &object))
            .await;
        let revision = stored.map_err(|error| failure(of, &key.name, error))?;
        Ok(at_revision(object, revision))
    }

    async fn update(&self, of: &ResourceType, object: Value, mode: Mode) -> Result<Value> {
        let object = self.checked(of, object, mode)?;
        let key = key_of(of, &object);
        if mode.is_dry_run {
            return Ok(object);
        }
        let expected = revision_of(&object);
        before_writing().await;
        let stored = self
            .documents
            .update(key.clone(), encode(of, &object), expected);
        let revision = stored
            .await
            .map_err(|error| failure(of, &key.name, error))?;
        Ok(at_revision(object, revision))
    }

    async fn delete(&self, of: &ResourceType, object: &Value, mode: Mode) -> Result<()> {
        if mode.is_dry_run {
            return Ok(());
        }
        let key = key_of(of, object);
        let deleted = self
            .documents
            .delete(key.clone(), Some(revision_of(object)))
            .await;
        deleted
            .map(drop)
            .map_err(|error| failure(of, &key.name, error))
    }

    async fn watch(&self, of: &ResourceType, from: u64) -> Result<Changes> {
        let of = of.clone();
        let watch = self.documents.watch(&collection(&of), from);
        let watch = watch.map_err(|error| failure(&of, "", error))?;
        let changes = watch.map(move |event| {
            let event = event.map_err(|error| failure(&of, "", error))?;
            let what = match event.change {
                DocumentChange::Put(document) => What::Put(decode(&of, &document)?),
                DocumentChange::Delete(key) => What::Delete {
                    namespace: key.namespace,
                    name: key.name,
                },
                DocumentChange::Bookmark => What::Bookmark,
            };
            Ok(Change {
                revision: event.revision,
                what,
            })
        });
        Ok(changes.boxed())
    }
}

/// Where objects of a type are: `pods`, or `networkpolicies.networking.k8s.io`.
fn collection(of: &ResourceType) -> String {
    match of.group {
        _ if is_view(of) => of.plural.to_owned(),
        "" => of.plural.to_owned(),
        group => format!("{}.{group}", of.plural),
    }
}

/// Whether objects of a type are kept as those of another.
fn is_view(of: &ResourceType) -> bool {
    of.content == Content::Native(Native::NewEvent)
}

fn key(of: &ResourceType, namespace: &str, name: &str) -> DocumentKey {
    DocumentKey::new(collection(of), namespace, name)
}

fn key_of(of: &ResourceType, object: &Value) -> DocumentKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    key(of, text("namespace"), text("name"))
}

/// What is stored. The revision is the store's to tell.
fn encode(of: &ResourceType, object: &Value) -> Vec<u8> {
    let mut object = object.clone();
    if is_view(of) {
        object = events::to_core(object);
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    object.to_string().into_bytes()
}

fn decode(of: &ResourceType, document: &Document) -> Result<Value> {
    let decoded = serde_json::from_slice(&document.json).map_err(|error| {
        let message = format!(
            "{} {:?} cannot be read: {error}",
            of.kind, document.key.name
        );
        Failure::new(Reason::Internal, message)
    })?;
    let mut decoded: Value = decoded;
    if is_view(of) {
        decoded = events::from_core(decoded);
    } else if of.content == Content::Custom {
        // It may have been written in another version, which differs in nothing else.
        decoded["apiVersion"] = json!(of.api_version());
    }
    Ok(at_revision(decoded, document.revision))
}

fn at_revision(mut object: Value, revision: u64) -> Value {
    object["metadata"]["resourceVersion"] = json!(revision.to_string());
    object
}

/// What is no revision of ours is that of no object.
fn revision_of(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

fn failure(of: &ResourceType, name: &str, error: DocumentError) -> Failure {
    match error {
        DocumentError::NotFound(_) => Failure::not_found(of, name),
        DocumentError::AlreadyExists(_) => Failure::already_exists(of, name),
        DocumentError::Conflict(_) => Failure::modified(of, name),
        DocumentError::Store(error) => store_failure(of, name, error),
        error => Failure::bad_request(error.to_string()),
    }
}

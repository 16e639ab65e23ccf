//! Documents: objects that the store keeps as they are, beside the resources it understands.
//!
//! They share the file, the revisions, the change log and the commits with the resources.

use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;

use super::Inner;
use super::feed::{Committed, State};
use super::keys::{self, AnyKey, Topic};
use super::snapshot::Snapshot;
use super::watch::Selection;
use super::writer::{Content, Objection, Operation, Outcome, Refused, Write};
use crate::error::Error;

/// Reads and writes documents.
///
/// Keeps the store open: the file is closed when the store and all of these are dropped.
#[derive(Debug, Clone)]
pub struct Documents {
    inner: Arc<Inner>,
}

/// Identifies one document. The namespace is empty for what has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentKey {
    /// What it is one of, such as `pods` or `networkpolicies.networking.k8s.io`: small letters, digits, dots and dashes,
    /// a letter first. It is never the name of a kind, because those start with a capital.
    pub collection: Arc<str>,
    /// Its namespace, or nothing.
    pub namespace: String,
    pub name: String,
}

/// A document as of one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Which one.
    pub key: DocumentKey,
    /// The revision of its last change.
    pub revision: u64,
    /// What was stored, byte by byte.
    pub json: Arc<[u8]>,
}

/// One change, or a mark of how far the watch has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentEvent {
    /// The state of the store after the change; a later watch may continue from here.
    pub revision: u64,
    /// What changed.
    pub change: DocumentChange,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentChange {
    /// The document was created or replaced.
    Put(Document),
    /// The document was removed.
    Delete(DocumentKey),
    /// Nothing changed; the revision can be used to resume.
    Bookmark,
}

/// A stream of changes. It ends only with an error.
pub type DocumentWatch = BoxStream<'static, Result<DocumentEvent, DocumentError>>;

/// Why an operation on documents failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// There is no such document.
    #[error("document does not exist: {0}")]
    NotFound(DocumentKey),
    /// There is such a document already.
    #[error("document already exists: {0}")]
    AlreadyExists(DocumentKey),
    /// The document is at another revision: read it again and retry.
    #[error("update conflict: {0}")]
    Conflict(DocumentKey),
    /// No document can have this key.
    #[error("no document can be {key}: {reason}")]
    InvalidKey {
        key: DocumentKey,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// The store failed, or, with [`Error::Gone`], no longer knows the changes after a revision.
    #[error(transparent)]
    Store(#[from] Error),
}

type Result<T, E = DocumentError> = std::result::Result<T, E>;

/// All documents of a collection.
#[derive(Debug, Clone)]
struct Collection(Arc<str>);

// === impl Documents ===

impl Documents {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// Reads one document. Waits for nobody.
    pub fn get(&self, key: &DocumentKey) -> Result<Document> {
        let found = self.inner.shared.file.document(key, &key.encode()?)?;
        found.ok_or_else(|| DocumentError::NotFound(key.clone()))
    }

    /// Reads the documents of a collection, perhaps of one namespace only, in order of namespace and name, and the
    /// revision of the state that this shows.
    pub async fn list(
        &self,
        collection: &str,
        namespace: Option<&str>,
    ) -> Result<(Vec<Document>, u64)> {
        let collection: Arc<str> = collection.into();
        // Checked as that of a document, because a NUL would select others.
        DocumentKey::new(Arc::clone(&collection), namespace.unwrap_or_default(), "").encode()?;
        let namespace = namespace.map(ToOwned::to_owned);
        let list =
            move |file: &super::StoreFile| file.list_documents(&collection, namespace.as_deref());
        Ok(self.inner.read(list).await?)
    }

    /// The present state, to be read for a while.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.inner.shared.file.snapshot()?)
    }

    /// Stores a new document, and gives its revision; [`DocumentError::AlreadyExists`] if there is one.
    pub async fn create(&self, key: DocumentKey, json: impl Into<Arc<[u8]>>) -> Result<u64> {
        let content = Content::Document(json.into());
        self.put(key, Operation::Create(content)).await
    }

    /// Replaces a document that is at the expected revision, and gives the new one; [`DocumentError::Conflict`] if it is
    /// at another, [`DocumentError::NotFound`] if it is gone.
    pub async fn update(
        &self,
        key: DocumentKey,
        json: impl Into<Arc<[u8]>>,
        expected: u64,
    ) -> Result<u64> {
        let content = Content::Document(json.into());
        self.put(key, Operation::Update { content, expected }).await
    }

    /// Removes a document, if it is at the expected revision where one is given. Gives what it was last, under the
    /// revision of the removal.
    pub async fn delete(&self, key: DocumentKey, expected: Option<u64>) -> Result<Document> {
        let operation = Operation::Delete {
            revision: expected,
            uid: None,
        };
        match self.write(key.clone(), operation).await? {
            Outcome::Deleted {
                json, deleted_at, ..
            } => Ok(Document {
                key,
                revision: deleted_at,
                json: json.into(),
            }),
            _ => unreachable!("deletions are answered by `Deleted`"),
        }
    }

    /// Follows the changes to a collection after a revision, usually that of a list: every one of them once and in
    /// order, or [`Error::Gone`], which means to list again.
    pub fn watch(&self, collection: &str, from: u64) -> Result<DocumentWatch> {
        let collection: Arc<str> = collection.into();
        DocumentKey::new(Arc::clone(&collection), "", "").encode()?;
        let topic = Topic::Collection(Arc::clone(&collection));
        let watch = self.inner.watch(topic, Collection(collection), from)?;
        Ok(watch.map(|event| Ok(event?)).boxed())
    }

    async fn put(&self, key: DocumentKey, operation: Operation) -> Result<u64> {
        match self.write(key, operation).await? {
            Outcome::DocumentWritten(revision) => Ok(revision),
            _ => unreachable!("creates and updates of documents are answered by `DocumentWritten`"),
        }
    }

    async fn write(&self, key: DocumentKey, operation: Operation) -> Result<Outcome> {
        let stored_key = key.encode()?;
        let key = AnyKey::Document(key);
        let write = Write {
            key,
            stored_key,
            operation,
        };
        self.inner.write(write).await.map_err(error)
    }
}

// === impl DocumentKey ===

impl DocumentKey {
    /// The key of a document.
    pub fn new(
        collection: impl Into<Arc<str>>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            collection: collection.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The bytes of the key, if it is one.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let invalid = |reason: &str| DocumentError::InvalidKey {
            key: self.clone(),
            reason: reason.to_owned(),
        };
        let is_allowed = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-');
        if !self
            .collection
            .starts_with(|c: char| c.is_ascii_lowercase())
            || !self.collection.bytes().all(is_allowed)
        {
            return Err(invalid(
                "the collection must hold small letters, digits, dots and dashes only, and start with a letter",
            ));
        }
        keys::encode_document(self).ok_or_else(|| invalid("namespace and name must not hold a NUL"))
    }
}

/// `collection(name)` or `collection(namespace/name)`.
impl fmt::Display for DocumentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.namespace.is_empty() { "" } else { "/" };
        write!(
            f,
            "{}({}{separator}{})",
            self.collection, self.namespace, self.name
        )
    }
}

// === impl Collection ===

impl Selection for Collection {
    type Event = DocumentEvent;

    fn logged(&self, revision: u64, key: &[u8], json: Option<&[u8]>) -> Option<DocumentEvent> {
        let key = keys::decode_document(&self.0, key)?;
        Some(event(revision, key, json.map(Into::into)))
    }

    fn committed(&self, change: &Committed) -> Option<DocumentEvent> {
        let AnyKey::Document(key) = &change.key else {
            return None;
        };
        let json = match &change.state {
            State::Document(json) => Some(Arc::clone(json)),
            _ => None,
        };
        (key.collection == self.0).then(|| event(change.revision, key.clone(), json))
    }

    fn bookmark(&self, revision: u64) -> DocumentEvent {
        DocumentEvent {
            revision,
            change: DocumentChange::Bookmark,
        }
    }
}

fn event(revision: u64, key: DocumentKey, json: Option<Arc<[u8]>>) -> DocumentEvent {
    let change = match json {
        Some(json) => DocumentChange::Put(Document {
            key,
            revision,
            json,
        }),
        None => DocumentChange::Delete(key),
    };
    DocumentEvent { revision, change }
}

/// What a refusal is to the caller.
fn error(refused: Refused) -> DocumentError {
    match refused {
        Refused::Failed(error) => error.into(),
        Refused::Object(AnyKey::Document(key), objection) => match objection {
            Objection::NotFound => DocumentError::NotFound(key),
            Objection::AlreadyExists => DocumentError::AlreadyExists(key),
            Objection::Conflict => DocumentError::Conflict(key),
        },
        Refused::Object(AnyKey::Resource(_), _) => {
            unreachable!("writes of documents touch no resources")
        }
    }
}

#[cfg(test)]
mod tests;

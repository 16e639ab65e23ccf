//! Documents that are resources too: Kubernetes objects that an API server keeps in the file.
//!
//! They are stored once, as documents, and seen through the views that a cluster's own objects are seen through. Which
//! document a resource comes from follows from its name. What is stored under such a name is hidden by the document.

use std::sync::Arc;

use serde_json::Value;
use tortie_api::k8s::{NamespacedName, Reading, View};
use tortie_api::{Kind, Resource};

use super::documents::DocumentKey;
use super::keys;
use crate::error::{Error, Result};
use crate::json;
use crate::key::{Key, Query};
use crate::store::Invalid;

/// The collections, and what their documents are seen as. Only such views are possible whose resources are known by the
/// names of the documents alone: that is all that is left of one that was removed.
static SHOWN: [(&str, View); 3] = [
    ("networkpolicies.networking.k8s.io", View::NetworkPolicy),
    ("namespaces", View::Namespace),
    ("serviceaccounts", View::ServiceAccount),
];

/// A collection whose documents are resources of a kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    collection: &'static str,
    view: &'static View,
}

/// The collections whose documents are resources of this kind.
pub(super) fn of_kind(kind: Kind) -> impl Iterator<Item = Shown> {
    all().filter(move |shown| shown.view.kind() == kind)
}

/// What the documents of a collection are resources of.
pub(super) fn of_collection(collection: &str) -> Option<Shown> {
    all().find(|shown| shown.collection == collection)
}

/// The bytes of the keys that a resource may be under, the one that counts first; a document counts before what is stored
/// as a resource.
pub(super) fn stored_keys(key: &Key) -> impl Iterator<Item = (Option<Shown>, Vec<u8>)> {
    let documents = of_kind(key.kind).filter_map(|shown| {
        let document = shown.document_key(key)?;
        Some((Some(shown), keys::encode_document(&document)?))
    });
    let own = keys::encode(key).map(|own| (None, own));
    documents.chain(own)
}

/// The resource that these bytes are, stored under a key or, with a collection, as a document of that.
pub(super) fn decode(
    shown: Option<Shown>,
    key: &Key,
    revision: u64,
    json: &[u8],
) -> Result<Resource, Invalid> {
    match shown {
        Some(shown) => shown.read(key, revision, json),
        None => json::decode(key.kind, json, revision.to_string())
            .map_err(|reason| Invalid::of_bytes(key.clone(), reason, json)),
    }
}

/// The same, of bytes from the change log, whose key tells what they are; nothing if no resources of the kind.
pub(super) fn parse(kind: Kind, stored_key: &[u8]) -> Option<(Option<Shown>, Key)> {
    if let Some(key) = keys::decode(stored_key) {
        return Some((None, key));
    }
    of_kind(kind).find_map(|shown| Some((Some(shown), shown.parse(stored_key)?)))
}

/// Refuses to write a resource that comes from a document.
pub(super) fn refusal(operation: &'static str, key: &Key) -> Error {
    Error::Unsupported {
        operation,
        key: key.clone(),
        reason: "it is managed through the Kubernetes API; use kubectl".to_owned(),
    }
}

// === impl Shown ===

impl Shown {
    /// The kind of the resources.
    pub(super) fn kind(self) -> Kind {
        self.view.kind()
    }

    /// Whether resources come in the order of their documents.
    pub(super) fn is_in_order(self) -> bool {
        // `ksa.a-b.x` is before `ksa.a.x`, and namespace `a` before `a-b`.
        *self.view != View::ServiceAccount
    }

    /// The resource that a document of this name is.
    pub(super) fn key(self, namespace: &str, name: &str) -> Option<Key> {
        let NamespacedName { namespace, name } = self.view.resource_name(namespace, name)?;
        Some(Key::namespaced(self.kind(), namespace, name))
    }

    /// The resource that a document under these bytes is; nothing if they are of another collection.
    pub(super) fn parse(self, stored_key: &[u8]) -> Option<Key> {
        let document = keys::decode_document(&Arc::from(self.collection), stored_key)?;
        self.key(&document.namespace, &document.name)
    }

    /// What the keys of documents start with that a query may select.
    pub(super) fn prefix(self, query: &Query) -> Vec<u8> {
        let namespace = if self.kind().is_namespaced() {
            query.namespace.as_deref()
        } else {
            None
        };
        keys::document_prefix(self.collection, namespace)
    }

    /// The first document that can be a resource after this one, as far as namespaces tell.
    pub(super) fn start(self, query: &Query, after_namespace: &str) -> Vec<u8> {
        let prefix = self.prefix(query);
        if self.kind().is_namespaced() {
            prefix.max(keys::document_prefix(
                self.collection,
                Some(after_namespace),
            ))
        } else {
            prefix
        }
    }

    fn document_key(self, key: &Key) -> Option<DocumentKey> {
        let NamespacedName { namespace, name } =
            self.view.object_name(&key.namespace, &key.name)?;
        Some(DocumentKey::new(self.collection, namespace, name))
    }

    fn read(self, key: &Key, revision: u64, json: &[u8]) -> Result<Resource, Invalid> {
        let invalid = |reason: String| Invalid::new(key.clone(), reason, None);
        let object: Value = serde_json::from_slice(json).map_err(|e| invalid(e.to_string()))?;
        match self.view.read(&object) {
            Reading::Present(mut resource, problems) => {
                if !problems.is_empty() {
                    tracing::warn!(object = %key, %problems, "Parts of a Kubernetes object are ignored");
                }
                resource.metadata_mut().resource_version = revision.to_string();
                Ok(resource)
            }
            Reading::Unreadable(_, reason) => Err(invalid(reason)),
            Reading::Absent(_) | Reading::Unrelated => Err(invalid("it is no resource".to_owned())),
        }
    }
}

fn all() -> impl Iterator<Item = Shown> {
    SHOWN
        .iter()
        .map(|(collection, view)| Shown { collection, view })
}

#[cfg(test)]
mod tests;

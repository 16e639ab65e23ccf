//! Keys as bytes: kind or collection, namespace and name with a NUL between, so that byte order is
//! the order of lists.
//!
//! Kinds start with a capital and collections with a small letter, so no two keys have the same
//! bytes, and versions that know no documents pass them over like kinds that they do not know.

use std::sync::Arc;

use tortie_api::Kind;

use super::documents::DocumentKey;
use super::views;
use crate::key::{Key, Query};

/// The key of anything in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnyKey {
    Resource(Key),
    Document(DocumentKey),
}

/// Changes of one topic are followed together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Topic {
    Kind(Kind),
    Collection(Arc<str>),
}

// === impl AnyKey ===

impl AnyKey {
    /// Under which topics a change is told: a document that is a resource too has two.
    pub(super) fn topics(&self) -> impl Iterator<Item = Topic> {
        let (own, shown) = match self {
            Self::Resource(key) => (Topic::Kind(key.kind), None),
            Self::Document(key) => {
                let collection = Arc::clone(&key.collection);
                let shown = views::of_collection(&collection);
                let shown = shown.map(|shown| Topic::Kind(shown.kind()));
                (Topic::Collection(collection), shown)
            }
        };
        std::iter::once(own).chain(shown)
    }
}

/// The bytes of a resource's key; none if a part holds a NUL.
pub(super) fn encode(key: &Key) -> Option<Vec<u8>> {
    checked_join(key.kind.as_str(), &key.namespace, &key.name)
}

/// The bytes of a document's key; none if a part holds a NUL. The collection must be valid.
pub(super) fn encode_document(key: &DocumentKey) -> Option<Vec<u8>> {
    checked_join(&key.collection, &key.namespace, &key.name)
}

/// The resource's key of these bytes; none if this version knows no such kind.
pub(super) fn decode(bytes: &[u8]) -> Option<Key> {
    let (first, namespace, name) = split(bytes)?;
    let kind = Kind::from_name(first)?;
    Some(Key::namespaced(kind, namespace, name))
}

/// The document's key of these bytes; none if they are of another collection.
pub(super) fn decode_document(collection: &Arc<str>, bytes: &[u8]) -> Option<DocumentKey> {
    let (first, namespace, name) = split(bytes)?;
    (first == &**collection).then(|| DocumentKey::new(Arc::clone(collection), namespace, name))
}

/// What the keys of a collection's documents start with, and no others.
pub(super) fn document_prefix(collection: &str, namespace: Option<&str>) -> Vec<u8> {
    match namespace {
        Some(namespace) => join(&[collection, namespace, ""]),
        None => join(&[collection, ""]),
    }
}

/// What all keys that a query selects start with; others may as well.
pub(super) fn prefix(query: &Query) -> Vec<u8> {
    let namespace = if query.kind.is_namespaced() {
        query.namespace.as_deref()
    } else {
        Some("")
    };
    match (namespace, &query.name) {
        (Some(namespace), Some(name)) => join(&[query.kind.as_str(), namespace, name]),
        (Some(namespace), None) => join(&[query.kind.as_str(), namespace, ""]),
        (None, _) => join(&[query.kind.as_str(), ""]),
    }
}

fn checked_join(first: &str, namespace: &str, name: &str) -> Option<Vec<u8>> {
    let is_whole = !namespace.contains('\0') && !name.contains('\0');
    is_whole.then(|| join(&[first, namespace, name]))
}

fn split(bytes: &[u8]) -> Option<(&str, &str, &str)> {
    let mut parts = std::str::from_utf8(bytes).ok()?.splitn(3, '\0');
    Some((parts.next()?, parts.next()?, parts.next()?))
}

fn join(parts: &[&str]) -> Vec<u8> {
    parts.join("\0").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_the_way_to_bytes_and_back() {
        for key in [
            Key::global(Kind::Tier, "default"),
            Key::namespaced(Kind::NetworkPolicy, "ns", "a.b-c"),
        ] {
            assert_eq!(decode(&encode(&key).unwrap()), Some(key));
        }
        assert_eq!(encode(&Key::global(Kind::Tier, "a\0b")), None);
        assert_eq!(decode(b"NoSuchKind\0\0a"), None);
        assert_eq!(decode(b"Tier"), None);
    }

    #[test]
    fn keys_of_documents_are_those_of_their_collection_only() {
        let (pods, other) = ("pods".into(), "pods.example.org".into());
        let key = DocumentKey::new(Arc::clone(&pods), "ns", "a.b-c");
        let bytes = encode_document(&key).unwrap();
        assert_eq!(decode_document(&pods, &bytes), Some(key));
        assert_eq!(decode_document(&other, &bytes), None);
        assert_eq!(decode(&bytes), None);
        assert!(bytes.starts_with(&document_prefix("pods", Some("ns"))));
        assert!(!bytes.starts_with(&document_prefix("pods", Some("n"))));
        assert_eq!(encode_document(&DocumentKey::new(pods, "n\0s", "a")), None);
    }

    #[test]
    fn byte_order_is_the_order_of_namespace_then_name() {
        let keys = [("a", "z"), ("a-b", "a"), ("a.b", "a"), ("ab", "a")];
        let bytes: Vec<_> = keys
            .iter()
            .map(|(namespace, name)| {
                encode(&Key::namespaced(Kind::NetworkSet, *namespace, *name)).unwrap()
            })
            .collect();
        assert!(bytes.is_sorted());
    }
}

//! Keys as bytes: kind, namespace and name with a NUL between, so that byte order is the order of
//! lists.

use tortie_api::Kind;

use crate::key::{Key, Query};

/// The bytes of a key; none if a part holds a NUL.
pub(super) fn encode(key: &Key) -> Option<Vec<u8>> {
    if key.namespace.contains('\0') || key.name.contains('\0') {
        return None;
    }
    Some(join(&[key.kind.as_str(), &key.namespace, &key.name]))
}

/// The key of these bytes; none if this version knows no such kind.
pub(super) fn decode(bytes: &[u8]) -> Option<Key> {
    let mut parts = std::str::from_utf8(bytes).ok()?.splitn(3, '\0');
    let kind = Kind::from_name(parts.next()?)?;
    let (namespace, name) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    Some(Key {
        kind,
        namespace,
        name,
    })
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

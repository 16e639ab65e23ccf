//! What a selector is evaluated against.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

/// The labels of one endpoint, network set, namespace or node.
///
/// Lists of pairs are searched from the front, which is the fastest choice for the ten or twenty
/// labels that endpoints have; if a name is repeated, the first one counts.
pub trait Labels {
    /// The value of a label, or `None` if it is absent.
    fn get(&self, name: &str) -> Option<&str>;
}

impl<L: Labels + ?Sized> Labels for &L {
    fn get(&self, name: &str) -> Option<&str> {
        (**self).get(name)
    }
}

impl<K: Borrow<str> + Ord, V: AsRef<str>> Labels for BTreeMap<K, V> {
    fn get(&self, name: &str) -> Option<&str> {
        BTreeMap::get(self, name).map(AsRef::as_ref)
    }
}

impl<K: Borrow<str> + Eq + Hash, V: AsRef<str>, S: BuildHasher> Labels for HashMap<K, V, S> {
    fn get(&self, name: &str) -> Option<&str> {
        HashMap::get(self, name).map(AsRef::as_ref)
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Labels for [(K, V)] {
    #[inline]
    fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(key, _)| same_text(key.as_ref(), name))
            .map(|(_, value)| value.as_ref())
    }
}

impl<K: AsRef<str>, V: AsRef<str>, const N: usize> Labels for [(K, V); N] {
    #[inline]
    fn get(&self, name: &str) -> Option<&str> {
        Labels::get(self.as_slice(), name)
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Labels for Vec<(K, V)> {
    #[inline]
    fn get(&self, name: &str) -> Option<&str> {
        Labels::get(self.as_slice(), name)
    }
}

/// `a == b`, made for names and values of labels, which are short.
///
/// The standard comparison calls `memcmp`, which costs more than comparing a few bytes in place.
#[inline]
pub(crate) fn same_text(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    // The first and the last bytes together cover everything, and may overlap.
    match a.len() {
        33.. => a == b,
        17.. => a.first_chunk::<16>() == b.first_chunk() && a.last_chunk::<16>() == b.last_chunk(),
        8.. => a.first_chunk::<8>() == b.first_chunk() && a.last_chunk::<8>() == b.last_chunk(),
        4.. => a.first_chunk::<4>() == b.first_chunk() && a.last_chunk::<4>() == b.last_chunk(),
        2.. => a.first_chunk::<2>() == b.first_chunk() && a.last_chunk::<2>() == b.last_chunk(),
        _ => a.first() == b.first(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_every_length_is_compared_completely() {
        for length in 0..70 {
            let text = "x".repeat(length);
            assert!(same_text(&text, &text.clone()));
            assert!(!same_text(&text, &"x".repeat(length + 1)));
            for position in 0..length {
                let mut other = text.clone();
                other.replace_range(position..=position, "y");
                assert!(
                    !same_text(&text, &other),
                    "{length} bytes, difference at {position}"
                );
            }
        }
    }

    #[track_caller]
    fn check(labels: &(impl Labels + ?Sized)) {
        assert_eq!(labels.get("app"), Some("web"));
        assert_eq!(labels.get("empty"), Some(""));
        assert_eq!(labels.get("ap"), None);
        assert_eq!(labels.get(""), None);
    }

    #[test]
    fn every_container_gives_the_same_answers() {
        let pairs = [("app", "web"), ("empty", "")];
        let owned: Vec<(String, String)> = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        check(&pairs);
        check(pairs.as_slice());
        check(&pairs.as_slice());
        check(&owned);
        check(&owned.iter().cloned().collect::<BTreeMap<_, _>>());
        check(&owned.iter().cloned().collect::<HashMap<_, _>>());
        check(&pairs.into_iter().collect::<BTreeMap<_, _>>());
    }

    #[test]
    fn the_first_of_repeated_labels_counts() {
        assert_eq!(Labels::get(&[("a", "1"), ("a", "2")], "a"), Some("1"));
    }
}

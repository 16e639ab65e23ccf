//! An object in a cache, found by the namespace and name that it has itself: a key beside each would be a fifth of what a
//! small object takes.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use tortie_sync::Name;

use crate::key::ObjectKey;
use crate::object::Object;

/// An object, and the number of the last list that had it.
pub(super) struct Kept<K> {
    pub(super) object: Arc<K>,
    pub(super) list: u32,
}

/// Something with a place in the order of keys.
pub(super) trait Place {
    /// Namespace and name.
    fn place(&self) -> (Option<&str>, &str);
}

impl Place for ObjectKey {
    fn place(&self) -> (Option<&str>, &str) {
        (self.namespace.as_deref(), &self.name)
    }
}

impl Place for Name {
    fn place(&self) -> (Option<&str>, &str) {
        let namespace = Some(self.namespace()).filter(|namespace| !namespace.is_empty());
        (namespace, self.name())
    }
}

impl<K: Object> Place for Kept<K> {
    fn place(&self) -> (Option<&str>, &str) {
        (self.object.namespace(), self.object.name())
    }
}

impl PartialEq for dyn Place + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for dyn Place + '_ {}

impl PartialOrd for dyn Place + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Place + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl<'a, K: Object> Borrow<dyn Place + 'a> for Kept<K> {
    fn borrow(&self) -> &(dyn Place + 'a) {
        self
    }
}

impl<K: Object> PartialEq for Kept<K> {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl<K: Object> Eq for Kept<K> {}

impl<K: Object> PartialOrd for Kept<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Object> Ord for Kept<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

/// All objects with their keys, in order. Keys of one namespace share its text.
pub(super) fn keys<K: Object>(
    objects: &BTreeSet<Kept<K>>,
) -> impl Iterator<Item = (ObjectKey, &Arc<K>)> {
    let mut last: Option<Arc<str>> = None;
    objects.iter().map(move |kept| {
        let (namespace, name) = kept.place();
        if last.as_deref() != namespace {
            last = namespace.map(Arc::from);
        }
        let key = ObjectKey {
            namespace: last.clone(),
            name: name.into(),
        };
        (key, &kept.object)
    })
}

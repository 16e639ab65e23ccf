//! Keys that come from the spec of a resource, not from its name.
//!
//! A removal names the resource alone, and an update can give a resource another key; both need the key that it had.

use std::collections::{BTreeMap, BTreeSet};

use tortie_engine::input::Update;

/// Resources of one kind by name, of which several may claim one key: the one with the lowest name has it.
#[derive(Debug)]
pub(super) struct Contested<K, V> {
    by_name: BTreeMap<String, (K, V)>,
    names: BTreeMap<K, BTreeSet<String>>,
}

/// The key that each resource of one kind was last given; no two resources can have the same one.
#[derive(Debug)]
pub(super) struct Remembered<K>(BTreeMap<String, K>);

// === impl Contested ===

impl<K, V> Default for Contested<K, V> {
    fn default() -> Self {
        Self {
            by_name: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone, V: Clone> Contested<K, V> {
    /// A resource has this key and value, or none that is valid. Gives what changes for each key, in order.
    pub(super) fn set(&mut self, name: &str, entry: Option<(K, V)>) -> Vec<(K, Option<V>)> {
        let Some((key, value)) = entry else {
            return self.remove(name);
        };
        let mut changes = match self.by_name.get(name) {
            Some((old, _)) if *old != key => self.remove(name),
            _ => Vec::new(),
        };
        let names = self.names.entry(key.clone()).or_default();
        names.insert(name.to_owned());
        if names.first().is_some_and(|first| first == name) {
            changes.push((key.clone(), Some(value.clone())));
        }
        self.by_name.insert(name.to_owned(), (key, value));
        changes
    }

    /// Whether a resource has a key.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// A resource is gone: its key falls to the next one that claims it.
    pub(super) fn remove(&mut self, name: &str) -> Vec<(K, Option<V>)> {
        let Some((key, _)) = self.by_name.remove(name) else {
            return Vec::new();
        };
        let Some(names) = self.names.get_mut(&key) else {
            return Vec::new();
        };
        let had_it = names.first().is_some_and(|first| first == name);
        names.remove(name);
        let heir = names.first().and_then(|next| self.by_name.get(next));
        let value = heir.map(|(_, value)| value.clone());
        if names.is_empty() {
            self.names.remove(&key);
        }
        if had_it {
            vec![(key, value)]
        } else {
            Vec::new()
        }
    }
}

// === impl Remembered ===

impl<K> Default for Remembered<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: PartialEq + Clone> Remembered<K> {
    /// A resource has this key, and this value if it is valid; or its key cannot be told. Gives the updates of the
    /// key that it had and of the one that it has.
    pub(super) fn set<V>(
        &mut self,
        name: &str,
        entry: Option<(K, Option<V>)>,
        update: impl Fn(K, Option<V>) -> Update,
    ) -> Vec<Update> {
        let Some((key, value)) = entry else {
            return super::moved(self.remove(name), update);
        };
        let old = self.0.insert(name.to_owned(), key.clone());
        let left = old.filter(|old| *old != key);
        let mut updates = super::moved(left, &update);
        updates.push(update(key, value));
        updates
    }

    /// Whether a resource has a key.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A resource is gone. Gives the key that it had.
    pub(super) fn remove(&mut self, name: &str) -> Option<K> {
        self.0.remove(name)
    }
}

//! Which objects have a label: kept only for labels that selectors were looked up by.

use hashbrown::{HashMap, HashTable};

use crate::labels;
use crate::selectors::{Filed, spread};

/// The objects that have each tracked label, by hash of its value.
#[derive(Default)]
pub(crate) struct Postings {
    by_name: HashMap<u32, HashTable<(u32, u32)>>,
}

impl Postings {
    pub(crate) fn is_tracked(&self, name: u32) -> bool {
        self.by_name.contains_key(&name)
    }

    /// Starts to track a label; the caller then inserts all objects there are.
    pub(crate) fn track(&mut self, name: u32) {
        self.by_name.entry(name).or_default();
    }

    pub(crate) fn untrack(&mut self, name: u32) -> bool {
        self.by_name.remove(&name).is_some()
    }

    /// Adds an object under those of its labels for which `wanted` holds.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        packed: &[u8],
        object: u32,
        hash: impl Fn(&[u8]) -> u32,
        wanted: impl Fn(u32) -> bool,
    ) {
        if self.by_name.is_empty() {
            return;
        }
        for (name, value) in labels::iter(packed) {
            if !wanted(name) {
                continue;
            }
            if let Some(objects) = self.by_name.get_mut(&name) {
                let hash = hash(value);
                objects.insert_unique(spread(hash), (hash, object), |(hash, _)| spread(*hash));
            }
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, packed: &[u8], object: u32, hash: impl Fn(&[u8]) -> u32) {
        if self.by_name.is_empty() {
            return;
        }
        for (name, value) in labels::iter(packed) {
            if let Some(objects) = self.by_name.get_mut(&name) {
                let hash = hash(value);
                if let Ok(found) = objects.find_entry(spread(hash), |held| *held == (hash, object))
                {
                    found.remove();
                }
            }
        }
    }

    /// Calls with the objects that have the label under which a selector is filed.
    pub(crate) fn find(&self, filed: &Filed, mut call: impl FnMut(u32)) {
        let Some(objects) = filed.name().and_then(|name| self.by_name.get(&name)) else {
            return;
        };
        if matches!(filed, Filed::Present(_)) {
            objects.iter().for_each(|(_, object)| call(*object));
        }
        for &hash in filed.hashes() {
            let same = objects.iter_hash(spread(hash));
            same.filter(|(held, _)| *held == hash)
                .for_each(|(_, object)| call(*object));
        }
    }
}

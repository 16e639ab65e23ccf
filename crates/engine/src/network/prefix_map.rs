//! A map by IP prefix that finds what covers a prefix and what is inside it.
//!
//! The order of `(address, length)` is that of a walk through the trie: everything inside a prefix follows it in one
//! run. What covers a prefix is looked up one length at a time, for the lengths that occur; in practice those are the
//! pools', the blocks' and that of a single address.
//!
//! # Invariants
//! - Keys have no bits set beyond their length. Callers see to it with [`IpNet::trunc`].
//! - `lengths` counts the keys of each family and length.

use std::collections::BTreeMap;

use ipnet::IpNet;

/// See the module.
#[derive(Debug)]
pub(super) struct PrefixMap<V> {
    entries: BTreeMap<IpNet, V>,
    lengths: [BTreeMap<u8, usize>; 2],
}

// === impl PrefixMap ===

impl<V> Default for PrefixMap<V> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            lengths: [BTreeMap::new(), BTreeMap::new()],
        }
    }
}

impl<V> PrefixMap<V> {
    /// The value at a prefix.
    pub(super) fn get(&self, prefix: &IpNet) -> Option<&V> {
        self.entries.get(prefix)
    }

    /// All prefixes.
    pub(super) fn keys(&self) -> impl Iterator<Item = IpNet> {
        self.entries.keys().copied()
    }

    /// The prefixes inside one, itself among them.
    pub(super) fn inside(&self, prefix: IpNet) -> impl Iterator<Item = IpNet> {
        let last = IpNet::from(prefix.broadcast());
        self.entries.range(prefix..=last).map(|(key, _)| *key)
    }

    /// What covers a prefix and what is at it, from the shortest to the longest.
    pub(super) fn path(&self, prefix: IpNet) -> impl Iterator<Item = (IpNet, &V)> {
        self.lengths[family(prefix)]
            .range(..=prefix.prefix_len())
            .filter_map(move |(length, _)| {
                let key = IpNet::new(prefix.addr(), *length).ok()?.trunc();
                self.entries.get(&key).map(|value| (key, value))
            })
    }
}

impl<V: Default> PrefixMap<V> {
    /// Changes the value at a prefix, which is removed if it is then empty. The answer is that of `change`.
    pub(super) fn update<R>(
        &mut self,
        prefix: IpNet,
        is_empty: impl Fn(&V) -> bool,
        change: impl FnOnce(&mut V) -> R,
    ) -> R {
        let lengths = &mut self.lengths[family(prefix)];
        let value = self.entries.entry(prefix).or_insert_with(|| {
            *lengths.entry(prefix.prefix_len()).or_default() += 1;
            V::default()
        });
        let result = change(value);
        if is_empty(value) {
            self.entries.remove(&prefix);
            if let Some(count) = lengths.get_mut(&prefix.prefix_len()) {
                *count -= 1;
                if *count == 0 {
                    lengths.remove(&prefix.prefix_len());
                }
            }
        }
        result
    }
}

fn family(prefix: IpNet) -> usize {
    match prefix {
        IpNet::V4(_) => 0,
        IpNet::V6(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(prefixes: &[&str]) -> PrefixMap<bool> {
        let mut map = PrefixMap::default();
        for prefix in prefixes {
            map.update(prefix.parse().unwrap(), |full| !full, |full| *full = true);
        }
        map
    }

    fn text(prefixes: impl Iterator<Item = IpNet>) -> Vec<String> {
        prefixes.map(|prefix| prefix.to_string()).collect()
    }

    #[test]
    fn finds_what_covers_a_prefix_and_what_is_inside() {
        let map = map(&[
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.0.0.0/16",
            "10.0.0.0/32",
            "10.0.255.255/32",
            "10.1.0.0/16",
            "::/0",
        ]);
        let net: IpNet = "10.0.0.0/16".parse().unwrap();
        assert_eq!(
            text(map.inside(net)),
            ["10.0.0.0/16", "10.0.0.0/32", "10.0.255.255/32"]
        );
        let address: IpNet = "10.0.255.255/32".parse().unwrap();
        assert_eq!(
            text(map.path(address).map(|(key, _)| key)),
            ["0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/16", "10.0.255.255/32"]
        );
        assert_eq!(text(map.inside("::/0".parse().unwrap())), ["::/0"]);
    }

    #[test]
    fn an_empty_value_leaves_nothing_behind() {
        let mut map = map(&["10.0.0.0/8", "fd00::/8"]);
        map.update(
            "10.0.0.0/8".parse().unwrap(),
            |full| !full,
            |full| *full = false,
        );
        assert_eq!(text(map.keys()), ["fd00::/8"]);
        assert!(map.lengths[0].is_empty());
    }
}

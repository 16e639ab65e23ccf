//! The chains of one IP version: which there are, which are needed, and which changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use tortie_rules::{Chain, Renderer, Table};

use crate::change::ChainKey;

/// All chains.
///
/// A chain is programmed while a programmed chain refers to it. A chain that is referred to and not known denies all:
/// what should decide about the packet is missing.
#[derive(Debug, Default)]
pub(super) struct Chains {
    entries: HashMap<ChainKey, Entry>,
    references: HashMap<ChainKey, u32>,
    changed: BTreeSet<ChainKey>,
    removed: BTreeSet<ChainKey>,
    /// Chains that are referred to, and that nobody made or whose rules were handed out long ago.
    missing: BTreeSet<ChainKey>,
    /// Chains that something referred to; another may yet do so before changes are taken.
    idle: BTreeSet<ChainKey>,
    in_kernel: HashSet<ChainKey>,
    /// Chains that are kept to be compared.
    small: HashMap<ChainKey, Chain>,
}

#[derive(Debug)]
struct Entry {
    /// The chain, until it is handed out.
    value: Option<Chain>,
    is_programmed: bool,
    is_root: bool,
    is_placeholder: bool,
    targets: Box<[ChainKey]>,
}

impl Chains {
    /// A chain that is needed in any case.
    pub(super) fn put_root(&mut self, chain: Chain) {
        self.insert(chain, true);
    }

    /// Chains that the kernel's own lead to.
    pub(super) fn make_roots(&mut self, roots: &[(Table, Arc<str>)]) {
        for (table, name) in roots {
            let key = ChainKey {
                table: *table,
                name: Arc::clone(name),
            };
            self.refer(&[key]);
        }
    }

    /// A chain that is often the same as before.
    pub(super) fn put_if_different(&mut self, chain: Chain) {
        let key = ChainKey::of(&chain);
        if self.small.get(&key) != Some(&chain) {
            self.small.insert(key, chain.clone());
            self.insert(chain, false);
        }
    }

    /// A chain that is needed if another one refers to it.
    pub(super) fn put(&mut self, chain: Chain) {
        self.insert(chain, false);
    }

    /// A chain is gone.
    pub(super) fn remove(&mut self, table: Table, name: &Arc<str>) {
        let key = ChainKey {
            table,
            name: Arc::clone(name),
        };
        let Some(entry) = self.entries.remove(&key) else {
            return;
        };
        self.changed.remove(&key);
        self.missing.remove(&key);
        if entry.is_programmed {
            self.release(&entry.targets);
        }
        if self.is_referred_to(&key) {
            self.missing.insert(key);
        } else if self.in_kernel.contains(&key) {
            self.removed.insert(key);
        }
    }

    /// Chains that must be put before changes are taken.
    pub(super) fn take_missing(&mut self) -> BTreeSet<ChainKey> {
        std::mem::take(&mut self.missing)
    }

    /// Of chains that were missing, those that nobody put deny all.
    pub(super) fn deny_unknown(&mut self, missing: BTreeSet<ChainKey>) {
        for key in missing {
            let entry = self.entries.get(&key);
            let is_known = entry.is_some_and(|entry| entry.value.is_some());
            if !is_known && self.is_referred_to(&key) {
                self.add_placeholder(&key);
            }
        }
    }

    /// What changed since the last time: chains to write, and chains to remove.
    pub(super) fn take_changes(&mut self) -> (Vec<Chain>, Vec<ChainKey>) {
        while let Some(key) = self.idle.pop_first() {
            if !self.is_referred_to(&key) {
                self.unprogram(&key);
            }
        }
        let mut written = Vec::with_capacity(self.changed.len());
        for key in std::mem::take(&mut self.changed) {
            let entry = self.entries.get_mut(&key);
            if let Some(chain) = entry.and_then(|entry| entry.value.take()) {
                self.in_kernel.insert(key);
                written.push(chain);
            }
        }
        let removed: Vec<ChainKey> = std::mem::take(&mut self.removed).into_iter().collect();
        for key in &removed {
            self.in_kernel.remove(key);
        }
        (written, removed)
    }

    fn insert(&mut self, chain: Chain, is_root: bool) {
        let key = ChainKey::of(&chain);
        self.removed.remove(&key);
        self.missing.remove(&key);
        let targets: Box<[ChainKey]> = chain
            .targets()
            .map(|target| ChainKey {
                table: chain.table,
                name: Arc::clone(target),
            })
            .collect();
        let was = self.entries.remove(&key);
        let is_programmed = is_root || self.is_referred_to(&key);
        if is_programmed {
            self.changed.insert(key.clone());
        }
        self.entries.insert(
            key,
            Entry {
                value: Some(chain),
                is_programmed,
                is_root,
                is_placeholder: false,
                targets: targets.clone(),
            },
        );
        if is_programmed {
            // New references first, so that what both refer to is not thought to be unused in between.
            self.refer(&targets);
        }
        if let Some(was) = was
            && was.is_programmed
        {
            self.release(&was.targets);
        }
    }

    fn is_referred_to(&self, key: &ChainKey) -> bool {
        self.references.get(key).is_some_and(|count| *count > 0)
    }

    fn refer(&mut self, targets: &[ChainKey]) {
        for key in targets {
            let count = self.references.entry_ref(key).or_default();
            *count += 1;
            if *count > 1 {
                continue;
            }
            match self.entries.get_mut(key) {
                None => {
                    self.missing.insert(key.clone());
                    self.removed.remove(key);
                }
                Some(entry) if !entry.is_programmed => {
                    entry.is_programmed = true;
                    let targets = entry.targets.clone();
                    if entry.value.is_some() {
                        self.changed.insert(key.clone());
                    } else {
                        self.missing.insert(key.clone());
                    }
                    self.removed.remove(key);
                    self.refer(&targets);
                }
                Some(_) => {}
            }
        }
    }

    fn release(&mut self, targets: &[ChainKey]) {
        for key in targets {
            let Some(count) = self.references.get_mut(key) else {
                continue;
            };
            *count -= 1;
            if *count > 0 {
                continue;
            }
            self.references.remove(key);
            self.idle.insert(key.clone());
        }
    }

    /// Nothing refers to a chain any more.
    fn unprogram(&mut self, key: &ChainKey) {
        let is_root = |entry: &Entry| entry.is_root;
        if self.entries.get(key).is_some_and(is_root) {
            return;
        }
        self.changed.remove(key);
        self.missing.remove(key);
        if self.in_kernel.contains(key) {
            self.removed.insert(key.clone());
        }
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let was_programmed = std::mem::replace(&mut entry.is_programmed, false);
        let targets = entry.targets.clone();
        if entry.is_placeholder {
            self.entries.remove(key);
        }
        if was_programmed {
            self.release(&targets);
        }
    }

    fn add_placeholder(&mut self, key: &ChainKey) {
        tracing::error!(
            chain = %key.name,
            "A chain that is referred to is not known; it denies all packets until it is"
        );
        let deny = Renderer::stand_in(key.table, Arc::clone(&key.name), "Missing chain");
        self.insert(deny, false);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.is_placeholder = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use tortie_rules::rule::{Action, Rule};

    use super::*;

    fn chain(name: &str, targets: &[&str]) -> Chain {
        let jump = |target: &&str| Rule::always(Action::Jump((*target).into()));
        Chain::new(Table::Filter, name, targets.iter().map(jump).collect())
    }

    /// The names of what is written and of what is removed.
    fn changes(chains: &mut Chains) -> (Vec<String>, Vec<String>) {
        let missing = chains.take_missing();
        chains.deny_unknown(missing);
        let (written, removed) = chains.take_changes();
        let written = written.iter().map(|chain| chain.name.to_string());
        let removed = removed.iter().map(|key| key.name.to_string());
        (written.collect(), removed.collect())
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_nothing_refers_to_is_not_programmed() {
        let mut chains = Chains::default();
        chains.put(chain("b", &["c"]));
        chains.put(chain("c", &[]));
        assert_eq!(changes(&mut chains), (vec![], vec![]));
        chains.put_root(chain("a", &["b"]));
        assert_eq!(changes(&mut chains), (names(&["a", "b", "c"]), vec![]));
        chains.put_root(chain("a", &["c"]));
        assert_eq!(changes(&mut chains), (names(&["a"]), names(&["b"])));
        chains.put_root(chain("a", &["b"]));
        let missing: Vec<ChainKey> = chains.take_missing().into_iter().collect();
        assert_eq!(missing, [ChainKey::of(&chain("b", &[]))]);
        chains.put(chain("b", &["c"]));
        assert_eq!(changes(&mut chains), (names(&["a", "b"]), vec![]));
    }

    #[test]
    fn what_is_referred_to_and_not_known_denies_all_until_it_is() {
        let mut chains = Chains::default();
        chains.put_root(chain("a", &["b"]));
        assert_eq!(changes(&mut chains), (names(&["a", "b"]), vec![]));
        chains.put(chain("b", &[]));
        assert_eq!(changes(&mut chains), (names(&["b"]), vec![]));
        chains.remove(Table::Filter, &"b".into());
        assert_eq!(changes(&mut chains), (names(&["b"]), vec![]));
        chains.remove(Table::Filter, &"a".into());
        assert_eq!(changes(&mut chains), (vec![], names(&["a", "b"])));
    }

    #[test]
    fn what_is_put_while_nothing_refers_to_it_goes() {
        let mut chains = Chains::default();
        chains.put_root(chain("a", &["b"]));
        chains.put(chain("b", &[]));
        changes(&mut chains);
        chains.put_root(chain("a", &[]));
        chains.put(chain("b", &[]));
        assert_eq!(changes(&mut chains), (names(&["a"]), names(&["b"])));
        chains.put_root(chain("a", &["b"]));
        assert_eq!(changes(&mut chains), (names(&["a", "b"]), vec![]));
    }

    #[test]
    fn what_is_referred_to_again_at_once_stays() {
        let mut chains = Chains::default();
        chains.put_root(chain("a", &["b"]));
        chains.put(chain("b", &[]));
        changes(&mut chains);
        chains.put_root(chain("a", &[]));
        chains.put_root(chain("c", &["b"]));
        assert_eq!(changes(&mut chains), (names(&["a", "c"]), vec![]));
    }

    #[test]
    fn what_goes_before_what_refers_to_it_is_simply_gone() {
        let mut chains = Chains::default();
        chains.put_root(chain("a", &["b"]));
        chains.put(chain("b", &[]));
        changes(&mut chains);
        chains.remove(Table::Filter, &"b".into());
        chains.put_root(chain("a", &[]));
        assert_eq!(changes(&mut chains), (names(&["a"]), names(&["b"])));
    }
}

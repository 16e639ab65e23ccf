//! The chains of one IP version: which there are, which are needed, and which changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use tortie_rules::rule::{Action, Rule};
use tortie_rules::{Chain, Table};

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
    /// Chains that are needed again and whose rules were handed out long ago.
    missing: BTreeSet<ChainKey>,
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
            self.add_placeholder(key);
        } else if self.in_kernel.contains(&key) {
            self.removed.insert(key);
        }
    }

    /// Chains that must be put again before changes are taken.
    pub(super) fn take_missing(&mut self) -> BTreeSet<ChainKey> {
        std::mem::take(&mut self.missing)
    }

    /// What changed since the last time: chains to write, and chains to remove.
    pub(super) fn take_changes(&mut self) -> (Vec<Chain>, Vec<ChainKey>) {
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
                None => self.add_placeholder(key.clone()),
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
            self.unprogram(key);
        }
    }

    /// Nothing refers to a chain any more.
    fn unprogram(&mut self, key: &ChainKey) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if entry.is_placeholder {
            let name = Arc::clone(&key.name);
            self.remove(key.table, &name);
            return;
        }
        if entry.is_root || !entry.is_programmed {
            return;
        }
        entry.is_programmed = false;
        let targets = entry.targets.clone();
        self.changed.remove(key);
        self.missing.remove(key);
        if self.in_kernel.contains(key) {
            self.removed.insert(key.clone());
        }
        self.release(&targets);
    }

    fn add_placeholder(&mut self, key: ChainKey) {
        tracing::error!(
            chain = %key.name,
            "a chain that is referred to is not known; it denies all packets until it is"
        );
        let deny = Rule::always(Action::Drop).note("Missing chain");
        let chain = Chain::new(key.table, Arc::clone(&key.name), vec![deny]);
        self.changed.insert(key.clone());
        self.removed.remove(&key);
        self.entries.insert(
            key,
            Entry {
                value: Some(chain),
                is_programmed: true,
                is_root: false,
                is_placeholder: true,
                targets: Box::default(),
            },
        );
    }
}

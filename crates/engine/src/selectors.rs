//! Selectors in use, found by the labels that could satisfy them.
//!
//! Equal selectors are one entry, with an owner's data. Each entry is filed under one label that it cannot do without:
//! under a value of it, under its presence, or, where there is no such label, among those that every object is held
//! against. An object is then compared only with the selectors filed under labels that it has.
//!
//! A new selector is *fresh* until [`Selectors::settle`]: the owner first finds what matches all fresh ones at once.

use std::hash::BuildHasher as _;

use crate::slab::Slab;
use hashbrown::{DefaultHashBuilder, HashTable};
use tortie_selector::{Comparison, Node, Restriction, Selector};

use crate::id_set::IdSet;
use crate::labels::LabelView;
use crate::names::Names;
use crate::program;

/// The number of an entry.
pub(crate) type SelectorIdx = u32;

/// How many entries under one value are counted before the label is taken as crowded.
const CROWDED: usize = 64;

/// Selectors in use, with data of type `T` each.
pub(crate) struct Selectors<T> {
    entries: Slab<Entry<T>>,
    by_program: HashTable<SelectorIdx>,
    settled: Files,
    fresh: Files,
    fresh_entries: Vec<SelectorIdx>,
    hasher: DefaultHashBuilder,
}

struct Entry<T> {
    program: Box<[u8]>,
    filed: Filed,
    is_fresh: bool,
    owner: T,
}

/// Where an entry is filed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filed {
    /// Nowhere: nothing can match.
    Nowhere,
    /// Among those that every object is held against.
    Everywhere,
    /// Under the presence of a label.
    Present(u32),
    /// Under a value of a label, by its hash.
    Value(u32, u32),
    /// Under several values of a label, by their hashes.
    Values(Box<(u32, Vec<u32>)>),
}

#[derive(Default)]
struct Files {
    by_name: Vec<File>,
    everywhere: IdSet,
}

#[derive(Default)]
struct File {
    present: IdSet,
    values: HashTable<(u32, SelectorIdx)>,
}

// === impl Selectors ===

impl<T> Default for Selectors<T> {
    fn default() -> Self {
        Self {
            entries: Slab::default(),
            by_program: HashTable::new(),
            settled: Files::default(),
            fresh: Files::default(),
            fresh_entries: Vec::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl<T> Selectors<T> {
    /// The entry of a selector, made with `owner` if there is none.
    pub(crate) fn acquire(
        &mut self,
        selector: &Selector,
        names: &mut Names,
        owner: impl FnOnce() -> T,
    ) -> SelectorIdx {
        let program = program::compile(selector, names);
        let hash = self.hasher.hash_one(&program);
        if let Some(&found) = self
            .by_program
            .find(hash, |idx| self.entries[*idx as usize].program == program)
        {
            program::release(&program, names);
            return found;
        }
        let filed = self.choose_file(selector, names);
        let idx = crate::index(self.entries.insert(Entry {
            program,
            filed: filed.clone(),
            is_fresh: true,
            owner: owner(),
        }));
        self.by_program.insert_unique(hash, idx, |idx| {
            self.hasher.hash_one(&self.entries[*idx as usize].program)
        });
        self.fresh.insert(idx, &filed);
        self.fresh_entries.push(idx);
        idx
    }

    pub(crate) fn owner(&self, idx: SelectorIdx) -> &T {
        &self.entries[idx as usize].owner
    }

    /// The data of an entry, if there is such an entry.
    pub(crate) fn get(&self, idx: SelectorIdx) -> Option<&T> {
        self.entries.get(idx as usize).map(|entry| &entry.owner)
    }

    pub(crate) fn owner_mut(&mut self, idx: SelectorIdx) -> &mut T {
        &mut self.entries[idx as usize].owner
    }

    /// Removes an entry; gives the label name under which nothing is filed any more, if so.
    pub(crate) fn remove(&mut self, idx: SelectorIdx, names: &mut Names) -> Option<u32> {
        let entry = self.entries.remove(idx as usize);
        let hash = self.hasher.hash_one(&entry.program);
        if let Ok(found) = self.by_program.find_entry(hash, |held| *held == idx) {
            found.remove();
        }
        if entry.is_fresh {
            self.fresh.remove(idx, &entry.filed);
            self.fresh_entries.retain(|held| *held != idx);
        } else {
            self.settled.remove(idx, &entry.filed);
        }
        program::release(&entry.program, names);
        let name = entry.filed.name()?;
        (!self.settled.uses(name) && !self.fresh.uses(name)).then_some(name)
    }

    /// The settled selectors that labels satisfy, in order.
    #[inline]
    pub(crate) fn matches(&self, labels: &impl LabelView, out: &mut Vec<SelectorIdx>) {
        self.matches_in(&self.settled, labels, out);
    }

    /// The fresh selectors that labels satisfy, in order.
    pub(crate) fn fresh_matches(&self, labels: &impl LabelView, out: &mut Vec<SelectorIdx>) {
        self.matches_in(&self.fresh, labels, out);
    }

    fn matches_in(&self, files: &Files, labels: &impl LabelView, out: &mut Vec<SelectorIdx>) {
        out.clear();
        out.extend(files.everywhere.iter());
        if !files.by_name.is_empty() {
            labels.for_each(|name, value| {
                let Some(file) = files.by_name.get(name as usize) else {
                    return;
                };
                out.extend(file.present.iter());
                if !file.values.is_empty() {
                    let hash = self.value_hash(value);
                    let same = file.values.iter_hash(spread(hash));
                    out.extend(same.filter(|(held, _)| *held == hash).map(|(_, idx)| *idx));
                }
            });
        }
        out.retain(|idx| program::matches(&self.entries[*idx as usize].program, labels));
        out.sort_unstable();
        out.dedup();
    }

    /// Whether labels satisfy one selector.
    pub(crate) fn is_match(&self, idx: SelectorIdx, labels: &impl LabelView) -> bool {
        program::matches(&self.entries[idx as usize].program, labels)
    }

    /// Where a selector is filed.
    pub(crate) fn filed(&self, idx: SelectorIdx) -> &Filed {
        &self.entries[idx as usize].filed
    }

    pub(crate) fn is_fresh(&self, idx: SelectorIdx) -> bool {
        self.entries[idx as usize].is_fresh
    }

    /// Whether any selector is fresh.
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh_entries.is_empty()
    }

    /// Whether any selector is settled.
    pub(crate) fn has_settled(&self) -> bool {
        self.entries.len() > self.fresh_entries.len()
    }

    /// Makes the fresh selectors settled.
    pub(crate) fn settle(&mut self) {
        for idx in std::mem::take(&mut self.fresh_entries) {
            let entry = &mut self.entries[idx as usize];
            entry.is_fresh = false;
            self.settled.insert(idx, &entry.filed);
        }
        self.fresh = Files::default();
    }

    /// The hash under which a value is filed.
    #[inline]
    pub(crate) fn value_hash(&self, value: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(value);
        (hash >> 32) as u32
    }

    /// The label that the fewest other selectors are filed under; at equal crowding one with values.
    fn choose_file(&self, selector: &Selector, names: &Names) -> Filed {
        // A selector of a single term leaves no choice.
        match selector.root().node() {
            Node::Has { label } => return names.find(label).map_or(Filed::Nowhere, Filed::Present),
            Node::Compare {
                comparison: Comparison::Equal,
                label,
                value,
            } => {
                let hash = self.value_hash(value.as_bytes());
                return names
                    .find(label)
                    .map_or(Filed::Nowhere, |name| Filed::Value(name, hash));
            }
            _ => {}
        }
        let restrictions = selector.label_restrictions();
        if !restrictions.can_match() {
            return Filed::Nowhere;
        }
        let mut best = Filed::Everywhere;
        let mut best_crowding = usize::MAX;
        for (label, restriction) in restrictions.iter() {
            // All labels of the program are in use by now.
            let Some(name) = names.find(label) else {
                continue;
            };
            let (filed, crowding) = match restriction {
                Restriction::Absent => continue,
                Restriction::Present => {
                    let filed = Filed::Present(name);
                    let crowding = self.settled.crowding(&filed) + self.fresh.crowding(&filed);
                    (filed, 2 * crowding + 1)
                }
                Restriction::OneOf(values) => {
                    let mut hashes = values.iter().map(|value| self.value_hash(value.as_bytes()));
                    let filed = match (values.len(), hashes.next()) {
                        (1, Some(hash)) => Filed::Value(name, hash),
                        (_, first) => Filed::Values(Box::new((
                            name,
                            first.into_iter().chain(hashes).collect(),
                        ))),
                    };
                    let crowding = self.settled.crowding(&filed) + self.fresh.crowding(&filed);
                    (filed, 2 * crowding)
                }
            };
            if crowding < best_crowding {
                best_crowding = crowding;
                best = filed;
            }
        }
        best
    }
}

// === impl Filed ===

impl Filed {
    /// The label that it is filed under.
    pub(crate) fn name(&self) -> Option<u32> {
        match self {
            Self::Nowhere | Self::Everywhere => None,
            Self::Present(name) | Self::Value(name, _) => Some(*name),
            Self::Values(values) => Some(values.0),
        }
    }

    /// The hashes of the values that it is filed under.
    pub(crate) fn hashes(&self) -> &[u32] {
        match self {
            Self::Value(_, hash) => std::slice::from_ref(hash),
            Self::Values(values) => &values.1,
            Self::Nowhere | Self::Everywhere | Self::Present(_) => &[],
        }
    }
}

// === impl Files ===

impl Files {
    fn insert(&mut self, idx: SelectorIdx, filed: &Filed) {
        let Some(name) = filed.name() else {
            if *filed == Filed::Everywhere {
                self.everywhere.insert(idx);
            }
            return;
        };
        let at = name as usize;
        if self.by_name.len() <= at {
            self.by_name.resize_with(at + 1, File::default);
        }
        let file = &mut self.by_name[at];
        if matches!(filed, Filed::Present(_)) {
            file.present.insert(idx);
        }
        for &hash in filed.hashes() {
            file.values
                .insert_unique(spread(hash), (hash, idx), |(hash, _)| spread(*hash));
        }
    }

    fn remove(&mut self, idx: SelectorIdx, filed: &Filed) {
        let Some(name) = filed.name() else {
            self.everywhere.remove(idx);
            return;
        };
        let Some(file) = self.by_name.get_mut(name as usize) else {
            return;
        };
        file.present.remove(idx);
        for &hash in filed.hashes() {
            if let Ok(found) = file
                .values
                .find_entry(spread(hash), |held| *held == (hash, idx))
            {
                found.remove();
            }
        }
        if file.values.is_empty() {
            file.values = HashTable::new();
        }
    }

    fn uses(&self, name: u32) -> bool {
        self.by_name
            .get(name as usize)
            .is_some_and(|file| !file.present.is_empty() || !file.values.is_empty())
    }

    /// How many are filed in the same place.
    fn crowding(&self, filed: &Filed) -> usize {
        let Some(file) = filed
            .name()
            .and_then(|name| self.by_name.get(name as usize))
        else {
            return 0;
        };
        if matches!(filed, Filed::Present(_)) {
            return file.present.len();
        }
        let count = |hash: u32| {
            let same = file.values.iter_hash(spread(hash));
            same.filter(|(held, _)| *held == hash).take(CROWDED).count()
        };
        filed.hashes().iter().map(|hash| count(*hash)).sum()
    }
}

/// Makes the 64 bits that a hash table wants of the 32 that are kept.
#[inline]
pub(crate) fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

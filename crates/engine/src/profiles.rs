//! Profiles: labels that endpoints inherit, and rules for when no policy decides.
//!
//! A profile has an entry here while it exists or anything refers to it.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use crate::slab::Slab;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::id_set::IdSet;
use crate::labels::{self, LabelView};

/// The number of a profile.
pub(crate) type ProfileIdx = u32;

/// All profiles, by name.
#[derive(Default)]
pub(crate) struct Profiles {
    slots: Slab<Profile>,
    by_name: HashTable<ProfileIdx>,
    hasher: DefaultHashBuilder,
}

pub(crate) struct Profile {
    pub(crate) name: Arc<str>,
    /// The labels that it gives, packed.
    pub(crate) labels: Box<[u8]>,
    /// Its rules, packed; none while it does not exist.
    pub(crate) rules: Option<Box<[u8]>>,
    /// The items that refer to it.
    pub(crate) items: IdSet,
    /// How often local endpoints refer to it.
    pub(crate) local_uses: u32,
    /// Whether there may be something to send.
    pub(crate) dirty: bool,
    /// What the data plane was sent; none if nothing.
    pub(crate) sent: Option<Box<SentRules>>,
}

/// Rules that the data plane has.
pub(crate) struct SentRules {
    /// The rules in packed form; none for those that stand in for a missing profile.
    pub(crate) rules: Option<Box<[u8]>>,
    /// The sets that they use, in the order in which they do.
    pub(crate) sets: Box<[u32]>,
}

/// The labels of an item together with those that it inherits; its own come first, then its profiles' in order.
#[derive(Clone, Copy)]
pub(crate) struct ItemLabels<'a> {
    pub(crate) own: &'a [u8],
    pub(crate) parents: &'a [u8],
    pub(crate) profiles: &'a Profiles,
}

// === impl Profiles ===

impl Profiles {
    /// The entry of a name, made if there is none.
    pub(crate) fn entry(&mut self, name: &str) -> ProfileIdx {
        let hash = self.hasher.hash_one(name);
        if let Some(idx) = self.find_hashed(hash, name) {
            return idx;
        }
        let idx = crate::index(self.slots.insert(Profile {
            name: name.into(),
            labels: Box::default(),
            rules: None,
            items: IdSet::default(),
            local_uses: 0,
            dirty: false,
            sent: None,
        }));
        self.by_name.insert_unique(hash, idx, |idx| {
            self.hasher.hash_one(&*self.slots[*idx as usize].name)
        });
        idx
    }

    pub(crate) fn find(&self, name: &str) -> Option<ProfileIdx> {
        self.find_hashed(self.hasher.hash_one(name), name)
    }

    fn find_hashed(&self, hash: u64, name: &str) -> Option<ProfileIdx> {
        self.by_name
            .find(hash, |idx| *self.slots[*idx as usize].name == *name)
            .copied()
    }

    #[inline]
    pub(crate) fn get(&self, idx: ProfileIdx) -> &Profile {
        &self.slots[idx as usize]
    }

    pub(crate) fn contains(&self, idx: ProfileIdx) -> bool {
        self.slots.contains(idx as usize)
    }

    pub(crate) fn get_mut(&mut self, idx: ProfileIdx) -> &mut Profile {
        &mut self.slots[idx as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ProfileIdx, &Profile)> {
        self.slots
            .iter()
            .map(|(idx, profile)| (crate::index(idx), profile))
    }

    /// Forgets an entry that nothing needs.
    pub(crate) fn tidy(&mut self, idx: ProfileIdx) {
        let profile = &self.slots[idx as usize];
        let is_needed = profile.rules.is_some()
            || !profile.items.is_empty()
            || profile.dirty
            || profile.sent.is_some();
        if is_needed {
            return;
        }
        let hash = self.hasher.hash_one(&*profile.name);
        if let Ok(entry) = self.by_name.find_entry(hash, |held| *held == idx) {
            entry.remove();
        }
        self.slots.remove(idx as usize);
    }
}

// === impl ItemLabels ===

impl LabelView for ItemLabels<'_> {
    #[inline]
    fn get(&self, name: u32) -> Option<&[u8]> {
        labels::get(self.own, name).or_else(|| {
            crate::items::parents(self.parents)
                .find_map(|profile| labels::get(&self.profiles.get(profile).labels, name))
        })
    }

    #[inline]
    fn for_each(&self, mut call: impl FnMut(u32, &[u8])) {
        for (name, value) in labels::iter(self.own) {
            call(name, value);
        }
        for profile in crate::items::parents(self.parents) {
            for (name, value) in labels::iter(&self.profiles.get(profile).labels) {
                call(name, value);
            }
        }
    }
}

//! Names that occur again and again, kept once each and known by a number.

use std::hash::BuildHasher as _;

use crate::slab::Slab;
use hashbrown::{DefaultHashBuilder, HashTable};

/// Names in use, each with a number that stays the same as long as the name is in use.
#[derive(Default)]
pub(crate) struct Names {
    slots: Slab<Name>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

struct Name {
    text: Box<str>,
    uses: u32,
}

impl Names {
    /// The number of a name, which is then used once more.
    #[inline]
    pub(crate) fn acquire(&mut self, text: &str) -> u32 {
        let hash = self.hasher.hash_one(text);
        if let Some(&id) = self
            .table
            .find(hash, |id| *self.slots[*id as usize].text == *text)
        {
            self.slots[id as usize].uses += 1;
            return id;
        }
        let id = crate::index(self.slots.insert(Name {
            text: text.into(),
            uses: 1,
        }));
        self.table.insert_unique(hash, id, |id| {
            self.hasher.hash_one(&*self.slots[*id as usize].text)
        });
        id
    }

    /// One more use of a name that is in use.
    #[inline]
    pub(crate) fn retain(&mut self, id: u32) {
        self.slots[id as usize].uses += 1;
    }

    /// One use less; the last gives the number free.
    #[inline]
    pub(crate) fn release(&mut self, id: u32) {
        let name = &mut self.slots[id as usize];
        name.uses -= 1;
        if name.uses == 0 {
            let hash = self.hasher.hash_one(&*name.text);
            if let Ok(entry) = self.table.find_entry(hash, |held| *held == id) {
                entry.remove();
            }
            self.slots.remove(id as usize);
        }
    }

    /// The number of a name, if it is in use.
    #[inline]
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.table
            .find(hash, |id| *self.slots[*id as usize].text == *text)
            .copied()
    }

    /// The name of a number in use.
    pub(crate) fn text(&self, id: u32) -> &str {
        &self.slots[id as usize].text
    }
}

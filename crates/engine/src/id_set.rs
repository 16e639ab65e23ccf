//! A set of small numbers that costs nothing extra while it is small, as nearly all of them are.

use std::collections::BTreeSet;

const INLINE: usize = 3;

/// A set of numbers.
#[derive(Debug, Clone)]
#[expect(
    clippy::box_collection,
    reason = "keeps the many small sets at 16 bytes"
)]
pub(crate) enum IdSet {
    Few { length: u8, ids: [u32; INLINE] },
    Many(Box<BTreeSet<u32>>),
}

impl Default for IdSet {
    fn default() -> Self {
        Self::Few {
            length: 0,
            ids: [0; INLINE],
        }
    }
}

impl IdSet {
    /// Adds a number; whether it was not there.
    pub(crate) fn insert(&mut self, id: u32) -> bool {
        match self {
            Self::Few { length, ids } => {
                let used = usize::from(*length);
                if ids[..used].contains(&id) {
                    return false;
                }
                if used < INLINE {
                    ids[used] = id;
                    *length += 1;
                } else {
                    let mut many: BTreeSet<u32> = ids.iter().copied().collect();
                    many.insert(id);
                    *self = Self::Many(Box::new(many));
                }
                true
            }
            Self::Many(ids) => ids.insert(id),
        }
    }

    /// Takes a number out; whether it was there.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        match self {
            Self::Few { length, ids } => {
                let used = usize::from(*length);
                let Some(at) = ids[..used].iter().position(|held| *held == id) else {
                    return false;
                };
                ids[at] = ids[used - 1];
                *length -= 1;
                true
            }
            Self::Many(ids) => {
                let was_there = ids.remove(&id);
                if ids.is_empty() {
                    *self = Self::default();
                }
                was_there
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few { length, .. } => usize::from(*length),
            Self::Many(ids) => ids.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (few, many) = match self {
            Self::Few { length, ids } => (&ids[..usize::from(*length)], None),
            Self::Many(ids) => (&[][..], Some(ids)),
        };
        few.iter()
            .copied()
            .chain(many.into_iter().flat_map(|ids| ids.iter().copied()))
    }
}

//! Numbered places for values of one type.
//!
//! Unlike one growing vector it never copies what it holds and never reserves as much again as it uses, which with a
//! hundred thousand policies is the difference of many megabytes.

use std::ops::{Index, IndexMut};

/// How many places are made at once, as a power of two.
const CHUNK_BITS: usize = 9;
const CHUNK: usize = 1 << CHUNK_BITS;

/// Values by number; the number of a value that goes is given to one that comes.
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<Place<T>>>,
    /// The free place to be used next; the number of all places if there is none.
    next: usize,
    length: usize,
}

enum Place<T> {
    Taken(T),
    /// Free, with the one to be used after it.
    Free(usize),
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            next: 0,
            length: 0,
        }
    }
}

impl<T> Slab<T> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The number that the next value will get.
    pub(crate) fn vacant_key(&self) -> usize {
        self.next
    }

    pub(crate) fn insert(&mut self, value: T) -> usize {
        let key = self.next;
        self.length += 1;
        let (chunk, place) = split(key);
        if chunk == self.chunks.len() {
            // The first chunk grows as needed; most slabs of a small cluster never fill it.
            self.chunks.push(if chunk == 0 {
                Vec::new()
            } else {
                Vec::with_capacity(CHUNK)
            });
        }
        let places = &mut self.chunks[chunk];
        if place == places.len() {
            places.push(Place::Taken(value));
            self.next = key + 1;
        } else if let Place::Free(next) = std::mem::replace(&mut places[place], Place::Taken(value))
        {
            self.next = next;
        }
        key
    }

    /// Takes a value out.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn remove(&mut self, key: usize) -> T {
        let (chunk, place) = split(key);
        match std::mem::replace(&mut self.chunks[chunk][place], Place::Free(self.next)) {
            Place::Taken(value) => {
                self.next = key;
                self.length -= 1;
                value
            }
            Place::Free(_) => unreachable!("numbers are removed once"),
        }
    }

    pub(crate) fn contains(&self, key: usize) -> bool {
        self.get(key).is_some()
    }

    #[inline]
    pub(crate) fn get(&self, key: usize) -> Option<&T> {
        let (chunk, place) = split(key);
        match self.chunks.get(chunk)?.get(place)? {
            Place::Taken(value) => Some(value),
            Place::Free(_) => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: usize) -> Option<&mut T> {
        let (chunk, place) = split(key);
        match self.chunks.get_mut(chunk)?.get_mut(place)? {
            Place::Taken(value) => Some(value),
            Place::Free(_) => None,
        }
    }

    /// The values with their numbers, in order of these.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let places = self.chunks.iter().enumerate().flat_map(|(chunk, places)| {
            let numbered = places.iter().enumerate();
            numbered.map(move |(place, held)| (chunk * CHUNK + place, held))
        });
        places.filter_map(|(key, held)| match held {
            Place::Taken(value) => Some((key, value)),
            Place::Free(_) => None,
        })
    }
}

impl<T> Index<usize> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, key: usize) -> &T {
        self.get(key).expect("a number in use")
    }
}

impl<T> IndexMut<usize> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, key: usize) -> &mut T {
        self.get_mut(key).expect("a number in use")
    }
}

#[inline]
fn split(key: usize) -> (usize, usize) {
    (key >> CHUNK_BITS, key & (CHUNK - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_values_that_went_are_given_again() {
        let mut slab = Slab::default();
        let keys: Vec<usize> = (0..2000).map(|value| slab.insert(value)).collect();
        assert_eq!(keys, (0..2000).collect::<Vec<_>>());
        assert_eq!(slab.remove(700), 700);
        assert_eq!(slab.remove(3), 3);
        assert!(!slab.contains(700));
        assert_eq!(slab.vacant_key(), 3);
        assert_eq!(slab.insert(-1), 3);
        assert_eq!(slab.insert(-2), 700);
        assert_eq!(slab.insert(-3), 2000);
        assert_eq!((slab[3], slab[700], slab.len()), (-1, -2, 2001));
        assert_eq!(slab.iter().count(), 2001);
    }
}

//! Labels in packed form: for each label the number of its name, and its value.

use crate::bytes::{Reader, put_bytes, put_number};
use crate::input::Labels;
use crate::names::Names;

/// Appends labels; their names are then used once more each.
pub(crate) fn pack(labels: &Labels, names: &mut Names, out: &mut Vec<u8>) {
    for (name, value) in labels {
        put_number(out, names.acquire(name));
        put_bytes(out, value.as_bytes());
    }
}

/// Ends the use of the names of packed labels.
pub(crate) fn release(packed: &[u8], names: &mut Names) {
    for (name, _) in iter(packed) {
        names.release(name);
    }
}

/// The labels, with the numbers of their names.
#[inline]
pub(crate) fn iter(packed: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut reader = Reader::new(packed);
    std::iter::from_fn(move || {
        if reader.is_empty() {
            return None;
        }
        Some((reader.number(), reader.bytes()))
    })
}

/// The value of a label.
#[inline]
pub(crate) fn get(packed: &[u8], name: u32) -> Option<&[u8]> {
    iter(packed)
        .find(|(held, _)| *held == name)
        .map(|(_, value)| value)
}

/// Labels that selectors can be held against.
pub(crate) trait LabelView {
    /// The value of a label, by the number of its name.
    fn get(&self, name: u32) -> Option<&[u8]>;

    /// Calls with every label and, where several places give it, every value.
    fn for_each(&self, call: impl FnMut(u32, &[u8]));
}

//! The form of netlink messages: headers, and attributes that may hold attributes.

mod read;
mod write;

pub(crate) use read::{Attribute, Message, attributes, messages};
pub(crate) use write::Writer;

/// The length of a message's header.
pub(crate) const HEADER: usize = 16;

/// Netlink aligns messages and attributes to four bytes.
const fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

//! Operations to be done together.

use std::ops::Range;

use super::number::{control, flag};
use crate::netlink::Writer;

/// Messages and bytes of one datagram. Each message may be answered with an error, and all these answers must fit the
/// receive buffer that anyone may have.
const MAX_MESSAGES: usize = 200;
const MAX_BYTES: usize = 32 << 10;

/// Operations in the order in which they are to be done, each with a number: the first has 0.
///
/// The kernel does each of them for itself, without regard to what becomes of the others.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    messages: Writer,
    /// Where each message ends.
    ends: Vec<usize>,
    first_oversized: Option<usize>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a message.
    pub(crate) fn push(&mut self, kind: u16, flags: u16, fill: impl FnOnce(&mut Writer)) {
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        self.messages
            .message(kind, flag::REQUEST | flags, number, fill);
        if self.messages.is_oversized() && self.first_oversized.is_none() {
            self.first_oversized = Some(self.ends.len());
        }
        self.ends.push(self.messages.len());
    }

    /// The number of the first operation that does not fit a message.
    pub(super) fn first_oversized(&self) -> Option<usize> {
        self.first_oversized
    }

    /// The bytes of an operation's message.
    pub(super) fn message(&self, number: usize) -> &[u8] {
        let Some(end) = self.ends.get(number) else {
            return &[];
        };
        &self.messages.as_bytes()[self.start(number)..*end]
    }

    /// The messages, in parts that are each small enough to be sent at once.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let range = self.datagram_from(next)?;
            next = range.end;
            Some(&self.messages.as_bytes()[self.start(range.start)..self.start(range.end)])
        })
    }

    /// The operations that go into one datagram with operation `first` as the first of them.
    fn datagram_from(&self, first: usize) -> Option<Range<usize>> {
        let rest = self.ends.get(first..).filter(|rest| !rest.is_empty())?;
        let limit = self.start(first) + MAX_BYTES;
        let fitting = rest
            .iter()
            .take(MAX_MESSAGES)
            .take_while(|end| **end <= limit)
            .count();
        Some(first..first + fitting.max(1))
    }

    fn start(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

/// A message that does nothing but be acknowledged: all before it have then been dealt with.
pub(super) fn end_mark(sequence: u32) -> Writer {
    let mut out = Writer::default();
    out.message(
        control::NOTHING,
        flag::REQUEST | flag::ACK,
        sequence,
        |_| {},
    );
    out
}

#[cfg(test)]
mod tests {
    use super::{Batch, MAX_BYTES, MAX_MESSAGES};

    #[track_caller]
    fn check(sizes: &[usize], datagrams: usize) {
        let mut batch = Batch::new();
        for size in sizes {
            batch.push(24, 0, |out| out.raw(&vec![0; *size]));
        }
        let parts: Vec<&[u8]> = batch.datagrams().collect();
        assert_eq!(parts.len(), datagrams);
        assert_eq!(parts.concat(), batch.messages.as_bytes());
        let each: Vec<&[u8]> = (0..batch.len())
            .map(|number| batch.message(number))
            .collect();
        assert_eq!(each.concat(), batch.messages.as_bytes());
    }

    #[test]
    fn datagrams_have_few_enough_messages_and_bytes() {
        check(&[], 0);
        check(&[4], 1);
        check(&[4; MAX_MESSAGES], 1);
        check(&[4; MAX_MESSAGES + 1], 2);
        check(&[MAX_BYTES / 2; 3], 3);
        check(&[MAX_BYTES * 2, 4, MAX_BYTES * 2], 3);
    }
}

//! Reading messages. What does not have the form of a message or attribute ends the reading.

use std::str;

use super::{HEADER, align};

/// The bits of an attribute's type that say how to read it rather than what it is.
const TYPE_FLAGS: u16 = 0xc000;

/// One message of a datagram.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
    /// What follows the header.
    pub(crate) payload: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Attribute<'a> {
    pub(crate) kind: u16,
    pub(crate) value: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// The value as text, without the zero byte that ends it; empty if it is not text.
    pub(crate) fn text(&self) -> &'a str {
        let end = self.value.iter().position(|b| *b == 0);
        str::from_utf8(&self.value[..end.unwrap_or(self.value.len())]).unwrap_or_default()
    }

    /// The value as a number in network order; 0 if it has another size.
    pub(crate) fn u32(&self) -> u32 {
        self.value.try_into().map_or(0, u32::from_be_bytes)
    }

    /// The value as a number in network order; 0 if it has another size.
    pub(crate) fn u64(&self) -> u64 {
        self.value.try_into().map_or(0, u64::from_be_bytes)
    }

    /// The attributes that the value consists of.
    pub(crate) fn nested(&self) -> impl Iterator<Item = Attribute<'a>> + Clone + use<'a> {
        attributes(self.value)
    }
}

/// The messages of a datagram.
pub(crate) fn messages(mut rest: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let (header, _) = rest.split_first_chunk::<HEADER>()?;
        let length = usize::try_from(number(&header[0..4])?).ok()?;
        let message = Message {
            kind: half(&header[4..6])?,
            flags: half(&header[6..8])?,
            sequence: number(&header[8..12])?,
            payload: rest.get(HEADER..length)?,
        };
        rest = rest.get(align(length)..).unwrap_or_default();
        Some(message)
    })
}

/// The attributes that follow each other in `rest`.
pub(crate) fn attributes(mut rest: &[u8]) -> impl Iterator<Item = Attribute<'_>> + Clone {
    std::iter::from_fn(move || {
        let length = usize::from(half(rest.get(0..2)?)?);
        let attribute = Attribute {
            kind: half(rest.get(2..4)?)? & !TYPE_FLAGS,
            value: rest.get(4..length)?,
        };
        rest = rest.get(align(length)..).unwrap_or_default();
        Some(attribute)
    })
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

fn half(bytes: &[u8]) -> Option<u16> {
    bytes.try_into().ok().map(u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::Writer;
    use super::{attributes, messages};

    fn sample() -> Vec<u8> {
        let mut writer = Writer::default();
        for sequence in 0..3 {
            writer.message(7, 1, sequence, |w| {
                w.string(1, "abc");
                w.nest(2, |w| w.u32(1, sequence));
            });
        }
        writer.into_bytes()
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = sample();
        let read: Vec<_> = messages(&bytes).collect();
        assert_eq!(read.len(), 3);
        for (sequence, message) in (0..).zip(&read) {
            assert_eq!(
                (message.kind, message.flags, message.sequence),
                (7, 1, sequence)
            );
            let all: Vec<_> = attributes(message.payload).collect();
            assert_eq!((all[0].kind, all[0].text()), (1, "abc"));
            assert_eq!(
                all[1].nested().map(|a| a.u32()).collect::<Vec<_>>(),
                [sequence]
            );
        }
    }

    #[test]
    fn any_damage_ends_the_reading_without_panic() {
        let bytes = sample();
        for at in 0..bytes.len() {
            for value in [0, 1, 3, 4, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                for message in messages(&damaged[..])
                    .chain(messages(&bytes[..at]))
                    .take(10_000)
                {
                    for attribute in attributes(message.payload) {
                        let _ = (
                            attribute.text(),
                            attribute.u64(),
                            attribute.nested().count(),
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_value_longer_than_its_length_field_is_noticed() {
        let mut writer = Writer::default();
        writer.bytes(1, &vec![0; 65_531]);
        assert!(!writer.is_oversized());
        writer.bytes(1, &vec![0; 65_532]);
        assert!(writer.is_oversized());
    }
}

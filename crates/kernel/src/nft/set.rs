//! Sets and maps: what their keys are made of.

use std::sync::Arc;

use super::element::Element;
use super::number::{list, set, set_description};
use crate::netlink::Writer;

/// The type of data that verdicts are.
const VERDICT_DATA: u32 = 0xffff_ff00;

/// A set or map of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Set {
    pub name: Arc<str>,
    /// What its keys are made of: one field, or several in a row.
    pub key: Vec<Field>,
    /// Whether its elements may be ranges. Only for fields in network order, and interfaces.
    pub interval: bool,
    /// Whether each element has a verdict.
    pub verdicts: bool,
    /// The most elements that it may have, which lets the kernel choose a table of fixed size.
    pub max_size: Option<u32>,
}

/// A set that belongs to one rule, and is never changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InlineSet {
    key: Vec<Field>,
    interval: bool,
    verdicts: bool,
    elements: Vec<Element>,
}

/// A part of a key, with the name that `nft` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// `ipv4_addr`: four bytes.
    Ipv4Addr,
    /// `ipv6_addr`: 16 bytes.
    Ipv6Addr,
    /// `inet_proto`: one byte.
    InetProto,
    /// `inet_service`, a port: two bytes.
    InetService,
    /// `mark`: four bytes in the machine's order.
    Mark,
    /// `ifname`: 16 bytes.
    Ifname,
}

/// What the kernel has to know of a set's form.
pub(super) struct Form<'a> {
    key: &'a [Field],
    interval: bool,
    verdicts: bool,
    size: Option<u32>,
    /// Flags beyond those that follow from the rest.
    flags: u32,
}

impl Set {
    /// A set of single keys.
    pub fn new(name: &str, key: impl Into<Vec<Field>>) -> Self {
        Self {
            name: Arc::from(name),
            key: key.into(),
            interval: false,
            verdicts: false,
            max_size: None,
        }
    }

    /// A set whose elements may be ranges.
    pub fn interval(name: &str, key: impl Into<Vec<Field>>) -> Self {
        Self {
            interval: true,
            ..Self::new(name, key)
        }
    }

    /// A map from keys to verdicts.
    pub fn verdict_map(name: &str, key: impl Into<Vec<Field>>) -> Self {
        Self {
            verdicts: true,
            ..Self::new(name, key)
        }
    }

    pub(super) fn form(&self) -> Form<'_> {
        Form {
            key: &self.key,
            interval: self.interval,
            verdicts: self.verdicts,
            size: self.max_size,
            flags: 0,
        }
    }
}

impl InlineSet {
    /// A set of these elements: ranges if there are any, a map if they have verdicts.
    pub fn new(
        key: impl Into<Vec<Field>>,
        elements: impl IntoIterator<Item = Element>,
    ) -> Arc<Self> {
        let elements: Vec<Element> = elements.into_iter().collect();
        Arc::new(Self {
            key: key.into(),
            interval: elements.iter().any(Element::is_range),
            verdicts: elements.iter().any(|e| e.verdict().is_some()),
            elements,
        })
    }

    /// What it contains.
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// The name that is asked for; the kernel puts a number in the place of `%d`.
    pub(super) const fn name(&self) -> &'static str {
        if self.verdicts { "__map%d" } else { "__set%d" }
    }

    pub(super) fn form(&self) -> Form<'_> {
        let ends = if self.interval { 2 } else { 1 };
        Form {
            key: &self.key,
            interval: self.interval,
            verdicts: self.verdicts,
            size: u32::try_from(self.elements.len() * ends).ok(),
            flags: set::FLAG_ANONYMOUS | set::FLAG_CONSTANT,
        }
    }
}

impl Field {
    /// The number that `nft` knows it by.
    const fn number(self) -> u32 {
        match self {
            Self::Ipv4Addr => 7,
            Self::Ipv6Addr => 8,
            Self::InetProto => 12,
            Self::InetService => 13,
            Self::Mark => 19,
            Self::Ifname => 41,
        }
    }

    const fn length(self) -> u32 {
        match self {
            Self::InetProto => 1,
            Self::InetService => 2,
            Self::Ipv4Addr | Self::Mark => 4,
            Self::Ipv6Addr | Self::Ifname => 16,
        }
    }

    /// How `nft` tells the order of bytes: 1 for the machine's, 2 for the network's.
    const fn byte_order(self) -> u32 {
        match self {
            Self::Mark | Self::Ifname => 1,
            Self::Ipv4Addr | Self::Ipv6Addr | Self::InetProto | Self::InetService => 2,
        }
    }
}

impl Form<'_> {
    /// Whether elements are ranges in each of several fields, rather than from one key to another.
    pub(super) fn is_concatenated_interval(&self) -> bool {
        self.interval && self.key.len() > 1
    }

    /// Whether elements are told by where they begin and end.
    pub(super) fn is_plain_interval(&self) -> bool {
        self.interval && self.key.len() <= 1
    }

    pub(super) fn flags(&self) -> u32 {
        let given = [
            (self.interval, set::FLAG_INTERVAL),
            (self.verdicts, set::FLAG_MAP),
            (self.is_concatenated_interval(), set::FLAG_CONCATENATED),
        ];
        given
            .iter()
            .filter(|(is_set, _)| *is_set)
            .fold(self.flags, |bits, (_, flag)| bits | flag)
    }

    /// The fields' numbers, six bits each.
    pub(super) fn key_type(&self) -> u32 {
        self.key
            .iter()
            .fold(0, |number, field| (number << 6) | field.number())
    }

    pub(super) fn key_length(&self) -> u32 {
        match self.key {
            [one] => one.length(),
            several => several.iter().map(|f| f.length().next_multiple_of(4)).sum(),
        }
    }

    pub(super) fn data_type(&self) -> u32 {
        if self.verdicts { VERDICT_DATA } else { 0 }
    }

    pub(super) fn size(&self) -> Option<u32> {
        self.size
    }

    /// Writes the attributes of a new set, but for the table.
    pub(super) fn write(&self, name: &str, id: u32, out: &mut Writer) {
        out.string(set::NAME, name);
        out.u32(set::FLAGS, self.flags());
        out.u32(set::KEY_TYPE, self.key_type());
        out.u32(set::KEY_LENGTH, self.key_length());
        if self.verdicts {
            out.u32(set::DATA_TYPE, VERDICT_DATA);
            out.u32(set::DATA_LENGTH, 0);
        }
        if self.size.is_some() || self.is_concatenated_interval() {
            out.nest(set::DESCRIPTION, |out| self.write_description(out));
        }
        out.u32(set::ID, id);
        out.bytes(set::USERDATA, &self.userdata());
    }

    fn write_description(&self, out: &mut Writer) {
        if let Some(size) = self.size {
            out.u32(set_description::SIZE, size);
        }
        if self.is_concatenated_interval() {
            out.nest(set_description::FIELDS, |out| {
                for field in self.key {
                    out.nest(list::ELEMENT, |out| {
                        out.u32(set_description::FIELD_LENGTH, field.length());
                    });
                }
            });
        }
    }

    /// What `nft` keeps with a set: type, length and value of the byte order of its key.
    fn userdata(&self) -> [u8; 6] {
        const KEY_BYTE_ORDER: u8 = 0;
        let order = match self.key {
            [one] => one.byte_order(),
            _ => 0,
        };
        let [a, b, c, d] = order.to_ne_bytes();
        [KEY_BYTE_ORDER, 4, a, b, c, d]
    }
}

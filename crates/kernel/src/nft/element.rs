//! Elements of sets and maps.

use std::net::IpAddr;

use ipnet::IpNet;

use super::number::{data, element, list};
use super::set::Form;
use super::value::Value;
use super::verdict::Verdict;
use crate::netlink::{Attribute, Writer};

/// One key, or a range of keys, and perhaps a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Element {
    first: Key,
    /// None if it is the first.
    last: Option<Key>,
    verdict: Option<Verdict>,
}

/// The bytes of an element's key. What is longer than any key in use is cut, which the kernel then refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    bytes: [u8; Key::CAPACITY],
    length: u8,
}

/// One element as the kernel keeps it: in a set of ranges that is the beginning of one, or its end.
#[derive(Debug)]
pub(super) struct Stored {
    key: Key,
    last: Option<Key>,
    is_end: bool,
    verdict: Option<Verdict>,
}

impl Element {
    pub fn single(key: impl Into<Key>) -> Self {
        Self {
            first: key.into(),
            last: None,
            verdict: None,
        }
    }

    /// The keys from the first to the last, both included; in a key of several fields, those in the range of each.
    pub fn range(first: impl Into<Key>, last: impl Into<Key>) -> Self {
        let (first, last) = (first.into(), last.into());
        Self {
            first,
            last: (last != first).then_some(last),
            verdict: None,
        }
    }

    /// The addresses of a prefix.
    pub fn prefix(prefix: IpNet) -> Self {
        Self::range(prefix.network(), prefix.broadcast())
    }

    /// The interfaces whose names begin so.
    pub fn interface_prefix(prefix: &str) -> Self {
        let first = Value::interface(prefix);
        let mut last = [0xff; 16];
        for (byte, given) in last.iter_mut().zip(prefix.bytes()) {
            *byte = given;
        }
        Self::range(first, Value::from_bytes(&last))
    }

    /// The same with a verdict.
    #[must_use]
    pub fn with_verdict(self, verdict: Verdict) -> Self {
        Self {
            verdict: Some(verdict),
            ..self
        }
    }

    /// The first or only key.
    pub fn first(&self) -> &Key {
        &self.first
    }

    /// The last or only key.
    pub fn last(&self) -> &Key {
        self.last.as_ref().unwrap_or(&self.first)
    }

    /// What the map says of it.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    pub(super) fn is_range(&self) -> bool {
        self.last.is_some()
    }

    /// Writes it, as two elements if it is told by where it begins and ends.
    pub(super) fn write(&self, form: &Form<'_>, out: &mut Writer) {
        let end_of_fields = self.last.filter(|_| form.is_concatenated_interval());
        out.nest(list::ELEMENT, |out| {
            write_key(element::KEY, &self.first, out);
            if let Some(last) = &end_of_fields {
                write_key(element::KEY_END, last, out);
            }
            if let Some(verdict) = &self.verdict {
                verdict.write(element::DATA, out);
            }
        });
        if !form.is_plain_interval() {
            return;
        }
        // A range up to the last key there is has no end.
        if let Some(end) = self.last().next() {
            out.nest(list::ELEMENT, |out| {
                write_key(element::KEY, &end, out);
                out.u32(element::FLAGS, element::FLAG_INTERVAL_END);
            });
        }
    }
}

fn write_key(kind: u16, key: &Key, out: &mut Writer) {
    out.nest(kind, |out| out.bytes(data::VALUE, key.as_bytes()));
}

impl Key {
    /// Two IPv6 addresses, or one and an interface.
    const CAPACITY: usize = 32;

    /// The key of several fields.
    pub fn concatenated(values: &[Value]) -> Self {
        let mut bytes = [0; Self::CAPACITY];
        let mut length = 0;
        for value in values {
            for (to, from) in bytes.iter_mut().skip(length).zip(value.as_bytes()) {
                *to = *from;
            }
            length += value.as_bytes().len().next_multiple_of(4);
        }
        Self {
            bytes,
            length: u8::try_from(length.min(Self::CAPACITY)).unwrap_or(0),
        }
    }

    /// The bytes, with each but an only field filled to a multiple of four.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or(&self.bytes)
    }

    fn from_bytes(from: &[u8]) -> Self {
        let mut bytes = [0; Self::CAPACITY];
        for (to, from) in bytes.iter_mut().zip(from) {
            *to = *from;
        }
        Self {
            bytes,
            length: u8::try_from(from.len().min(Self::CAPACITY)).unwrap_or(0),
        }
    }

    /// The key after this one, none after the last.
    fn next(&self) -> Option<Self> {
        self.step(0xff, 0, |byte| byte.wrapping_add(1))
    }

    /// The key before this one, none before the first.
    fn previous(&self) -> Option<Self> {
        self.step(0, 0xff, |byte| byte.wrapping_sub(1))
    }

    /// Changes the last byte that is not `full` and makes those behind it `empty`.
    fn step(&self, full: u8, empty: u8, change: impl Fn(u8) -> u8) -> Option<Self> {
        let mut stepped = *self;
        let at = self.as_bytes().iter().rposition(|b| *b != full)?;
        let length = usize::from(self.length);
        let tail = stepped.bytes.get_mut(at..length)?;
        tail.fill(empty);
        *tail.first_mut()? = change(*self.bytes.get(at)?);
        Some(stepped)
    }

    fn greatest(length: u8) -> Self {
        let mut bytes = [0; Self::CAPACITY];
        bytes
            .iter_mut()
            .take(usize::from(length))
            .for_each(|b| *b = 0xff);
        Self { bytes, length }
    }
}

impl From<Value> for Key {
    fn from(value: Value) -> Self {
        Self::from_bytes(value.as_bytes())
    }
}

impl From<IpAddr> for Key {
    fn from(address: IpAddr) -> Self {
        Value::address(address).into()
    }
}

impl Stored {
    /// Reads one element of a dump.
    pub(super) fn read(from: &Attribute<'_>) -> Option<Self> {
        let mut key = None;
        let mut last = None;
        let mut is_end = false;
        let mut verdict = None;
        for attribute in from.nested() {
            match attribute.kind {
                element::KEY => key = read_key(&attribute),
                element::KEY_END => last = read_key(&attribute),
                element::FLAGS => is_end = attribute.u32() & element::FLAG_INTERVAL_END != 0,
                element::DATA => verdict = Verdict::read(&attribute),
                _ => {}
            }
        }
        Some(Self {
            key: key?,
            last,
            is_end,
            verdict,
        })
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.key, self.last, self.is_end) == (other.key, other.last, other.is_end)
    }

    fn into_element(self) -> Element {
        Element {
            first: self.key,
            last: self.last.filter(|last| *last != self.key),
            verdict: self.verdict,
        }
    }
}

fn read_key(from: &Attribute<'_>) -> Option<Key> {
    let value = from.nested().find(|a| a.kind == data::VALUE)?;
    Some(Key::from_bytes(value.value))
}

/// The elements of a set, from what the kernel keeps, sorted.
///
/// None if it was read wrongly: where the kernel fits a hash table to its new size meanwhile, its pages tell some twice and
/// as many not at all.
pub(super) fn join(mut stored: Vec<Stored>, form: &Form<'_>) -> Option<Vec<Element>> {
    // Where one range ends and another begins, the end comes first.
    stored.sort_unstable_by_key(|s| (s.key, !s.is_end, s.last));
    if stored.windows(2).any(|pair| pair[0].is_same(&pair[1])) {
        return None;
    }
    if !form.is_plain_interval() {
        return Some(stored.into_iter().map(Stored::into_element).collect());
    }
    let mut elements = Vec::with_capacity(stored.len() / 2 + 1);
    let mut stored = stored.into_iter().peekable();
    while let Some(mut beginning) = stored.next() {
        if beginning.is_end {
            continue;
        }
        beginning.last = match stored.peek() {
            Some(end) => end.key.previous(),
            None => Some(Key::greatest(beginning.key.length)),
        };
        elements.push(beginning.into_element());
    }
    Some(elements)
}

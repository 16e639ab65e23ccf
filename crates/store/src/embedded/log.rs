//! The change log: its extent, its limits and the form of its entries.

use redb::{ReadableTable, Table};

/// The extent of the change log, as the writer keeps it between transactions.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogState {
    /// The oldest revision in the log, or the next one if the log is empty.
    first: u64,
    last: u64,
    bytes: u64,
}

/// How much the change log keeps. The oldest changes beyond either limit are forgotten.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogLimits {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// One change in the log: what kind of change and, length first, the key, then the JSON.
pub(super) struct Entry<'a> {
    pub(super) key: &'a [u8],
    /// The new state; none if the object was removed.
    pub(super) json: Option<&'a [u8]>,
}

const DELETE: u8 = 0;
const PUT: u8 = 1;

// === impl LogLimits ===

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            // A busy cluster makes some hundred changes a second, so this is minutes for a watch to
            // come back in; even at full speed it is seconds.
            entries: 100_000,
            // For when objects are large: what a small disk can spare.
            bytes: 128 << 20,
        }
    }
}

// === impl LogState ===

impl LogState {
    pub(super) fn load(
        meta: &impl ReadableTable<&'static str, u64>,
        log: &impl ReadableTable<u64, &'static [u8]>,
    ) -> Result<Self, redb::Error> {
        let number = |name| -> Result<u64, redb::Error> {
            Ok(meta.get(name)?.map_or(0, |number| number.value()))
        };
        let last = number("revision")?;
        let first = log
            .first()?
            .map_or(last + 1, |(revision, _)| revision.value());
        Ok(Self {
            first,
            last,
            bytes: number("log_bytes")?,
        })
    }

    pub(super) fn save(&self, meta: &mut Table<'_, &'static str, u64>) -> Result<(), redb::Error> {
        meta.insert("revision", self.last)?;
        meta.insert("log_bytes", self.bytes)?;
        Ok(())
    }

    /// The revision of the last change.
    pub(super) fn revision(&self) -> u64 {
        self.last
    }

    /// Counts a new entry and gives it its revision.
    pub(super) fn added(&mut self, bytes: usize) -> u64 {
        self.last += 1;
        self.bytes += bytes as u64;
        self.last
    }

    pub(super) fn removed(&mut self, revision: u64, bytes: usize) {
        self.first = revision + 1;
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }

    pub(super) fn exceeds(&self, limits: LogLimits) -> bool {
        self.last + 1 - self.first > limits.entries || self.bytes > limits.bytes
    }

    /// Whether every change after the revision is in the log. A revision that is yet to come is not
    /// one of this file.
    pub(super) fn covers(&self, after: u64) -> bool {
        after <= self.last && after + 1 >= self.first
    }
}

// === impl Entry ===

impl<'a> Entry<'a> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let json = self.json.unwrap_or_default();
        let length = u32::try_from(self.key.len()).expect("keys are shorter than 4 GiB");
        let mut bytes = Vec::with_capacity(5 + self.key.len() + json.len());
        bytes.push(if self.json.is_some() { PUT } else { DELETE });
        bytes.extend(length.to_be_bytes());
        bytes.extend(self.key);
        bytes.extend(json);
        bytes
    }

    pub(super) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (&change, bytes) = bytes.split_first()?;
        let (length, bytes) = bytes.split_first_chunk()?;
        let (key, json) = bytes.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        Some(Self {
            key,
            json: (change == PUT).then_some(json),
        })
    }
}

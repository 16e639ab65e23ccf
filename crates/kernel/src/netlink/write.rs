//! Writing messages.

use super::align;

/// A buffer of messages, one after the other.
///
/// A length that does not fit its field is not written wrongly without notice: [`Writer::is_oversized`] tells.
#[derive(Debug, Default, Clone)]
pub(crate) struct Writer {
    buffer: Vec<u8>,
    oversized: bool,
}

impl Writer {
    /// Writes one message whose attributes `fill` writes.
    pub(crate) fn message(
        &mut self,
        kind: u16,
        flags: u16,
        sequence: u32,
        fill: impl FnOnce(&mut Self),
    ) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        self.buffer.extend_from_slice(&kind.to_ne_bytes());
        self.buffer.extend_from_slice(&flags.to_ne_bytes());
        self.buffer.extend_from_slice(&sequence.to_ne_bytes());
        self.buffer.extend_from_slice(&[0; 4]);
        fill(self);
        let length = u32::try_from(self.buffer.len() - start).unwrap_or_else(|_| {
            self.oversized = true;
            u32::MAX
        });
        self.buffer[start..start + 4].copy_from_slice(&length.to_ne_bytes());
    }

    /// Writes bytes as they are, such as the header of a family.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Writes an attribute with these bytes.
    pub(crate) fn bytes(&mut self, kind: u16, value: &[u8]) {
        self.nest(kind, |writer| writer.raw(value));
    }

    /// Writes an attribute with a string, which ends with a zero byte.
    pub(crate) fn string(&mut self, kind: u16, value: &str) {
        self.nest(kind, |writer| {
            writer.raw(value.as_bytes());
            writer.raw(&[0]);
        });
    }

    /// Writes an attribute with a number in network order.
    pub(crate) fn u16(&mut self, kind: u16, value: u16) {
        self.bytes(kind, &value.to_be_bytes());
    }

    /// Writes an attribute with a number in network order.
    pub(crate) fn u32(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_be_bytes());
    }

    /// Writes an attribute with a number in network order.
    pub(crate) fn u64(&mut self, kind: u16, value: u64) {
        self.bytes(kind, &value.to_be_bytes());
    }

    /// Writes an attribute with what `fill` writes.
    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 2]);
        self.buffer.extend_from_slice(&kind.to_ne_bytes());
        fill(self);
        let length = u16::try_from(self.buffer.len() - start).unwrap_or_else(|_| {
            self.oversized = true;
            u16::MAX
        });
        self.buffer[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.buffer.resize(align(self.buffer.len()), 0);
    }

    /// Whether something was written that is longer than its length field can say.
    pub(crate) fn is_oversized(&self) -> bool {
        self.oversized
    }

    /// What was written so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The number of bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// What was written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.buffer
    }
}

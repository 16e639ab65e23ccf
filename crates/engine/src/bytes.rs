//! Reading and writing the packed form in which the engine keeps what it may need again.
//!
//! Numbers are little-endian base 128, texts are a length and bytes. What is read was written here, so reading cannot
//! fail; past the end it gives zeros and empty texts.

/// Appends a number.
#[inline]
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

/// Appends a length and bytes.
#[inline]
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, length(bytes.len()));
    out.extend_from_slice(bytes);
}

/// A length as it is stored. Objects of 4 GiB do not fit into any datastore.
#[inline]
pub(crate) fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Goes through packed bytes.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((first, rest)) => {
                self.rest = rest;
                *first
            }
            None => 0,
        }
    }

    #[inline]
    pub(crate) fn number(&mut self) -> u32 {
        let first = self.byte();
        if first < 0x80 {
            return u32::from(first);
        }
        self.long_number(first)
    }

    fn long_number(&mut self, first: u8) -> u32 {
        let mut number = u32::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let byte = self.byte();
            number |= u32::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift > 28 {
                return number;
            }
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let length = self.number() as usize;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> &'a str {
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }
}

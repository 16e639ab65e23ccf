//! The wire format of protobuf: fields by number.

use crate::failure::Failure;

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a fixed size: no known field is.
    Fixed,
}

/// Gives the fields of a message in their order, and stops after an error.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

const CUT_OFF: Malformed = Malformed("it is cut off");

impl Malformed {
    pub(super) fn in_body(self) -> Failure {
        Failure::bad_request(format!("the body is not protobuf: {}", self.0))
    }
}

impl<'a> Content<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed("there is a number where bytes belong")),
        }
    }

    pub(super) fn text(self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("a text is not UTF-8"))
    }

    pub(super) fn number(self) -> Result<u64, Malformed> {
        match self {
            Self::Number(number) => Ok(number),
            // As in a map, where one that is 0 is left out.
            Self::Bytes([]) => Ok(0),
            _ => Err(Malformed("there are bytes where a number belongs")),
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn field(&mut self) -> Result<(u32, Content<'a>), Malformed> {
        let tag = self.number()?;
        let number =
            u32::try_from(tag >> 3).map_err(|_| Malformed("a field's number is too large"))?;
        let content = match tag & 7 {
            0 => Content::Number(self.number()?),
            1 => self.fixed(8)?,
            2 => {
                let length = usize::try_from(self.number()?).map_err(|_| CUT_OFF)?;
                Content::Bytes(self.take(length)?)
            }
            5 => self.fixed(4)?,
            _ => return Err(Malformed("a field is of an unknown form")),
        };
        Ok((number, content))
    }

    fn fixed(&mut self, length: usize) -> Result<Content<'a>, Malformed> {
        self.take(length).map(|_| Content::Fixed)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed("a number is too long"))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u32, Content<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Numbers one after the other.
pub(super) fn packed(bytes: &[u8]) -> impl Iterator<Item = Result<u64, Malformed>> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(move || {
        if reader.rest.is_empty() {
            return None;
        }
        let number = reader.number();
        if number.is_err() {
            reader.rest = &[];
        }
        Some(number)
    })
}

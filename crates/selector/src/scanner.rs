//! Reading the text of a selector piece by piece.
//!
//! The scanner knows how white space, words, labels and strings are spelt; what may stand where is
//! for the parser. Every method that does not find what it looks for leaves the position alone.

use crate::error::{ParseError, ParseErrorKind};
use crate::tree::Span;

/// The longest label name, in bytes.
pub const MAX_LABEL_LENGTH: usize = 512;

/// Whether this can be used as a label in a selector.
pub fn is_label_name(name: &str) -> bool {
    (1..=MAX_LABEL_LENGTH).contains(&name.len()) && name.bytes().all(is_label_byte)
}

/// Whether a byte may stand in a label name, and so continues a word.
pub(crate) fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-')
}

/// A position in the text of a selector.
pub(crate) struct Scanner<'a> {
    source: &'a str,
    at: usize,
}

// === impl Scanner ===

impl<'a> Scanner<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        Self { source, at: 0 }
    }

    pub(crate) fn source(&self) -> &'a str {
        self.source
    }

    /// An error about what stands here.
    #[cold]
    pub(crate) fn error(&self, kind: ParseErrorKind) -> ParseError {
        ParseError::new(kind, self.source, self.at)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.source.len()
    }

    /// The next byte.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    pub(crate) fn skip_white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Takes `symbol` if it comes next.
    pub(crate) fn take(&mut self, symbol: &str) -> bool {
        let found = self.rest().starts_with(symbol.as_bytes());
        if found {
            self.at += symbol.len();
        }
        found
    }

    /// Takes an operator of one or more words. White space between the words is optional, but the
    /// last one must not run into another word.
    pub(crate) fn take_operator(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        for word in words {
            self.skip_white_space();
            if !self.take(word) {
                self.at = start;
                return false;
            }
        }
        if self.peek().is_some_and(is_label_byte) {
            self.at = start;
            return false;
        }
        true
    }

    /// Takes a label name; without one, the error is of the given kind.
    pub(crate) fn label(&mut self, missing: ParseErrorKind) -> Result<Span, ParseError> {
        let length = self
            .rest()
            .iter()
            .take_while(|byte| is_label_byte(**byte))
            .count();
        match length {
            0 => Err(self.error(missing)),
            1..=MAX_LABEL_LENGTH => {
                let label = Span::new(self.at, self.at + length);
                self.at += length;
                Ok(label)
            }
            _ => Err(self.error(ParseErrorKind::LabelTooLong { length })),
        }
    }

    /// Takes a string, or nothing if there is no quote here.
    pub(crate) fn string(&mut self) -> Result<Option<Span>, ParseError> {
        let Some(quote @ (b'"' | b'\'')) = self.peek() else {
            return Ok(None);
        };
        let start = self.at + 1;
        let length = self.rest()[1..]
            .iter()
            .position(|byte| *byte == quote)
            .ok_or_else(|| {
                self.error(ParseErrorKind::UnterminatedString {
                    quote: char::from(quote),
                })
            })?;
        self.at = start + length + 1;
        Ok(Some(Span::new(start, start + length)))
    }

    fn rest(&self) -> &'a [u8] {
        &self.source.as_bytes()[self.at..]
    }
}

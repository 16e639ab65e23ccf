//! Why a text is not a selector.

use std::fmt;

use crate::caret;
use crate::parser::{MAX_DEPTH, MAX_LENGTH};
use crate::scanner::{MAX_LABEL_LENGTH, is_label_byte};

/// How much of an offending word is repeated in a message, in characters.
const FOUND_LIMIT: usize = 40;

/// The place where a text stops being a selector, what stands there and what should.
///
/// ```
/// let text = "app == web";
/// let error = tortie_selector::Selector::parse(text).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid selector at column 8: expected a string in quotes, found `web`",
/// );
/// assert_eq!(error.caret(text), "app == web\n       ^");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    kind: ParseErrorKind,
    offset: usize,
    column: usize,
    found: Option<Found>,
}

/// What was expected, or which limit was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text or its canonical form exceeds [`MAX_LENGTH`].
    #[error("the selector is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// The expression is nested deeper than [`MAX_DEPTH`].
    #[error("the selector is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A label name exceeds [`MAX_LABEL_LENGTH`].
    #[error("the label name has {length} bytes, at most {MAX_LABEL_LENGTH} are allowed")]
    LabelTooLong {
        /// How long it is, in bytes.
        length: usize,
    },
    /// A string has no closing quote.
    #[error("the string has no closing {quote}")]
    UnterminatedString {
        /// The quote that opens it, and should close it.
        quote: char,
    },
    /// A term or group must begin here.
    #[error("expected a label, `has(…)`, `all()`, `global()`, `!` or `(`")]
    ExpectedTerm,
    /// `has(` needs a label.
    #[error("expected a label name inside `has(…)`")]
    ExpectedLabel,
    /// `has(label`, `all(` or `global(` is not closed.
    #[error("expected `)` to close `{function}(`")]
    ExpectedFunctionEnd {
        /// The name of the function.
        function: &'static str,
    },
    /// A label needs an operator.
    #[error(
        "expected `==`, `!=`, `in`, `not in`, `contains`, `starts with` or `ends with` after \
         the label"
    )]
    ExpectedOperator,
    /// The operator needs a string.
    #[error("expected a string in quotes")]
    ExpectedString,
    /// `in` and `not in` need a set.
    #[error("expected a set such as `{{\"a\", \"b\"}}`")]
    ExpectedSet,
    /// After `{` or `,` in a set.
    #[error("expected a string in quotes or `}}`")]
    ExpectedMember,
    /// After a member of a set.
    #[error("expected `,` or `}}`")]
    ExpectedSetEnd,
    /// After an operand inside parentheses.
    #[error("expected `&&`, `||` or `)`")]
    ExpectedGroupEnd,
    /// After an operand outside all parentheses.
    #[error("expected `&&`, `||` or the end")]
    ExpectedEnd,
}

/// What stands where something else was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing more.
    End,
    /// A word, string, operator or character, cut if it is very long.
    Text(Box<str>),
}

// === impl ParseError ===

impl ParseError {
    pub(crate) fn new(kind: ParseErrorKind, source: &str, offset: usize) -> Self {
        let offset = source.floor_char_boundary(offset);
        let (before, rest) = source.split_at(offset);
        let found = kind
            .names_what_was_found()
            .then(|| Found::at_start_of(rest));
        Self {
            kind,
            offset,
            column: before.chars().count() + 1,
            found,
        }
    }

    /// What was expected, or which limit was exceeded.
    pub fn kind(&self) -> ParseErrorKind {
        self.kind
    }

    /// Where it is, in bytes from the start of the text.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Where it is, in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// What stands there, if something else was expected.
    pub fn found(&self) -> Option<&Found> {
        self.found.as_ref()
    }

    /// The selector on one line and a caret under the place on the next, for a fixed-width font.
    ///
    /// `input` is the text that was parsed. Of a long one, only the part around the place is shown.
    pub fn caret(&self, input: &str) -> String {
        caret::render(input, self.offset)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid selector at column {}: {}",
            self.column, self.kind
        )?;
        match &self.found {
            Some(found) => write!(f, ", found {found}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}

// === impl ParseErrorKind ===

impl ParseErrorKind {
    fn names_what_was_found(self) -> bool {
        !matches!(
            self,
            Self::TooLong
                | Self::TooDeep
                | Self::LabelTooLong { .. }
                | Self::UnterminatedString { .. }
        )
    }
}

// === impl Found ===

impl Found {
    fn at_start_of(rest: &str) -> Self {
        let Some(first) = rest.chars().next() else {
            return Self::End;
        };
        let length = match first {
            '"' | '\'' => rest[1..].find(first).map_or(1, |end| end + 2),
            '&' | '|' | '=' if rest[1..].starts_with(first) => 2,
            '!' if rest[1..].starts_with('=') => 2,
            _ => rest.bytes().take_while(|byte| is_label_byte(*byte)).count(),
        };
        let token = &rest[..length.max(first.len_utf8())];
        match token.char_indices().nth(FOUND_LIMIT) {
            Some((cut, _)) => Self::Text(format!("{}…", &token[..cut]).into()),
            None => Self::Text(token.into()),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("the end"),
            Self::Text(text) if text.starts_with(char::is_whitespace) => {
                write!(
                    f,
                    "`{}`: only spaces and tabs may separate words",
                    text.escape_default()
                )
            }
            Self::Text(text) => {
                f.write_str("`")?;
                for character in text.chars() {
                    if character.is_control() {
                        write!(f, "{}", character.escape_default())?;
                    } else {
                        write!(f, "{character}")?;
                    }
                }
                f.write_str("`")
            }
        }
    }
}

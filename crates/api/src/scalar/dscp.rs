//! Differentiated services code points.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::ScalarError;

/// The named code points and their values.
const NAMES: [(&str, u8); 21] = [
    ("DF", 0),
    ("EF", 46),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS0", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
];

/// A DSCP value: a number or one of the standard names such as `EF` or `AF21`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dscp {
    /// The value itself; valid up to 63.
    Number(u8),
    /// A name, kept as written; [`Dscp::value`] says what it stands for.
    Name(Box<str>),
}

impl Dscp {
    const EXPECTED: &'static str = "a DSCP value: 0 to 63, or a name such as EF, AF21 or CS3";

    fn from_number(number: u64) -> Result<Self, ScalarError> {
        u8::try_from(number)
            .map(Self::Number)
            .map_err(|_| ScalarError::new(number, Self::EXPECTED))
    }

    /// The six-bit value, if this is a valid DSCP.
    pub fn value(&self) -> Option<u8> {
        match self {
            Self::Number(number) => Some(*number).filter(|n| *n < 64),
            Self::Name(name) => NAMES
                .iter()
                .find(|(n, _)| n.eq_ignore_ascii_case(name.trim()))
                .map(|(_, v)| *v),
        }
    }
}

impl FromStr for Dscp {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Self, ScalarError> {
        Ok(text
            .parse()
            .map_or_else(|_| Self::Name(text.into()), Self::Number))
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl Serialize for Dscp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u8(*number),
            Self::Name(name) => serializer.serialize_str(name),
        }
    }
}

super::number_or_text!(Dscp, super::int_or_string());

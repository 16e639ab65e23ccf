//! Port matches: one port, a range, or a named port.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::ScalarError;

/// Longest name of a named port that a rule may refer to.
const MAX_NAME: usize = 128;

/// A port match in a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// From the first to the second port, both included; a single port has both equal.
    Range(u16, u16),
    /// The port that the endpoint gives this name.
    Named(Box<str>),
}

impl Port {
    const EXPECTED: &'static str =
        "a port: a number up to 65535, a range such as 8080:8090, or a port name";

    /// A single port number.
    pub fn single(port: u16) -> Self {
        Self::Range(port, port)
    }

    fn from_number(number: u64) -> Result<Self, ScalarError> {
        u16::try_from(number)
            .map(Self::single)
            .map_err(|_| ScalarError::new(number, Self::EXPECTED))
    }

    /// Whether this names a port instead of giving its number.
    pub fn is_named(&self) -> bool {
        matches!(self, Self::Named(_))
    }
}

impl FromStr for Port {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Self, ScalarError> {
        let refuse = |expected| Err(ScalarError::new(text, expected));
        let is_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if is_digits(text) {
            return text
                .parse()
                .map(Self::single)
                .or_else(|_| refuse(Self::EXPECTED));
        }
        if let Some((low, high)) = text
            .split_once(':')
            .filter(|(l, h)| is_digits(l) && is_digits(h))
        {
            return match (low.parse(), high.parse()) {
                (Ok(low), Ok(high)) if low <= high => Ok(Self::Range(low, high)),
                (Ok(_), Ok(_)) => refuse("a port range: the first port is above the last"),
                _ => refuse(Self::EXPECTED),
            };
        }
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        if (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_name) {
            return Ok(Self::Named(text.into()));
        }
        refuse(Self::EXPECTED)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(low, high) if low == high => low.fmt(f),
            Self::Range(low, high) => write!(f, "{low}:{high}"),
            Self::Named(name) => name.fmt(f),
        }
    }
}

impl Serialize for Port {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Range(low, high) if low == high => serializer.serialize_u16(*low),
            other => serializer.collect_str(other),
        }
    }
}

super::number_or_text!(Port, super::int_or_string());

//! BGP autonomous system numbers.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::ScalarError;

/// A 32-bit AS number; read from a number, `"64512"` or the dotted form `"1.10"`, written as a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AsNumber(pub u32);

impl AsNumber {
    const EXPECTED: &'static str =
        "an AS number: 0 to 4294967295, or two 16-bit numbers joined by a dot such as 1.10";

    fn from_number(number: u64) -> Result<Self, ScalarError> {
        u32::try_from(number)
            .map(Self)
            .map_err(|_| ScalarError::new(number, Self::EXPECTED))
    }
}

impl FromStr for AsNumber {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Self, ScalarError> {
        if let Ok(number) = text.parse() {
            return Ok(Self(number));
        }
        let dotted = text.split_once('.').and_then(|(high, low)| {
            Some((u32::from(high.parse::<u16>().ok()?) << 16) | u32::from(low.parse::<u16>().ok()?))
        });
        dotted
            .map(Self)
            .ok_or_else(|| ScalarError::new(text, Self::EXPECTED))
    }
}

impl fmt::Display for AsNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

super::number_or_text!(
    AsNumber,
    schemars::json_schema!({"type": "integer", "format": "int32", "x-accepts": "text"})
);

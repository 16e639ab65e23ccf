//! Durations in Go's notation, such as `1m30s`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ScalarError;

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A signed duration in nanoseconds, read and written as Go does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(i64);

impl GoDuration {
    const EXPECTED: &'static str = "a duration such as 300ms, 90s or 1h30m";

    /// A duration of whole seconds.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds * 1_000_000_000)
    }

    /// The duration in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Whether the duration is below zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }
}

impl FromStr for GoDuration {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Self, ScalarError> {
        let error = || ScalarError::new(text, Self::EXPECTED);
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(error());
        }
        let mut total: i128 = 0;
        while !rest.is_empty() {
            let (value, after) = take_term(rest).ok_or_else(error)?;
            total = total
                .checked_add(value)
                .filter(|t| *t <= 1 << 63)
                .ok_or_else(error)?;
            rest = after;
        }
        i64::try_from(if negative { -total } else { total })
            .map(Self)
            .map_err(|_| error())
    }
}

/// Takes one `<number><unit>` off the front; gives its nanoseconds and what follows.
fn take_term(text: &str) -> Option<(i128, &str)> {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let whole_len = digits(text);
    let whole = &text[..whole_len];
    let mut rest = &text[whole_len..];
    let mut fraction = "";
    if let Some(after_dot) = rest.strip_prefix('.') {
        let len = digits(after_dot);
        fraction = &after_dot[..len];
        rest = &after_dot[len..];
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_len = rest
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_len);
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut nanos = whole.checked_mul(*scale)?;
    let mut place = *scale;
    for digit in fraction.bytes() {
        // Digits below a nanosecond are dropped, as Go does.
        let digit = i128::from(digit - b'0');
        nanos += digit * place / 10;
        if place % 10 != 0 {
            break;
        }
        place /= 10;
    }
    Some((nanos, rest))
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        if nanos == 0 {
            return f.write_str("0s");
        }
        for (unit, scale) in [("ns", 1_u64), ("µs", 1_000), ("ms", 1_000_000)] {
            if nanos < scale * 1_000 {
                return write_decimal(f, nanos, scale, unit);
            }
        }
        let seconds = nanos / 1_000_000_000;
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if seconds >= 60 {
            write!(f, "{minutes}m")?;
        }
        write_decimal(f, nanos % 60_000_000_000, 1_000_000_000, "s")
    }
}

/// Writes `nanos / scale` without trailing zeros, then the unit.
fn write_decimal(f: &mut fmt::Formatter<'_>, nanos: u64, scale: u64, unit: &str) -> fmt::Result {
    write!(f, "{}", nanos / scale)?;
    let rest = nanos % scale;
    if rest > 0 {
        let width = usize::try_from(scale.ilog10()).unwrap_or(9);
        let digits = format!("{rest:0width$}");
        write!(f, ".{}", digits.trim_end_matches('0'))?;
    }
    f.write_str(unit)
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for GoDuration {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "duration"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, written: &str) {
        assert_eq!(
            text.parse::<GoDuration>().unwrap().to_string(),
            written,
            "{text}"
        );
    }

    #[test]
    fn durations_are_written_as_go_writes_them() {
        check("90s", "1m30s");
        check("1.5h", "1h30m0s");
        check("0", "0s");
        check("-5m", "-5m0s");
        check("1500us", "1.5ms");
        check("100ns", "100ns");
        check("3600s", "1h0m0s");
        check("0.0000000019s", "1ns");
        check("50ms", "50ms");
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in ["", "5", "s", "1d", "1 s", ".s", "-", "99999999999999h"] {
            assert!(text.parse::<GoDuration>().is_err(), "{text}");
        }
    }
}

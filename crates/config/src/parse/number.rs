//! Numbers, as Go reads them.

use std::time::Duration;

use tortie_api::scalar::Port;

use crate::value::PortRange;

/// Fewest bits of a mark mask.
const MIN_MARK_BITS: u32 = 2;

/// A whole number: decimal, or with the prefix `0x`, `0o`, `0` or `0b`; `_` may stand between digits.
pub(super) fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = i128::from(unsigned(digits)?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// A mask of 32 bits with enough of them set.
pub(crate) fn mask(number: u64) -> Option<u32> {
    u32::try_from(number)
        .ok()
        .filter(|mask| mask.count_ones() >= MIN_MARK_BITS)
}

/// A whole number that is not below zero, in the same forms.
pub(super) fn unsigned(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    // One `_` may follow the prefix.
    let digits = if radix == 10 {
        digits
    } else {
        digits.strip_prefix('_').unwrap_or(digits)
    };
    let misplaced = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    if misplaced || !digits.starts_with(|first: char| first.is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(&digits.replace('_', ""), radix).ok()
}

/// A time in units of so many seconds. Times before now count as no time.
pub(super) fn duration(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    if number < 0.0 {
        return number.is_finite().then_some(Duration::ZERO);
    }
    Duration::try_from_secs_f64(number * unit)
        .ok()
        .filter(|duration| i64::try_from(duration.as_nanos()).is_ok())
}

/// A number, or two with `:` between them.
pub(super) fn port_range(text: &str) -> Option<PortRange> {
    range_of(&text.parse().ok()?)
}

/// The ports that these are, if they have numbers.
pub(crate) fn range_of(ports: &Port) -> Option<PortRange> {
    match *ports {
        Port::Range(first, last) => Some(PortRange { first, last }),
        Port::Named(_) => None,
    }
}

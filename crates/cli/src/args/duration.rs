//! Times as people give them.

use std::time::Duration;

/// A time such as `30s`, `90m` or `2h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let units = [('s', 1), ('m', 60), ('h', 3600)];
    let parsed = units.iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(*unit)?;
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = number.parse().ok().filter(|_| is_number)?;
        number.checked_mul(*seconds)
    });
    let seconds = parsed.ok_or("expected a number with s, m or h, such as 30s, 90m or 2h")?;
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, expected) in [
            ("30s", Some(30)),
            ("90m", Some(5400)),
            ("2h", Some(7200)),
            ("2", None),
            ("-1s", None),
            ("+1s", None),
            ("h", None),
            ("18446744073709551615h", None),
        ] {
            let parsed = duration(text).ok();
            assert_eq!(parsed.map(|time| time.as_secs()), expected, "{text}");
        }
    }
}

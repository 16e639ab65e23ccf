//! How long ago something was, in few letters.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// What stands for a time that is not known.
const UNKNOWN: &str = "<unknown>";

/// How long ago a time in an object was.
pub(super) fn since(time: &Value, now: Timestamp) -> String {
    let time = time
        .as_str()
        .and_then(|text| text.parse::<Timestamp>().ok());
    time.map_or_else(
        || UNKNOWN.to_owned(),
        |time| human_duration(now.duration_since(time)),
    )
}

/// A duration as kubectl writes it: the longer, the coarser. Clocks may differ by a second.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let years = days / 365;
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two((minutes, "m"), (seconds % 60, "s")),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two((hours, "h"), (minutes % 60, "m")),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two((days, "d"), (hours % 24, "h")),
        () if years < 2 => format!("{days}d"),
        () if years < 8 => two((years, "y"), (days % 365, "d")),
        () => format!("{years}y"),
    }
}

/// A number of units, and one of smaller units unless there are none.
fn two((large, large_unit): (i64, &str), (small, small_unit): (i64, &str)) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(seconds: i64, expected: &str) {
        assert_eq!(human_duration(SignedDuration::from_secs(seconds)), expected);
    }

    #[test]
    fn the_longer_the_coarser() {
        const DAY: i64 = 86_400;
        check(-2, "<invalid>");
        check(-1, "0s");
        check(0, "0s");
        check(119, "119s");
        check(120, "2m");
        check(125, "2m5s");
        check(599, "9m59s");
        check(600, "10m");
        check(179 * 60 + 59, "179m");
        check(180 * 60, "3h");
        check(181 * 60, "3h1m");
        check(8 * 3600 - 60, "7h59m");
        check(8 * 3600 + 60, "8h");
        check(2 * DAY - 1, "47h");
        check(2 * DAY, "2d");
        check(3 * DAY + 4 * 3600, "3d4h");
        check(8 * DAY + 3600, "8d");
        check(2 * 365 * DAY - 1, "729d");
        check(2 * 365 * DAY, "2y");
        check(3 * 365 * DAY + DAY, "3y1d");
        check(8 * 365 * DAY + DAY, "8y");
    }

    #[test]
    fn times_that_cannot_be_read_are_unknown() {
        let now: Timestamp = "2026-01-01T00:05:00Z".parse().unwrap();
        assert_eq!(since(&json!("2026-01-01T00:00:00Z"), now), "5m");
        assert_eq!(since(&json!("yesterday"), now), "<unknown>");
        assert_eq!(since(&Value::Null, now), "<unknown>");
    }
}

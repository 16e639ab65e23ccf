//! Quantities as Kubernetes writes them: `1500m`, `10k`, `4Gi`, `1e3`.

/// Digits of a fraction that are kept; the rest only decides about rounding.
const MAX_FRACTION: usize = 12;

/// The value of a quantity, rounded away from zero to a whole number and capped to the range of `i64`. `None` if the
/// text is not a quantity.
pub(super) fn parse(text: &str) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    let (is_negative, text) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, rest) = split_digits(text);
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    let (multiplier, exponent) = scale(suffix)?;

    let kept = &fraction[..fraction.len().min(MAX_FRACTION)];
    let has_more = fraction[kept.len()..].bytes().any(|digit| digit != b'0');
    let digits = format!("{whole}{kept}");
    let mantissa = if digits.is_empty() {
        Some(0)
    } else {
        digits.parse::<i128>().ok()
    };
    let exponent = exponent - i64::try_from(kept.len()).unwrap_or_default();
    let magnitude = mantissa
        .and_then(|mantissa| scaled(mantissa.checked_mul(multiplier)?, exponent, has_more))
        .and_then(|value| i64::try_from(value).ok())
        .unwrap_or(i64::MAX);
    Some(if is_negative { -magnitude } else { magnitude })
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Multiplier and power of ten that a suffix stands for.
fn scale(suffix: &str) -> Option<(i128, i64)> {
    let binary = |power: u32| Some((1_i128 << (10 * power), 0));
    match suffix {
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "" => Some((1, 0)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => suffix
            .strip_prefix(['e', 'E'])?
            .parse::<i32>()
            .ok()
            .map(|exponent| (1, exponent.into())),
    }
}

/// `mantissa × 10^exponent`, rounded up; `None` where it is out of range.
fn scaled(mantissa: i128, exponent: i64, has_more: bool) -> Option<i128> {
    let factor = u32::try_from(exponent.abs())
        .ok()
        .and_then(|power| 10_i128.checked_pow(power));
    if exponent >= 0 {
        return if mantissa == 0 {
            Some(0)
        } else {
            mantissa.checked_mul(factor?)
        };
    }
    let Some(factor) = factor else {
        return Some(i128::from(mantissa != 0));
    };
    let is_exact = mantissa % factor == 0 && !has_more;
    Some(mantissa / factor + i128::from(!is_exact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(parse(text), expected, "{text}");
    }

    #[test]
    fn suffixes_scale_by_tens_and_by_twos() {
        check("5", Some(5));
        check("1.01k", Some(1010));
        check("10M", Some(10_000_000));
        check("4Gi", Some(4_294_967_296));
        check("1P", Some(1_000_000_000_000_000));
        check("2e3", Some(2000));
        check("0.5Ki", Some(512));
    }

    #[test]
    fn fractions_round_away_from_zero() {
        check("1500m", Some(2));
        check("-1.1", Some(-2));
        check("0.0000000000000001", Some(1));
        check("1e-30", Some(1));
    }

    #[test]
    fn values_out_of_range_are_capped() {
        check("100E", Some(i64::MAX));
        check("-1e4000", Some(-i64::MAX));
        check(
            "99999999999999999999999999999999999999999999",
            Some(i64::MAX),
        );
        check("0e4000", Some(0));
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "x", "1x", "1 k", "k1", "1K", "1ki", "1e", "1.2.3", "ä"] {
            check(text, None);
        }
    }
}

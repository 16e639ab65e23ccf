//! Tables with borders, as calicoctl prints those of address management and of BGP peers.

use std::fmt::Write as _;

/// A table with borders. Numbers stand at the right, everything else at the left, headings in the middle.
pub(crate) fn bordered(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widths = cells.map(|cell| cell.chars().count());
        let heading = headings[column].chars().count();
        widths.chain([heading]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut border = String::new();
    for width in &widths {
        border.push('+');
        border.push_str(&"-".repeat(width + 2));
    }
    let mut table = format!("{border}+\n");
    for (heading, width) in headings.iter().zip(&widths) {
        let _ = write!(table, "| {heading:^width$} ");
    }
    let _ = write!(table, "|\n{border}+\n");
    for row in rows {
        for (cell, width) in row.iter().zip(&widths) {
            let is_number = !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
            let _ = if is_number {
                write!(table, "| {cell:>width$} ")
            } else {
                write!(table, "| {cell:<width$} ")
            };
        }
        table.push_str("|\n");
    }
    if !rows.is_empty() {
        let _ = writeln!(table, "{border}+");
    }
    table
}

/// How many of how many, with a percentage.
pub(crate) fn share(count: f64, of: f64) -> String {
    let percent = if of > 0.0 { 100.0 * count / of } else { 0.0 };
    format!("{} ({percent:.0}%)", number(count))
}

/// A number with five significant digits, as Go prints it.
pub(crate) fn number(value: f64) -> String {
    if value < 100_000.0 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.4e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}e+{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::{bordered, number, share};

    #[test]
    fn a_table_is_the_one_of_calicoctl() {
        let row = |kind: &str, cidr: &str, total: f64, used: f64| {
            vec![
                kind.to_owned(),
                cidr.to_owned(),
                number(total),
                share(used, total),
                share(total - used, total),
            ]
        };
        let rows = [
            row("IP Pool", "172.16.0.0/16", 65_536.0, 7.0),
            row("Block", "172.16.116.0/24", 256.0, 4.0),
        ];
        let headings = ["GROUPING", "CIDR", "IPS TOTAL", "IPS IN USE", "IPS FREE"];
        let expected = "\
+----------+-----------------+-----------+------------+--------------+
| GROUPING |      CIDR       | IPS TOTAL | IPS IN USE |   IPS FREE   |
+----------+-----------------+-----------+------------+--------------+
| IP Pool  | 172.16.0.0/16   |     65536 | 7 (0%)     | 65529 (100%) |
| Block    | 172.16.116.0/24 |       256 | 4 (2%)     | 252 (98%)    |
+----------+-----------------+-----------+------------+--------------+
";
        assert_eq!(bordered(&headings, &rows), expected);
    }

    #[test]
    fn large_numbers_have_five_digits() {
        for (value, expected) in [
            (99_999.0, "99999"),
            (131_072.0, "1.3107e+05"),
            (1_000_000.0, "1e+06"),
            (1.844_674_407_370_955_2e19, "1.8447e+19"),
        ] {
            assert_eq!(number(value), expected);
        }
    }
}

//! Showing a place in a text with a caret under it.

/// How much is shown before the caret, in columns.
const BEFORE: usize = 48;
/// How much is shown from the caret on, in columns. Together with [`BEFORE`] and an ellipsis at
/// each end, a line fits into 80 columns.
const AFTER: usize = 28;

/// Two lines: the part of `input` around a byte offset, and a caret under that place.
///
/// Tabs and line breaks are shown as spaces, and characters that could move the cursor as `�`.
pub(crate) fn render(input: &str, offset: usize) -> String {
    let (before, after) = input.split_at(input.floor_char_boundary(offset));
    let mut shown: Vec<char> = Vec::new();

    let cut = take_columns(before.chars().rev(), BEFORE, &mut shown);
    if cut {
        shown.push('…');
    }
    shown.reverse();
    let indent = shown
        .iter()
        .map(|character| columns(*character))
        .sum::<usize>();

    let cut = take_columns(after.chars(), AFTER, &mut shown);
    if cut {
        shown.push('…');
    }
    let line: String = shown.into_iter().collect();
    format!("{}\n{:indent$}^", line.trim_end(), "")
}

/// Adds characters that are at most `limit` columns wide together, and says whether some were left.
fn take_columns(
    characters: impl Iterator<Item = char>,
    limit: usize,
    shown: &mut Vec<char>,
) -> bool {
    let mut used = 0;
    for character in characters.map(printable) {
        used += columns(character);
        if used > limit {
            return true;
        }
        shown.push(character);
    }
    false
}

fn printable(character: char) -> char {
    match character {
        '\t' | '\n' | '\r' => ' ',
        // Invisible characters, and those that reverse the direction of writing.
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => char::REPLACEMENT_CHARACTER,
        _ if character.is_control() => char::REPLACEMENT_CHARACTER,
        _ => character,
    }
}

/// How many columns terminals give to a character: the common ranges of the East Asian wide
/// characters and emoji, and the general combining marks.
fn columns(character: char) -> usize {
    match character {
        '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1f9ff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, offset: usize, expected: &str) {
        assert_eq!(render(input, offset), expected, "{input:?} at {offset}");
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        check("app == web", 7, "app == web\n       ^");
        check("", 0, "\n^");
        check("a ==", 4, "a ==\n    ^");
    }

    #[test]
    fn tabs_and_line_breaks_take_one_column() {
        check("a\t==\nb", 5, "a == b\n     ^");
    }

    #[test]
    fn wide_characters_take_two_columns_and_combining_marks_none() {
        check("a == '日本' x", 14, "a == '日本' x\n            ^");
        check("e\u{301} x", 4, "e\u{301} x\n  ^");
    }

    #[test]
    fn characters_that_would_disturb_a_terminal_are_replaced() {
        check("\u{1b}[1m\u{202e}x", 7, "�[1m�x\n     ^");
    }

    #[test]
    fn long_input_is_cut_on_both_sides() {
        let input = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let expected = format!(
            "…{}X{}…\n{}^",
            "a".repeat(BEFORE),
            "b".repeat(AFTER - 1),
            " ".repeat(BEFORE + 1)
        );
        check(&input, 500, &expected);
    }

    #[test]
    fn an_offset_inside_a_character_or_past_the_end_is_moved_back() {
        check("日", 1, "日\n^");
        check("ab", 9, "ab\n  ^");
    }
}

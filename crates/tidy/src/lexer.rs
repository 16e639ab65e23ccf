//! Tells code, strings and comments of Rust apart.

/// A piece of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    /// As it is written, with quotes.
    pub(crate) text: &'a str,
    /// Where it begins, in bytes.
    pub(crate) start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Code,
    /// Also of bytes, and raw.
    Text,
    Comment,
}

/// All pieces, in order; together they are the whole text.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut code_start = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let Some((kind, length)) = special(rest, text[..at].chars().next_back()) else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        if code_start < at {
            tokens.push(token(Kind::Code, text, code_start, at));
        }
        tokens.push(token(kind, text, at, at + length));
        at += length;
        code_start = at;
    }
    if code_start < at {
        tokens.push(token(Kind::Code, text, code_start, at));
    }
    tokens
}

/// The line of a place, from 1.
pub(crate) fn line_of(text: &str, start: usize) -> usize {
    text[..start].matches('\n').count() + 1
}

fn token(kind: Kind, text: &str, start: usize, end: usize) -> Token<'_> {
    Token {
        kind,
        text: &text[start..end],
        start,
    }
}

/// The comment, string or character that begins here, and its length. Characters count as strings.
fn special(rest: &str, before: Option<char>) -> Option<(Kind, usize)> {
    if rest.starts_with("//") {
        return Some((Kind::Comment, rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        return Some((Kind::Comment, block_comment(rest)));
    }
    let is_in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if !is_in_word && let Some(length) = raw_string(rest) {
        return Some((Kind::Text, length));
    }
    match rest.chars().next()? {
        '"' => Some((Kind::Text, 1 + quoted(&rest[1..], '"'))),
        '\'' if is_character(rest) => Some((Kind::Text, 1 + quoted(&rest[1..], '\''))),
        _ => None,
    }
}

/// Comments can hold comments.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#`, `br"…"`: its length.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.chars().take_while(|c| *c == '#').count();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = rest.len() - body.len();
    Some(begin + body.find(&end).map_or(body.len(), |at| at + end.len()))
}

/// The length of what is quoted, with the closing quote.
fn quoted(body: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    body.len()
}

/// A character, as opposed to a lifetime.
fn is_character(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(Kind, &str)]) {
        let found = tokens(text);
        let found: Vec<(Kind, &str)> = found.iter().map(|t| (t.kind, t.text)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn strings_and_comments_are_told_from_code() {
        check(
            "a // b \"c\"\nd",
            &[
                (Kind::Code, "a "),
                (Kind::Comment, "// b \"c\""),
                (Kind::Code, "\nd"),
            ],
        );
        check(
            r#"f("a // \" b", c)"#,
            &[
                (Kind::Code, "f("),
                (Kind::Text, r#""a // \" b""#),
                (Kind::Code, ", c)"),
            ],
        );
        check(
            "/* a /* b */ c */d",
            &[(Kind::Comment, "/* a /* b */ c */"), (Kind::Code, "d")],
        );
    }

    #[test]
    fn raw_strings_end_where_their_hashes_do() {
        let text = "r#\"a \" b\"#;";
        check(text, &[(Kind::Text, "r#\"a \" b\"#"), (Kind::Code, ";")]);
        check("for\"\"", &[(Kind::Code, "for"), (Kind::Text, "\"\"")]);
    }

    #[test]
    fn lifetimes_are_no_characters() {
        check("&'a str", &[(Kind::Code, "&'a str")]);
        check("'\"' x", &[(Kind::Text, "'\"'"), (Kind::Code, " x")]);
        check("'\\'' x", &[(Kind::Text, "'\\''"), (Kind::Code, " x")]);
    }
}

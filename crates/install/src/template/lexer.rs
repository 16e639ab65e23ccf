//! A template as text and actions, with white space trimmed where it says so.

use super::At;

/// What a template consists of.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Action(At<Vec<Token>>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Word(String),
    /// A field, from `.` or, with a dollar before, from the root; without names, these themselves.
    Field {
        is_root: bool,
        path: Vec<String>,
    },
    Text(String),
    Number(i64),
    Open,
    Close,
    Pipe,
}

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// Takes a template apart.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, At<String>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut line = 1;
    let mut trims = false;
    loop {
        let (before, action) = match rest.split_once(OPEN) {
            None => (rest, None),
            Some((before, action)) => (before, Some(action)),
        };
        let mut shown = if trims { before.trim_start() } else { before };
        line += newlines(before);
        let Some(action) = action else {
            pieces.push(Piece::Text(shown));
            return Ok(pieces);
        };
        let Some((inside, after)) = action.split_once(CLOSE) else {
            return Err(wrong(line, "`{{` without `}}`"));
        };
        let mut words = inside;
        // A minus counts with a space beside it only, since it may belong to a number.
        if let Some(trimming) = words.strip_prefix("- ") {
            words = trimming;
            shown = shown.trim_end();
        }
        trims = words.ends_with(" -");
        if trims {
            words = &words[..words.len() - 1];
        }
        pieces.push(Piece::Text(shown));
        let words = words.trim();
        if !(words.starts_with("/*") && words.ends_with("*/")) {
            let is = tokens(words).map_err(|reason| wrong(line, &reason))?;
            pieces.push(Piece::Action(At { line, is }));
        }
        line += newlines(inside);
        rest = after;
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn wrong(line: usize, reason: &str) -> At<String> {
    At {
        line,
        is: reason.to_owned(),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '(' => (Token::Open, &rest[1..]),
            ')' => (Token::Close, &rest[1..]),
            '|' => (Token::Pipe, &rest[1..]),
            '"' => {
                let end = rest[1..].find('"').ok_or("a text without its end")?;
                let inside = &rest[1..=end];
                if inside.contains('\\') {
                    return Err(format!("escapes in texts are not known: \"{inside}\""));
                }
                (Token::Text(inside.to_owned()), &rest[end + 2..])
            }
            _ => {
                let end = rest.find(|c: char| c.is_whitespace() || "()|\"".contains(c));
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                (word_token(word)?, after)
            }
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

fn word_token(word: &str) -> Result<Token, String> {
    let (is_root, fields) = match word.strip_prefix('$') {
        Some(fields) => (true, fields),
        None => (false, word),
    };
    if let Some(path) = fields.strip_prefix('.') {
        let path: Vec<String> = match path {
            "" => Vec::new(),
            _ => path.split('.').map(ToOwned::to_owned).collect(),
        };
        if path.iter().all(|name| is_name(name)) {
            return Ok(Token::Field { is_root, path });
        }
    } else if is_root && fields.is_empty() {
        let path = Vec::new();
        return Ok(Token::Field { is_root, path });
    } else if let Ok(number) = word.parse() {
        return Ok(Token::Number(number));
    } else if is_name(word) {
        return Ok(Token::Word(word.to_owned()));
    }
    Err(format!("`{word}` is not known"))
}

fn is_name(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

//! The configuration file: `key = value` lines in sections, whose names do not matter.
//!
//! It is read as Calico's agent reads it: `#` and `;` start a comment, also after a value; `:` may stand for `=`; quotes
//! around a value are left out, and within backquotes or three double quotes everything else is kept; a line that ends
//! in `\` goes on in the next one.

use std::{collections::BTreeMap, str::Lines};

/// What starts a comment.
const COMMENT: [char; 2] = ['#', ';'];

/// A file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct FileError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Reads a configuration file. Of values for the same key, the last one counts.
pub fn from_file(text: &str) -> Result<BTreeMap<String, String>, FileError> {
    let mut values = BTreeMap::new();
    let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
    let total = text.lines().count();
    while let Some(line) = lines.next() {
        let number = total - lines.clone().count();
        let refuse = |reason| FileError {
            line: number,
            reason,
        };
        let line = line.trim();
        if line.is_empty() || line.starts_with(COMMENT) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            if !section.contains(']') {
                return Err(refuse("the name of the section does not end in `]`"));
            }
            continue;
        }
        let (key, value) = line
            .split_once(['=', ':'])
            .ok_or_else(|| refuse("expected `key = value`"))?;
        if key.is_empty() {
            return Err(refuse("there is no key before the `=`"));
        }
        let value = read_value(value.trim_start(), &mut lines)
            .ok_or_else(|| refuse("the quotes around the value do not end in this line"))?;
        values.insert(unquoted_key(key.trim()).to_owned(), value);
    }
    Ok(values)
}

fn unquoted_key(key: &str) -> &str {
    surrounded(key, '"')
        .or_else(|| surrounded(key, '`'))
        .unwrap_or(key)
}

/// The value that starts with this text; none if it is in quotes that do not end.
fn read_value(text: &str, lines: &mut Lines<'_>) -> Option<String> {
    for quote in ["\"\"\"", "`"] {
        if let Some(rest) = text.strip_prefix(quote) {
            return rest.rfind(quote).map(|end| rest[..end].to_owned());
        }
    }
    let mut value = text.to_owned();
    while let Some(start) = value.strip_suffix('\\') {
        value = format!("{start}{}", lines.next().unwrap_or_default().trim());
    }
    let value = value.split(COMMENT).next().unwrap_or_default().trim();
    let value = surrounded(value, '\'')
        .or_else(|| surrounded(value, '"'))
        .unwrap_or(value);
    Some(value.to_owned())
}

/// What is between two quotes at both ends, if there are none within.
fn surrounded(text: &str, quote: char) -> Option<&str> {
    text.strip_prefix(quote)?
        .strip_suffix(quote)
        .filter(|inner| !inner.contains(quote))
}

//! Reads many objects on all processors.
//!
//! A text is cut where a line starts with `---`, which in YAML always starts a document, and its pieces are read at the
//! same time. A piece that cannot be read on its own makes the whole text be read again in one go: for the error to
//! name the right line, or because the text has directives.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::{Result, bail};
use serde_json::Value;
use tortie_api::Path;

use super::{each_text, parse, parse_values};

/// Least size of a piece: large enough that handing it over costs nothing, small enough to keep all processors busy.
const PIECE: usize = 64 << 10;

/// Reads all objects of files and folders with `read`, and hands over the results in order, each with its file and its
/// number within the file, from 1. Gives the number of objects.
pub fn read_many<T: Send>(
    paths: &[PathBuf],
    recursive: bool,
    read: impl Fn(Value) -> T + Sync,
    mut take: impl FnMut(&str, usize, T),
) -> Result<usize> {
    let mut total = 0;
    each_text(paths, recursive, &mut |file, text| {
        let mut number = 0;
        let is_read = read_text(text, &read, |result| {
            number += 1;
            take(file, number, result);
        });
        if !is_read {
            for document in parse(file, text)?.into_iter().skip(number) {
                number += 1;
                take(file, number, read(document.value));
            }
        }
        total += number;
        Ok(())
    })?;
    if total == 0 {
        bail!("No resources specified");
    }
    Ok(total)
}

/// Reads the objects of a text up to the first piece that cannot be read; whether there was none.
fn read_text<T: Send>(
    text: &str,
    read: &(impl Fn(Value) -> T + Sync),
    mut take: impl FnMut(T),
) -> bool {
    if text.trim_start().starts_with('{')
        && let Ok(values) = parse_json(text)
    {
        values.into_iter().map(read).for_each(take);
        return true;
    }
    let pieces = pieces(text);
    let next = AtomicUsize::new(0);
    let read_piece = |piece: &str| -> Option<Vec<T>> {
        let values = parse_values(piece).ok()?;
        Some(values.into_iter().map(read).collect())
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let (results, done) = mpsc::channel();
        for _ in 0..workers.min(pieces.len()) {
            let results = results.clone();
            let (pieces, next) = (&pieces, &next);
            scope.spawn(move || {
                while let Some((index, piece)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    pieces.get(index).map(|piece| (index, piece))
                } {
                    if results.send((index, read_piece(piece))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        let mut waiting = BTreeMap::new();
        let mut expected = 0;
        for (index, result) in done {
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(&expected) {
                let Some(values) = result else { return false };
                values.into_iter().for_each(&mut take);
                expected += 1;
            }
        }
        true
    })
}

/// JSON texts one after the other, lists as their items.
fn parse_json(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    let mut items = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter() {
        super::flatten(value?, &Path::ROOT, &mut |value, _| items.push(value));
    }
    Ok(items)
}

/// Cuts a text into pieces of whole documents.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(cut) = cut(rest) {
        let (piece, tail) = rest.split_at(cut);
        pieces.push(piece);
        rest = tail;
    }
    pieces.push(rest);
    pieces
}

/// Where the first document starts that is not in the first piece of a text.
fn cut(text: &str) -> Option<usize> {
    if text.len() <= PIECE {
        return None;
    }
    let mut from = PIECE;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    loop {
        let at = from + text.get(from..)?.find("\n---")?;
        let after = text[at + 4..].chars().next();
        if after.is_none_or(char::is_whitespace) {
            return Some(at + 1);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<Value>> {
        let mut found = Vec::new();
        read_text(text, &|value| value, |value| found.push(value)).then_some(found)
    }

    #[test]
    fn documents_come_in_order() {
        let documents: Vec<String> = (0..20_000).map(|i| format!("---\nn: {i}\n")).collect();
        let text = documents.concat();
        assert!(pieces(&text).len() > 2);
        let found = read(&text).unwrap();
        assert_eq!(found.len(), 20_000);
        assert!(found.iter().enumerate().all(|(i, v)| v["n"] == i));
    }

    #[test]
    fn a_text_is_cut_only_where_a_document_starts() {
        let filler = "x".repeat(PIECE);
        let text = format!("a: {filler}\nb: '\n  ---\n  '\n---- c: 1\n---\nd: 1\n---");
        let starts: Vec<&str> = pieces(&text).iter().map(|p| &p[..3.min(p.len())]).collect();
        assert_eq!(starts, ["a: ", "---"]);
    }

    #[test]
    fn a_text_that_cannot_be_read_in_pieces_is_said_to_be_so() {
        assert_eq!(read("a: [1\n"), None);
        assert_eq!(read("{\"a\": 1}\n{\"b\": 2}").unwrap().len(), 2);
        assert_eq!(read("{a: 1}\n---\n{b: 2}").unwrap().len(), 2);
    }
}

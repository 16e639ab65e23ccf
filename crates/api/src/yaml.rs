//! The one reader of YAML.
//!
//! What a plain word of YAML is depends on who reads it: `n`, `on`, `1.10` and `012` are text to one and a boolean or
//! another number to the next. Here the schema decides: where a resource has text, the word is taken as it is written;
//! where it has a boolean or a number, the word must be one. A document is first read without its schema, which is
//! quick; only where that took a text for something else is it read again, with the place of each word.

mod lines;
mod tree;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::NonFiniteFloatPolicy;

use crate::kind::Kind;
use crate::object::API_VERSION;
use crate::schema::{self, Node, Shape};
pub use lines::Lines;
use tree::Reader;

/// The group in which older clusters keep the same resources.
const STORED_API_VERSION: &str = "crd.projectcalico.org/v1";

/// How much of a text aliases may repeat, in parser events: a word is one.
const MAX_REPEATED: usize = 50_000;

/// Why a text could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no YAML.
    #[error("{0}")]
    Syntax(String),
    /// A number means different things to different readers.
    #[error(
        "line {line}: `{text}` is an octal number to some readers of YAML and a decimal one to others: write it without \
         the leading zero, or in quotes if it is text"
    )]
    Ambiguous {
        /// The line of the text, from 1.
        line: u64,
        /// The number as written.
        text: String,
    },
}

/// Reads all documents of a text, JSON included. Who calls bounds the size of the text.
pub fn parse(text: &str) -> Result<Vec<Value>, Error> {
    parse_with(text, None)
}

/// Reads the only document of a text as a resource of a kind, or as a part of one that starts at its root.
pub fn parse_as(kind: Kind, text: &str) -> Result<Value, Error> {
    only(parse_with(text, Some(schema::of(kind)))?)
}

/// Reads the only document of a text.
pub fn parse_one(text: &str) -> Result<Value, Error> {
    only(parse(text)?)
}

/// Reads the only document of a text as a type of its own, whose fields say what is text.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_saphyr::from_str_with_options(text, options(NonFiniteFloatPolicy::Reject)).map_err(syntax)
}

fn parse_with(text: &str, root: Option<&Node>) -> Result<Vec<Value>, Error> {
    let values: Result<Vec<Value>, _> =
        serde_saphyr::from_multiple_with_options(text, options(NonFiniteFloatPolicy::Reject));
    let is_settled = |value: &Value| is_settled(value, root.or_else(|| root_of(value)));
    match values {
        Ok(values) if values.iter().all(is_settled) && !has_unusual_number(text) => Ok(values),
        // Perhaps a text looks like a number without end.
        Ok(_) | Err(_) => Reader::new(text).read(root, options(NonFiniteFloatPolicy::PassThrough)),
    }
}

fn only(mut values: Vec<Value>) -> Result<Value, Error> {
    match values.len() {
        0 => Ok(Value::Null),
        1 => Ok(values.remove(0)),
        count => {
            let message = format!("there are {count} documents where there can be one only");
            Err(Error::Syntax(message))
        }
    }
}

fn syntax(error: impl std::fmt::Display) -> Error {
    Error::Syntax(error.to_string().trim_end().to_owned())
}

/// All that grows with the text is bounded by its size; the other limits of the parser, on nesting, stay. What aliases
/// repeat is bounded by a number: a short text could otherwise stand for very many objects.
fn options(not_finite: NonFiniteFloatPolicy) -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        non_finite_float_policy: not_finite,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPEATED,
        },
        budget: serde_saphyr::budget! {
            max_documents: usize::MAX,
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_total_comment_bytes: usize::MAX,
        },
    }
}

/// The schema of an object that says what it is.
fn root_of(value: &Value) -> Option<&'static Node> {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    root_of_kind(text("apiVersion")?, text("kind")?)
}

fn root_of_kind(version: &str, kind: &str) -> Option<&'static Node> {
    let kind = match version {
        API_VERSION => Kind::from_name(kind)?,
        STORED_API_VERSION => *Kind::ALL
            .iter()
            .find(|known| known.v1_crd_names().0 == kind)?,
        _ => return None,
    };
    Some(schema::of(kind))
}

/// Whether nothing was taken for what the schema does not have in its place.
fn is_settled(value: &Value, node: Option<&Node>) -> bool {
    match (node.map(|node| &node.shape), value) {
        (Some(Shape::Text(_)), Value::Number(_) | Value::Bool(_))
        | (Some(Shape::Boolean), Value::String(_)) => false,
        (Some(Shape::Struct(fields)), Value::Object(object)) => object
            .iter()
            .all(|(name, value)| is_settled(value, fields.known.get(name))),
        (Some(Shape::Map { values }), Value::Object(object)) => {
            object.values().all(|value| is_settled(value, Some(values)))
        }
        (Some(Shape::List { items, .. }), Value::Array(list)) => {
            list.iter().all(|value| is_settled(value, Some(items)))
        }
        // A list of resources, each of which says what it is.
        (None, Value::Object(object)) => object
            .values()
            .all(|value| is_settled(value, root_of(value))),
        (None, Value::Array(list)) => list.iter().all(|value| is_settled(value, root_of(value))),
        _ => true,
    }
}

/// Whether a text may have a number that starts with a zero.
fn has_unusual_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.windows(2).enumerate().any(|(index, pair)| {
        let before = index.checked_sub(1).map_or(b' ', |before| bytes[before]);
        pair[0] == b'0'
            && pair[1].is_ascii_digit()
            && (before.is_ascii_whitespace() || b"[,:+-".contains(&before))
    })
}

#[cfg(test)]
mod tests;

//! Kubernetes' own objects as its Go clients send them: protobuf in an envelope. What comes out is what the same object
//! is in JSON.

mod messages;
mod wire;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::messages::{Field, Kind, MESSAGES, Message, Shape};
use self::wire::{Content, Malformed, Reader};
use crate::failure::{Failure, Reason, Result};

/// The media type of such a body.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every such body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may lie in each other.
const MAX_DEPTH: usize = 32;

type Decoded<T> = std::result::Result<T, Malformed>;

/// Reads an object. Fields that are not known are left out, as in Kubernetes.
pub fn decode(bytes: &[u8]) -> Result<Value> {
    let unknown = bytes.strip_prefix(MAGIC).ok_or_else(|| {
        Failure::bad_request("the body does not begin as protobuf of Kubernetes does")
    })?;
    let envelope = Envelope::read(unknown).map_err(Malformed::in_body)?;
    // Most kinds are of one group only.
    let group = envelope.api_version.split('/').next().unwrap_or_default();
    let own = MESSAGES.get(format!("{group}/{}", envelope.kind).as_str());
    let Some(message) = own.or_else(|| MESSAGES.get(envelope.kind)) else {
        let message = format!(
            "{} {:?} is not taken in protobuf: send application/json",
            envelope.api_version, envelope.kind
        );
        return Err(Failure::new(Reason::UnsupportedMediaType, message));
    };
    let raw = envelope.raw.ok_or(Malformed("there is no object in it"));
    let object = raw.and_then(|raw| read_message(message, raw, 0));
    let mut object = object.map_err(Malformed::in_body)?;
    object.insert("apiVersion".to_owned(), json!(envelope.api_version));
    object.insert("kind".to_owned(), json!(envelope.kind));
    Ok(Value::Object(object))
}

#[derive(Default)]
struct Envelope<'a> {
    api_version: &'a str,
    kind: &'a str,
    raw: Option<&'a [u8]>,
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Decoded<Self> {
        let mut envelope = Self::default();
        for field in Reader::new(bytes) {
            match field? {
                (1, content) => {
                    for field in Reader::new(content.bytes()?) {
                        match field? {
                            (1, content) => envelope.api_version = content.text()?,
                            (2, content) => envelope.kind = content.text()?,
                            _ => {}
                        }
                    }
                }
                (2, content) => envelope.raw = Some(content.bytes()?),
                _ => {}
            }
        }
        Ok(envelope)
    }
}

fn read_message(message: &Message, bytes: &[u8], depth: usize) -> Decoded<Map<String, Value>> {
    if depth > MAX_DEPTH {
        return Err(Malformed("messages lie too deep in each other"));
    }
    let mut object = Map::new();
    for found in Reader::new(bytes) {
        let (number, content) = found?;
        if let Some(field) = message.get(&number) {
            read_field(&mut object, field, content, depth)?;
        }
    }
    Ok(object)
}

fn read_field(
    object: &mut Map<String, Value>,
    field: &Field,
    content: Content<'_>,
    depth: usize,
) -> Decoded<()> {
    let Some(name) = field.name else {
        if let Value::Object(inner) = read_value(field.kind, content, depth)? {
            object.extend(inner);
        }
        return Ok(());
    };
    match field.shape {
        Shape::One => {
            let value = read_value(field.kind, content, depth)?;
            if is_empty(&value) && !field.is_kept_if_empty {
                object.remove(name);
            } else {
                object.insert(name.to_owned(), value);
            }
        }
        Shape::Many => {
            let values = read_values(field.kind, content, depth)?;
            let many = object.entry(name).or_insert_with(|| json!([]));
            if let Value::Array(many) = many {
                many.extend(values);
            }
        }
        Shape::ByName => {
            let (key, value) = read_entry(field.kind, content, depth)?;
            let members = object.entry(name).or_insert_with(|| json!({}));
            members[key] = value;
        }
    }
    Ok(())
}

/// One value, or all numbers of a field that has them packed.
fn read_values(kind: Kind, content: Content<'_>, depth: usize) -> Decoded<Vec<Value>> {
    match content {
        Content::Bytes(bytes) if kind == Kind::Number => wire::packed(bytes)
            .map(|number| Ok(json!(number?.cast_signed())))
            .collect(),
        content => Ok(vec![read_value(kind, content, depth)?]),
    }
}

/// An entry of a map. Either half is left out if it is empty.
fn read_entry(kind: Kind, content: Content<'_>, depth: usize) -> Decoded<(&str, Value)> {
    let (mut key, mut value) = ("", Content::Bytes(&[]));
    for found in Reader::new(content.bytes()?) {
        match found? {
            (1, content) => key = content.text()?,
            (2, content) => value = content,
            _ => {}
        }
    }
    Ok((key, read_value(kind, value, depth)?))
}

fn read_value(kind: Kind, content: Content<'_>, depth: usize) -> Decoded<Value> {
    Ok(match kind {
        Kind::Text => json!(content.text()?),
        Kind::Truth => json!(content.number()? != 0),
        Kind::Number => json!(content.number()?.cast_signed()),
        Kind::Bytes => json!(STANDARD.encode(content.bytes()?)),
        Kind::Time => time(content, "%Y-%m-%dT%H:%M:%SZ")?,
        Kind::MicroTime => time(content, "%Y-%m-%dT%H:%M:%S.%6fZ")?,
        Kind::Quantity => {
            let fields = fields(content)?;
            json!(fields.get(&1).map_or(Ok("0"), |text| text.text())?)
        }
        Kind::NumberOrText => {
            let fields = fields(content)?;
            let number = |at| fields.get(&at).map_or(Ok(0), |number| number.number());
            if number(1)? == 0 {
                json!(number(2)?.cast_signed())
            } else {
                json!(fields.get(&3).map_or(Ok(""), |text| text.text())?)
            }
        }
        Kind::Json => {
            let fields = fields(content)?;
            let text = fields
                .get(&1)
                .map_or(Ok(&b"null"[..]), |text| text.bytes())?;
            serde_json::from_slice(text).map_err(|_| Malformed("a set of fields is not JSON"))?
        }
        Kind::Message(name) => match MESSAGES.get(name) {
            Some(message) => Value::Object(read_message(message, content.bytes()?, depth + 1)?),
            None => Value::Null,
        },
    })
}

/// The last value of each field of a small message.
fn fields(content: Content<'_>) -> Decoded<BTreeMap<u32, Content<'_>>> {
    Reader::new(content.bytes()?).collect()
}

/// A point in time; nothing if none is given.
fn time(content: Content<'_>, format: &str) -> Decoded<Value> {
    let fields = fields(content)?;
    let number = |at| fields.get(&at).map_or(Ok(0), |number| number.number());
    let (seconds, nanoseconds) = (number(1)?.cast_signed(), number(2)?.cast_signed());
    if seconds == 0 && nanoseconds == 0 {
        return Ok(Value::Null);
    }
    let nanoseconds =
        i32::try_from(nanoseconds).map_err(|_| Malformed("a time is out of range"))?;
    let time = Timestamp::new(seconds, nanoseconds);
    let time = time.map_err(|_| Malformed("a time is out of range"))?;
    Ok(json!(time.strftime(format).to_string()))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests;

//! Functions of templates, as Helm has them.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// What a function makes of its arguments.
pub(super) fn call(function: &str, arguments: &[Cow<'_, Value>]) -> Result<Value, String> {
    let values: Vec<&Value> = arguments.iter().map(AsRef::as_ref).collect();
    Ok(match (function, values.as_slice()) {
        ("eq", [one, other]) => (one == other).into(),
        ("ne", [one, other]) => (one != other).into(),
        ("not", [value]) => (!is_true(value)).into(),
        // One of the values, as Go has it, rather than whether it is true.
        ("and", [_, ..]) => pick(&values, |value| !is_true(value)),
        ("or", [_, ..]) => pick(&values, is_true),
        ("default", [otherwise, value]) => {
            let chosen = if is_true(value) { value } else { otherwise };
            (*chosen).clone()
        }
        ("sha256sum", [value]) => sha256(&text(value)?).into(),
        ("printf", [Value::String(form), rest @ ..]) => printed(form, rest)?.into(),
        ("quote", [value]) => quoted(&text(value)?).into(),
        ("toYaml", [value]) => serde_saphyr::to_string(value)
            .map_err(|error| error.to_string())?
            .into(),
        ("nindent", [Value::Number(width), value]) => {
            let width = width.as_u64().and_then(|width| usize::try_from(width).ok());
            let width = width.ok_or("`nindent` needs a number of spaces")?;
            format!("\n{}", indented(&text(value)?, width)).into()
        }
        _ => {
            let count = values.len();
            return Err(format!(
                "the function `{function}` with {count} arguments is not known"
            ));
        }
    })
}

/// The first that decides, or the last of all.
fn pick(values: &[&Value], decides: impl Fn(&Value) -> bool) -> Value {
    let first = values.iter().find(|value| decides(value));
    first
        .or(values.last())
        .map_or(Value::Null, |value| (*value).clone())
}

/// Whether a condition with this value holds.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// A value as it is printed.
pub(super) fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(format!(
            "{value} is no text: `toYaml` makes one of lists and objects"
        )),
    }
}

/// With each `%s` replaced by the next value.
fn printed(form: &str, values: &[&Value]) -> Result<String, String> {
    let mut pieces = form.split("%s");
    let mut out = pieces.next().unwrap_or("").to_owned();
    let mut values = values.iter();
    for piece in pieces {
        let value = values.next().ok_or("`printf` has too few values")?;
        out += &text(value)?;
        out += piece;
    }
    if values.next().is_some() || form.replace("%s", "").contains('%') {
        return Err(format!(
            "`printf` of \"{form}\": only `%s` is known, one for each value"
        ));
    }
    Ok(out)
}

fn sha256(text: &str) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        // Text grows.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// In quotes, as YAML and JSON read them.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn indented(text: &str, width: usize) -> String {
    let pad = " ".repeat(width);
    let lines = text.lines().map(|line| format!("{pad}{line}"));
    lines.collect::<Vec<_>>().join("\n")
}

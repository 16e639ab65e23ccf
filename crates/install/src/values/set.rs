//! `--set`, as Helm reads it.

use serde_json::{Map, Value};

use super::ValuesError;

/// Sets one field or several: `a.b=1,a.c=[x, y]`. A dot or a comma that belongs to a name or a value has a backslash before it.
pub(super) fn set(values: &mut Value, given: &str) -> Result<(), ValuesError> {
    let wrong = |reason| ValuesError::Set {
        given: given.to_owned(),
        reason,
    };
    for one in split(given, ',') {
        let (path, text) = one
            .split_once('=')
            .ok_or_else(|| wrong("expected FIELD=VALUE, such as ipv4.encapsulation=None"))?;
        let names = split(path, '.').map(|name| name.replace('\\', ""));
        let mut field = &mut *values;
        for name in names {
            if name.is_empty() {
                return Err(wrong("a part of the field's name is missing"));
            }
            if field.is_null() {
                *field = Value::Object(Map::new());
            }
            let Value::Object(fields) = field else {
                return Err(wrong(
                    "a field with a value of its own has no fields below it",
                ));
            };
            field = fields.entry(name).or_insert(Value::Null);
        }
        *field = value(field, &text.replace("\\,", ","))
            .ok_or_else(|| wrong("the value is not YAML"))?;
    }
    Ok(())
}

/// What the text means where that value is now: text where there is text, or nothing.
fn value(now: &Value, text: &str) -> Option<Value> {
    let is_composed = text.starts_with(['[', '{']);
    if text == "null" {
        return Some(Value::Null);
    }
    if !is_composed && matches!(now, Value::String(_) | Value::Null) {
        return Some(text.into());
    }
    tortie_api::yaml::parse_one(text).ok()
}

/// At each separator, but for those in brackets and those after a backslash.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    let mut is_escaped = false;
    text.split(move |c: char| {
        let was_escaped = std::mem::replace(&mut is_escaped, c == '\\');
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == separator && depth == 0 && !was_escaped
    })
}

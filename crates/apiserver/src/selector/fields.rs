//! Field selectors: `metadata.name=web,spec.nodeName!=node1`.

use std::borrow::Cow;

use serde_json::Value;

/// A selector by fields; all of its requirements must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    /// The field, as a JSON pointer.
    pointer: String,
    value: String,
    is_equal: bool,
}

impl FieldSelector {
    /// Reads a selector; an empty text selects everything. Only the given fields may be asked for.
    pub fn parse(text: &str, fields: &[&str]) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for part in split(text) {
            let (field, value, is_equal) = operator(part).ok_or_else(|| {
                format!("{part:?} is not of the form field=value or field!=value")
            })?;
            if !fields.contains(&field) {
                return Err(format!("field label not supported: {field}"));
            }
            requirements.push(Requirement {
                pointer: format!("/{}", field.replace('.', "/")),
                value: unescape(value)?,
                is_equal,
            });
        }
        Ok(Self { requirements })
    }

    /// The same for the object of one name.
    #[must_use]
    pub fn and_name(mut self, name: &str) -> Self {
        self.requirements.push(Requirement {
            pointer: "/metadata/name".to_owned(),
            value: name.to_owned(),
            is_equal: true,
        });
        self
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The value that a field must have, if there is one. The field is written with dots.
    pub fn required(&self, field: &str) -> Option<&str> {
        let pointer = format!("/{}", field.replace('.', "/"));
        let mut requirements = self.requirements.iter();
        let found =
            requirements.find(|requirement| requirement.is_equal && requirement.pointer == pointer);
        found.map(|requirement| requirement.value.as_str())
    }

    /// What the first condition on a field says: a value, and whether the field must have it or must not. The field is
    /// written with dots.
    pub fn condition(&self, field: &str) -> Option<(&str, bool)> {
        let pointer = format!("/{}", field.replace('.', "/"));
        let mut requirements = self.requirements.iter();
        let found = requirements.find(|requirement| requirement.pointer == pointer);
        found.map(|requirement| (requirement.value.as_str(), requirement.is_equal))
    }

    /// Whether it selects an object. A field that is not there counts as empty.
    pub fn selects(&self, object: &Value) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = match object.pointer(&requirement.pointer) {
                Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
                None | Some(Value::Null) => Cow::Borrowed(""),
                Some(other) => Cow::Owned(other.to_string()),
            };
            (value == requirement.value) == requirement.is_equal
        })
    }
}

/// The parts between commas that are not escaped.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

fn operator(part: &str) -> Option<(&str, &str, bool)> {
    let at = part.find('=')?;
    let (field, value) = (&part[..at], &part[at + 1..]);
    match field.strip_suffix('!') {
        Some(field) => Some((field.trim(), value, false)),
        None => Some((field.trim(), value.strip_prefix('=').unwrap_or(value), true)),
    }
}

fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                _ => {
                    return Err(format!(
                        "{value:?}: a backslash stands only before '\\', ',' and '='"
                    ));
                }
            },
            '=' => return Err(format!("{value:?}: '=' in a value is written '\\='")),
            other => plain.push(other),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELDS: &[&str] = &["metadata.name", "spec.nodeName", "spec.hostNetwork"];

    #[test]
    fn requirements_hold_or_not() {
        let pod = json!({"metadata": {"name": "a,b"}, "spec": {"hostNetwork": true}});
        for (selector, expected) in [
            ("", true),
            ("metadata.name=a\\,b", true),
            ("metadata.name==a\\,b", true),
            ("metadata.name!=x", true),
            ("spec.nodeName=", true),
            ("spec.nodeName!=,metadata.name=a\\,b", false),
            ("spec.hostNetwork=true", true),
        ] {
            let parsed = FieldSelector::parse(selector, FIELDS).unwrap();
            assert_eq!(parsed.selects(&pod), expected, "{selector}");
        }
    }

    #[test]
    fn only_known_fields_are_taken() {
        let error = FieldSelector::parse("spec.secret=x", FIELDS).unwrap_err();
        assert_eq!(error, "field label not supported: spec.secret");
        assert!(FieldSelector::parse("metadata.name", FIELDS).is_err());
        assert!(FieldSelector::parse("metadata.name=a\\b", FIELDS).is_err());
        assert!(FieldSelector::parse("metadata.name=a=b", FIELDS).is_err());
        let parsed = FieldSelector::parse("metadata.name=x", FIELDS).unwrap();
        assert_eq!(parsed.required("metadata.name"), Some("x"));
        assert_eq!(parsed.required("spec.nodeName"), None);
    }
}

//! Checks values against the tree and fills in defaults.

use serde_json::{Map, Value};

use super::{Bounds, Fields, Node, Shape, TextRules};
use crate::net;
use crate::problem::{Path, Problems, UNKNOWN_FIELD};
use crate::repeated::repeated;

/// How much of the schema applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// A document as written: its structure is checked, unknown fields included. The content is not, because it is
    /// still to be brought into its normal form and given its defaults.
    Input,
    /// A document that is refused already: the named rules of its fields, so that all problems come at once.
    Refused,
    /// An object in its normal form: everything is checked.
    Stored,
}

impl Node {
    /// Notes all that is wrong with a value.
    pub(crate) fn check(&self, value: &Value, strictness: Strictness, problems: &mut Problems) {
        self.check_at(&Path::ROOT, value, strictness, problems);
    }

    fn check_at(
        &self,
        at: &Path<'_>,
        value: &Value,
        strictness: Strictness,
        problems: &mut Problems,
    ) {
        // Null means "not given" everywhere, as it does for Kubernetes.
        if value.is_null() {
            return;
        }
        if !self.has_type(value) {
            problems.add(at, value, format!("must be {}", self.type_in_words()));
            return;
        }
        if !self.allowed.is_empty() && !self.allowed.contains(value) {
            problems.add(
                at,
                value,
                format!("must be one of {}", in_words(&self.allowed)),
            );
            return;
        }
        match (&self.shape, value) {
            (Shape::Struct(fields), Value::Object(object)) => {
                fields.check(at, object, strictness, problems);
            }
            (Shape::Map { values }, Value::Object(object)) => {
                for (key, value) in object {
                    values.check_at(&at.field(key), value, strictness, problems);
                }
            }
            (
                Shape::List {
                    items,
                    min,
                    max,
                    is_set,
                },
                Value::Array(list),
            ) => {
                for (index, item) in list.iter().enumerate() {
                    items.check_at(&at.index(index), item, strictness, problems);
                }
                if strictness == Strictness::Stored {
                    check_list(at, list, (*min, *max), *is_set, problems);
                }
            }
            (Shape::Integer(bounds) | Shape::Number(bounds), Value::Number(number))
                if strictness == Strictness::Stored || bounds.format.is_some() =>
            {
                bounds.check(at, number, problems);
            }
            (Shape::Text(rules), Value::String(text)) if strictness == Strictness::Stored => {
                rules.check(at, text, problems);
            }
            _ => {}
        }
        if strictness == Strictness::Stored && self.is_filled && value.as_str() == Some("") {
            problems.add(at, value, "must not be empty");
        }
        if strictness != Strictness::Input {
            for check in &self.checks {
                check.apply(at, value, problems);
            }
        }
    }

    fn has_type(&self, value: &Value) -> bool {
        match &self.shape {
            Shape::Any => true,
            Shape::Boolean => value.is_boolean(),
            Shape::Integer(bounds) => {
                value.is_i64() || value.is_u64() || (bounds.accepts_text && value.is_string())
            }
            Shape::Number(_) => value.is_number(),
            Shape::IntOrString => value.is_i64() || value.is_u64() || value.is_string(),
            Shape::Text(_) => value.is_string(),
            Shape::List { .. } => value.is_array(),
            Shape::Map { .. } | Shape::Struct(_) => value.is_object(),
        }
    }

    fn type_in_words(&self) -> &'static str {
        match &self.shape {
            Shape::Any => "anything",
            Shape::Boolean => "true or false, without quotes",
            Shape::Integer(_) => "a whole number, without quotes",
            Shape::Number(_) => "a number, without quotes",
            Shape::IntOrString => "a whole number or a string",
            Shape::Text(_) => "a string, in quotes",
            Shape::List { .. } => "a list",
            Shape::Map { .. } | Shape::Struct(_) => "an object",
        }
    }

    /// Brings what a person wrote closer to the normal form: whole numbers and booleans where text belongs become text,
    /// as an unquoted YAML value would, and optional enums that are empty strings are removed. Of a fraction nobody
    /// knows here how it was written.
    pub(crate) fn normalise(&self, value: &mut Value) {
        match (&self.shape, value) {
            (Shape::Text(rules), value @ (Value::Number(_) | Value::Bool(_)))
                if rules.format.is_none() && !value.is_f64() =>
            {
                *value = Value::String(value.to_string());
            }
            (Shape::Struct(fields), Value::Object(object)) => {
                object.retain(|name, value| {
                    let may_be_empty = fields
                        .known
                        .get(name)
                        .is_some_and(|field| field.may_be_empty);
                    !(may_be_empty && value.as_str() == Some(""))
                });
                for (name, value) in object {
                    if let Some(field) = fields.known.get(name) {
                        field.normalise(value);
                    }
                }
            }
            (Shape::Map { values }, Value::Object(object)) => {
                for value in object.values_mut() {
                    values.normalise(value);
                }
            }
            (Shape::List { items, .. }, Value::Array(list)) => {
                for value in list {
                    items.normalise(value);
                }
            }
            _ => {}
        }
    }

    /// Fills in the defaults of fields that are missing; tells whether there were any.
    pub(crate) fn apply_defaults(&self, value: &mut Value) -> bool {
        match (&self.shape, value) {
            (Shape::Struct(fields), Value::Object(object)) => {
                let mut changed = false;
                for (name, field) in &fields.known {
                    if let (Some(default), None | Some(Value::Null)) =
                        (&field.default, object.get(name))
                    {
                        object.insert(name.clone(), default.clone());
                        changed = true;
                    }
                    if let Some(value) = object.get_mut(name) {
                        changed |= field.apply_defaults(value);
                    }
                }
                changed
            }
            (Shape::Map { values }, Value::Object(object)) => object
                .values_mut()
                .fold(false, |changed, v| values.apply_defaults(v) | changed),
            (Shape::List { items, .. }, Value::Array(list)) => list
                .iter_mut()
                .fold(false, |changed, v| items.apply_defaults(v) | changed),
            _ => false,
        }
    }
}

impl Fields {
    fn check(
        &self,
        at: &Path<'_>,
        object: &Map<String, Value>,
        strictness: Strictness,
        problems: &mut Problems,
    ) {
        for (name, value) in object {
            match self.known.get(name) {
                Some(field) => field.check_at(&at.field(name), value, strictness, problems),
                None if strictness == Strictness::Input => {
                    let near = self.nearest(name);
                    let hint = near
                        .map(|near| format!("; did you mean `{near}`?"))
                        .unwrap_or_default();
                    problems.add(&at.field(name), value, format!("{UNKNOWN_FIELD}{hint}"));
                }
                None => {}
            }
        }
        for name in &self.required {
            // Reading fills in a missing enum, so it must be noticed before.
            let is_checked = strictness != Strictness::Refused
                && (strictness == Strictness::Stored || self.is_chosen(name));
            if is_checked && object.get(name).is_none_or(Value::is_null) {
                problems.add_missing(&at.field(name), "must be given");
            }
        }
        if strictness != Strictness::Stored {
            return;
        }
        let len = object.len() as u64;
        if self.min.is_some_and(|min| len < min) || self.max.is_some_and(|max| len > max) {
            let names: Vec<_> = self
                .known
                .keys()
                .map(|name| Value::from(name.as_str()))
                .collect();
            let rule = format!("must have exactly one of the fields {}", in_words(&names));
            problems.add(at, object, rule);
        }
    }

    /// Whether the field is an enum without an empty value.
    fn is_chosen(&self, name: &str) -> bool {
        let is_unset = |value: &Value| value.as_str() == Some("");
        self.known
            .get(name)
            .is_some_and(|field| !field.allowed.is_empty() && !field.allowed.iter().any(is_unset))
    }

    /// The known field that an unknown one most likely stands for.
    fn nearest(&self, name: &str) -> Option<&str> {
        let lower = name.to_ascii_lowercase();
        let distance = |known: &str| edit_distance(&known.to_ascii_lowercase(), &lower);
        let best = self.known.keys().min_by_key(|known| distance(known))?;
        (distance(best) <= 1 + name.len() / 5).then_some(best)
    }
}

impl Bounds {
    fn check(&self, at: &Path<'_>, number: &serde_json::Number, problems: &mut Problems) {
        let Some(value) = number.as_f64() else { return };
        let rule = match (self.min, self.max) {
            (Some(min), Some(max)) if value < min || value > max => {
                format!("must be from {min} to {max}")
            }
            (Some(min), _) if value < min => format!("must be at least {min}"),
            (_, Some(max)) if value > max => format!("must be at most {max}"),
            _ => return,
        };
        problems.add(at, number, rule);
    }
}

impl TextRules {
    fn check(&self, at: &Path<'_>, text: &str, problems: &mut Problems) {
        let length = text.chars().count() as u64;
        if self.max.is_some_and(|max| length > max) {
            let max = self.max.unwrap_or_default();
            problems.add(
                at,
                text,
                format!("must be at most {max} characters, is {length}"),
            );
        }
        if self.min.is_some_and(|min| length < min) {
            problems.add(at, text, "must not be empty");
        }
        if self.format.as_deref() == Some("cidr")
            && !text.is_empty()
            && net::parse_cidr(text).is_none()
        {
            problems.add(
                at,
                text,
                "must be a CIDR: an address, `/` and a prefix length",
            );
        }
        if let Some(pattern) = self
            .pattern
            .as_ref()
            .filter(|pattern| !pattern.is_match(text))
        {
            problems.add(at, text, format!("must match the pattern {pattern}"));
        }
    }
}

fn check_list(
    at: &Path<'_>,
    list: &[Value],
    (min, max): (Option<u64>, Option<u64>),
    is_set: bool,
    problems: &mut Problems,
) {
    let length = list.len() as u64;
    if let Some(max) = max.filter(|max| length > *max) {
        problems.add(
            at,
            list,
            format!("must have at most {max} items, has {length}"),
        );
    }
    if let Some(min) = min.filter(|min| length < *min) {
        problems.add(at, list, format!("must have at least {min} items"));
    }
    if is_set {
        for (index, item) in repeated(list) {
            problems.add(&at.index(index), item, "must not be given twice");
        }
    }
}

/// `a`, `b` or `c`.
fn in_words(values: &[Value]) -> String {
    let mut names: Vec<String> = values
        .iter()
        .map(|value| {
            format!(
                "`{}`",
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
            )
        })
        .collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() {
        last
    } else {
        format!("{} or {last}", names.join(", "))
    }
}

/// How many characters must change to turn one word into the other.
pub(crate) fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

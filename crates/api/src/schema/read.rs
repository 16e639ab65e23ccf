//! Reads the JSON schema that the types derive into our tree.

use regex::Regex;
use serde_json::{Map, Value};

use super::{Bounds, Check, Fields, Node, Shape, TextRules};

type Keywords = Map<String, Value>;

/// Keywords that are passed through to the CRD.
const KUBERNETES: [&str; 3] = [
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

pub(super) fn node(schema: &Value) -> Node {
    let Value::Object(keywords) = schema else {
        return Node::default();
    };
    if let Some(inner) = only_alternative(keywords) {
        // `Option<T>` and documented wrappers: the inner schema with the outer keywords laid over it.
        let mut merged = inner.clone();
        for (key, value) in keywords {
            if !matches!(key.as_str(), "anyOf" | "oneOf" | "allOf" | "nullable") {
                merged.insert(key.clone(), value.clone());
            }
        }
        return node(&Value::Object(merged));
    }
    let mut result = Node {
        description: keywords
            .get("description")
            .and_then(Value::as_str)
            .map(one_line),
        default: keywords.get("x-default").cloned(),
        allowed: allowed_values(keywords),
        checks: keywords
            .get("x-check")
            .and_then(Value::as_str)
            .map(Check::parse_all)
            .unwrap_or_default(),
        shape: shape(keywords),
        is_filled: false,
        is_nullable: keywords.contains_key("x-nullable"),
        is_unlisted: keywords.contains_key("x-unlisted"),
        may_be_empty: keywords.contains_key("x-empty"),
        kubernetes: KUBERNETES
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), keywords.get(*key)?.clone())))
            .collect(),
    };
    if let Shape::List { items, .. } = &mut result.shape {
        // Rules, formats and enums that stand on a list speak of its items.
        let per_item = result
            .checks
            .iter()
            .filter(|check| check.is_per_item())
            .cloned();
        items.checks.extend(per_item);
        result.checks.retain(|check| !check.is_per_item());
        items.is_filled = !items.checks.is_empty();
        if let (Shape::Text(rules), Some(format)) = (&mut items.shape, keywords.get("format")) {
            rules.format = format.as_str().map(str::to_owned);
        }
        if items.allowed.is_empty() {
            items.allowed = std::mem::take(&mut result.allowed);
        }
    }
    result
}

/// The one schema that an `anyOf`, `oneOf` or `allOf` offers besides null.
fn only_alternative(keywords: &Keywords) -> Option<&Keywords> {
    ["anyOf", "oneOf", "allOf"].iter().find_map(|key| {
        let mut real = keywords
            .get(*key)?
            .as_array()?
            .iter()
            .filter_map(|alternative| {
                let alternative = alternative.as_object()?;
                let is_null = alternative.get("type").is_some_and(|t| t == "null")
                    || (alternative.get("nullable").is_some()
                        && alternative
                            .get("enum")
                            .is_some_and(|e| e == &Value::Array(vec![Value::Null])));
                (!is_null).then_some(alternative)
            });
        let first = real.next()?;
        real.next().is_none().then_some(first)
    })
}

/// The values of an enum, whether listed or, for documented variants, given one by one.
fn allowed_values(keywords: &Keywords) -> Vec<Value> {
    if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
        return values
            .iter()
            .filter(|value| !value.is_null())
            .cloned()
            .collect();
    }
    let Some(variants) = keywords.get("oneOf").and_then(Value::as_array) else {
        return Vec::new();
    };
    variants
        .iter()
        .flat_map(|variant| {
            let listed = variant
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            variant.get("const").cloned().into_iter().chain(listed)
        })
        .filter(|value| !value.is_null())
        .collect()
}

fn shape(keywords: &Keywords) -> Shape {
    let is = |key: &str| {
        keywords
            .get(key)
            .is_some_and(|value| value == &Value::Bool(true))
    };
    let format = || {
        keywords
            .get("format")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    if is("x-kubernetes-int-or-string") || format().as_deref() == Some("int-or-string") {
        return Shape::IntOrString;
    }
    let count = |key: &str| keywords.get(key).and_then(Value::as_u64);
    let bounds = || Bounds {
        min: keywords.get("minimum").and_then(Value::as_f64),
        max: keywords.get("maximum").and_then(Value::as_f64),
        format: format(),
        accepts_text: keywords.get("x-accepts").is_some(),
    };
    match type_name(keywords) {
        Some("boolean") => Shape::Boolean,
        Some("integer") => Shape::Integer(bounds()),
        Some("number") => Shape::Number(bounds()),
        Some("string") => Shape::Text(TextRules {
            min: count("minLength"),
            max: count("maxLength"),
            pattern: keywords
                .get("pattern")
                .and_then(Value::as_str)
                .map(|pattern| Regex::new(pattern).expect("patterns of our own types compile")),
            format: format(),
        }),
        Some("array") => Shape::List {
            items: Box::new(keywords.get("items").map(item).unwrap_or_default()),
            min: count("minItems"),
            max: count("maxItems"),
            is_set: keywords
                .get("x-kubernetes-list-type")
                .is_some_and(|t| t == "set")
                && !keywords.contains_key("x-repeats"),
        },
        Some("object") => object(keywords),
        _ => Shape::Any,
    }
}

/// The schema of a list's items, where null is a value of its own.
fn item(schema: &Value) -> Node {
    let is_nullable = schema
        .get("nullable")
        .is_some_and(|value| value == &Value::Bool(true));
    Node {
        is_nullable,
        ..node(schema)
    }
}

fn object(keywords: &Keywords) -> Shape {
    if let Some(values) = keywords
        .get("additionalProperties")
        .filter(|v| v.is_object())
    {
        return Shape::Map {
            values: Box::new(node(values)),
        };
    }
    let properties = keywords.get("properties").and_then(Value::as_object);
    let required = keywords.get("required").and_then(Value::as_array);
    Shape::Struct(Fields {
        known: properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.clone(), node(schema)))
            .collect(),
        required: required
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        min: keywords.get("minProperties").and_then(Value::as_u64),
        max: keywords.get("maxProperties").and_then(Value::as_u64),
    })
}

/// The type of a schema; a variant list of an enum counts as its variants' type.
fn type_name(keywords: &Keywords) -> Option<&str> {
    match keywords.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|n| *n != "null"),
        _ => keywords
            .get("oneOf")?
            .as_array()?
            .first()?
            .get("type")?
            .as_str(),
    }
}

/// Doc comments are wrapped at the width of the source; descriptions are not.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

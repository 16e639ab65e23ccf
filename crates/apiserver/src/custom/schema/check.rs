//! Whether a value is as its schema says.

use regex::Regex;
use serde_json::Value;
use tortie_api::{Path, Problems};

use super::is_set;

/// Says of a field that it is a number or a text.
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Notes what is wrong with a value.
pub(super) fn check(schema: &Value, value: &Value, at: &Path<'_>, problems: &mut Problems) {
    if value.is_null() && is_set(schema, "nullable") {
        return;
    }
    if let Some(expected) = wrong_type(schema, value) {
        return problems.add(at, value, format!("must be of type {expected}"));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        problems.add(at, value, format!("must be one of {}", allowed.join(", ")));
    }
    match value {
        Value::Object(fields) => {
            let required = schema["required"].as_array().into_iter().flatten();
            for name in required.filter_map(Value::as_str) {
                if !fields.contains_key(name) {
                    problems.add_missing(&at.field(name), "Required value");
                }
            }
            check_count(schema, "Properties", fields.len(), at, problems);
            for (name, value) in fields {
                let inner = schema["properties"].get(name);
                if let Some(inner) = inner.or_else(|| schema.get("additionalProperties")) {
                    check(inner, value, &at.field(name), problems);
                }
            }
        }
        Value::Array(items) => {
            check_count(schema, "Items", items.len(), at, problems);
            if is_set(schema, "uniqueItems") {
                let mut others = items.iter().enumerate();
                if let Some((_, twice)) =
                    others.find(|(place, item)| items[..*place].contains(item))
                {
                    problems.add(at, twice, "must not be there twice");
                }
            }
            if let Some(of_items) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    check(of_items, item, &at.index(index), problems);
                }
            }
        }
        Value::String(text) => check_text(schema, text, at, problems),
        Value::Number(number) => check_number(schema, number.as_f64(), value, at, problems),
        _ => {}
    }
    check_alternatives(schema, value, at, problems);
}

/// The type that a value should have and has not.
fn wrong_type<'a>(schema: &'a Value, value: &Value) -> Option<&'a str> {
    if is_set(schema, INT_OR_STRING) {
        let is_right = value.is_string() || value.is_i64() || value.is_u64();
        return (!is_right).then_some("integer or string");
    }
    let expected = schema["type"].as_str()?;
    let is_whole = || value.as_f64().is_some_and(|number| number.fract() == 0.0);
    let is_right = match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => is_whole(),
        _ => true,
    };
    (!is_right).then_some(expected)
}

/// How many there may be: `minItems`, `maxLength` and so on.
fn check_count(schema: &Value, of: &str, count: usize, at: &Path<'_>, problems: &mut Problems) {
    let bound = |word: &str| {
        let bound = schema[format!("{word}{of}")].as_u64();
        bound.and_then(|bound| usize::try_from(bound).ok())
    };
    if let Some(least) = bound("min").filter(|least| count < *least) {
        problems.add(
            at,
            count,
            format!("should have at least {least} {}", of.to_lowercase()),
        );
    }
    if let Some(most) = bound("max").filter(|most| count > *most) {
        problems.add(
            at,
            count,
            format!("must have at most {most} {}", of.to_lowercase()),
        );
    }
}

fn check_text(schema: &Value, text: &str, at: &Path<'_>, problems: &mut Problems) {
    check_count(schema, "Length", text.chars().count(), at, problems);
    if let Some(pattern) = schema["pattern"].as_str()
        // One that cannot be read was refused with the definition.
        && Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text))
    {
        problems.add(at, text, format!("must match {pattern:?}"));
    }
    let is_right = match schema["format"].as_str() {
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        Some("date") => text.parse::<jiff::civil::Date>().is_ok(),
        Some("ipv4") => text.parse::<std::net::Ipv4Addr>().is_ok(),
        Some("ipv6") => text.parse::<std::net::Ipv6Addr>().is_ok(),
        Some("cidr") => text.parse::<ipnet::IpNet>().is_ok(),
        Some("uuid") => uuid::Uuid::parse_str(text).is_ok(),
        _ => true,
    };
    if !is_right {
        let format = schema["format"].as_str().unwrap_or_default();
        problems.add(at, text, format!("must be of format {format}"));
    }
}

fn check_number(
    schema: &Value,
    number: Option<f64>,
    value: &Value,
    at: &Path<'_>,
    problems: &mut Problems,
) {
    let Some(number) = number else {
        return;
    };
    if let Some(least) = schema["minimum"].as_f64() {
        let is_exclusive = is_set(schema, "exclusiveMinimum");
        if number < least || (is_exclusive && number <= least) {
            let more = if is_exclusive {
                "greater than"
            } else {
                "greater than or equal to"
            };
            problems.add(at, value, format!("should be {more} {least}"));
        }
    }
    if let Some(most) = schema["maximum"].as_f64() {
        let is_exclusive = is_set(schema, "exclusiveMaximum");
        if number > most || (is_exclusive && number >= most) {
            let less = if is_exclusive {
                "less than"
            } else {
                "less than or equal to"
            };
            problems.add(at, value, format!("should be {less} {most}"));
        }
    }
    if let Some(factor) = schema["multipleOf"].as_f64().filter(|factor| *factor > 0.0)
        && (number / factor).fract() != 0.0
    {
        problems.add(at, value, format!("should be a multiple of {factor}"));
    }
    let is_right = match schema["format"].as_str() {
        Some("int32") => value
            .as_i64()
            .is_some_and(|number| i32::try_from(number).is_ok()),
        Some("int64") => value.as_i64().is_some() || number.fract() == 0.0,
        _ => true,
    };
    if !is_right {
        let format = schema["format"].as_str().unwrap_or_default();
        problems.add(at, value, format!("must be of format {format}"));
    }
}

fn check_alternatives(schema: &Value, value: &Value, at: &Path<'_>, problems: &mut Problems) {
    let list = |word: &str| schema[word].as_array().into_iter().flatten();
    let matches = |schema: &&Value| {
        let mut own = Problems::default();
        check(schema, value, at, &mut own);
        own.is_empty()
    };
    for schema in list("allOf") {
        check(schema, value, at, problems);
    }
    if schema["anyOf"].is_array() && !list("anyOf").any(|schema| matches(&schema)) {
        problems.add(at, value, "must validate at least one schema (anyOf)");
    }
    if schema["oneOf"].is_array() && list("oneOf").filter(matches).count() != 1 {
        problems.add(at, value, "must validate one and only one schema (oneOf)");
    }
    if schema.get("not").is_some_and(|not| matches(&not)) {
        problems.add(at, value, "must not validate the schema (not)");
    }
}

//! Structural schemas: what custom resources may hold, what is dropped of them, and what is filled in.

mod check;

use serde_json::{Map, Value};
use tortie_api::Problems;

/// Says of an object or field that what the schema does not name is kept.
const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";

/// Says of a field that it is an object of its own, with a kind and metadata.
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// What every object has, whatever its schema says.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The schema of one version of a kind.
#[derive(Debug, Clone)]
pub(super) struct Schema(Value);

impl Schema {
    /// A schema as a definition holds it.
    pub(super) fn new(schema: Value) -> Self {
        Self(schema)
    }

    /// Drops what the schema does not name.
    pub(super) fn prune(&self, object: &mut Value) {
        prune(&self.0, object, true);
    }

    /// Fills in defaults.
    pub(super) fn fill_in(&self, object: &mut Value) {
        fill_in(&self.0, object);
    }

    /// Notes what is wrong.
    pub(super) fn check(&self, object: &Value, problems: &mut Problems) {
        check::check(&self.0, object, &tortie_api::Path::ROOT, problems);
    }
}

fn is_set(schema: &Value, keyword: &str) -> bool {
    schema[keyword] == true
}

fn prune(schema: &Value, value: &mut Value, is_object: bool) {
    match value {
        Value::Object(fields) => {
            prune_fields(schema, fields, is_object || is_set(schema, EMBEDDED));
        }
        Value::Array(items) => {
            if let Some(of_items) = schema.get("items") {
                for item in items {
                    prune(of_items, item, false);
                }
            }
        }
        _ => {}
    }
}

fn prune_fields(schema: &Value, fields: &mut Map<String, Value>, has_envelope: bool) {
    let others = schema
        .get("additionalProperties")
        .filter(|others| **others != false);
    let keeps = is_set(schema, PRESERVES);
    fields.retain(|name, value| {
        if has_envelope && ENVELOPE.contains(&name.as_str()) {
            return true;
        }
        match schema["properties"].get(name).or(others) {
            // Nothing was given where nothing cannot be.
            Some(inner) if value.is_null() => is_set(inner, "nullable") || is_set(inner, PRESERVES),
            Some(inner) => {
                prune(inner, value, false);
                true
            }
            None => keeps,
        }
    });
}

fn fill_in(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = inner.get("default").filter(|_| !fields.contains_key(name)) {
                    fields.insert(name.clone(), default.clone());
                }
                if let Some(value) = fields.get_mut(name) {
                    fill_in(inner, value);
                }
            }
            if let Some(others) = schema
                .get("additionalProperties")
                .filter(|it| it.is_object())
            {
                for (name, value) in fields {
                    if schema["properties"].get(name).is_none() {
                        fill_in(others, value);
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(of_items) = schema.get("items") {
                for item in items {
                    fill_in(of_items, item);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::new(json!({
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": {
                    "type": "object",
                    "required": ["size"],
                    "properties": {
                        "size": {"type": "integer", "minimum": 1, "maximum": 9},
                        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                        "when": {"type": "string", "format": "date-time"},
                        "port": {"x-kubernetes-int-or-string": true},
                        "maybe": {"type": "string", "nullable": true},
                        "tags": {"type": "array", "maxItems": 2, "items": {"type": "object", "properties": {
                            "key": {"type": "string"}, "on": {"type": "boolean", "default": true},
                        }}},
                        "map": {"type": "object", "additionalProperties": {"type": "number"}},
                        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "either": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                            "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                    },
                },
            },
        }))
    }

    #[test]
    fn what_the_schema_does_not_name_goes_and_defaults_come() {
        let mut object = json!({
            "apiVersion": "x/v1", "kind": "K", "metadata": {"name": "a", "labels": {"b": "c"}}, "other": 1,
            "spec": {
                "size": 1, "unknown": {}, "maybe": null, "name": null, "tags": [{"key": "k", "more": 1}],
                "map": {"x": 1.5}, "any": {"deep": {"er": 1}},
            },
        });
        schema().prune(&mut object);
        schema().fill_in(&mut object);
        let expected = json!({
            "apiVersion": "x/v1", "kind": "K", "metadata": {"name": "a", "labels": {"b": "c"}},
            "spec": {
                "size": 1, "color": "red", "maybe": null, "tags": [{"key": "k", "on": true}],
                "map": {"x": 1.5}, "any": {"deep": {"er": 1}},
            },
        });
        assert_eq!(object, expected);
    }

    #[test]
    fn what_breaks_the_schema_is_named() {
        let problems = |spec: Value| {
            let mut problems = Problems::default();
            schema().check(&json!({"spec": spec}), &mut problems);
            let fields = problems.iter().map(|problem| problem.field.clone());
            fields.collect::<Vec<_>>()
        };
        let right = json!({
            "size": 9, "color": "blue", "name": "abc", "when": "2026-01-01T00:00:00Z", "port": "http",
            "maybe": null, "tags": [{"key": "a"}], "map": {"a": 1, "b": 1.5}, "either": {"a": "x"},
        });
        assert_eq!(problems(right), Vec::<String>::new());
        for (spec, field) in [
            (json!({}), "spec.size"),
            (json!({"size": 0}), "spec.size"),
            (json!({"size": 10}), "spec.size"),
            (json!({"size": "1"}), "spec.size"),
            (json!({"size": 1.5}), "spec.size"),
            (json!({"size": 1, "color": "green"}), "spec.color"),
            (json!({"size": 1, "name": "A"}), "spec.name"),
            (json!({"size": 1, "name": "abcdef"}), "spec.name"),
            (json!({"size": 1, "when": "today"}), "spec.when"),
            (json!({"size": 1, "port": true}), "spec.port"),
            (json!({"size": 1, "tags": [{}, {}, {}]}), "spec.tags"),
            (json!({"size": 1, "tags": [{"key": 1}]}), "spec.tags[0].key"),
            (json!({"size": 1, "map": {"a": "b"}}), "spec.map.a"),
            (json!({"size": 1, "either": {}}), "spec.either"),
            (
                json!({"size": 1, "either": {"a": "x", "b": "y"}}),
                "spec.either",
            ),
        ] {
            assert_eq!(problems(spec.clone()), [field], "{spec}");
        }
    }
}

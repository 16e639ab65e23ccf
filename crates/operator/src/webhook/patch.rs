//! What a handler changed, and nothing else.

use serde_json::{Map, Value};

/// The original with the changes from `before` to `after`, which are the original as a type understands it: fields that
/// are the same in both stay as they were written, also those that the type does not know.
pub(super) fn overlay(original: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return original.clone();
    }
    match (original, before, after) {
        (Value::Object(original), Value::Object(before), Value::Object(after)) => {
            Value::Object(overlay_fields(original, before, after))
        }
        (Value::Array(original), Value::Array(before), Value::Array(after))
            if original.len() == before.len() && before.len() == after.len() =>
        {
            let items = original.iter().zip(before).zip(after);
            items
                .map(|((original, before), after)| overlay(original, before, after))
                .collect()
        }
        _ => after.clone(),
    }
}

fn overlay_fields(
    original: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let mut fields = original.clone();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        fields.remove(name);
    }
    for (name, value) in after {
        let old = before.get(name);
        if old == Some(value) {
            continue;
        }
        let changed = match (original.get(name), old) {
            (Some(original), Some(old)) => overlay(original, old, value),
            _ => value.clone(),
        };
        fields.insert(name.clone(), changed);
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "callers read better")]
    fn check(original: Value, before: Value, after: Value, expected: Value) {
        assert_eq!(overlay(&original, &before, &after), expected);
        let patch = json_patch::diff(&original, &expected);
        let mut patched = original;
        json_patch::patch(&mut patched, &patch).unwrap();
        assert_eq!(patched, expected);
    }

    #[test]
    fn fields_that_the_type_does_not_know_stay() {
        check(
            json!({"spec": {"known": 1, "unknown": 2}, "other": 3}),
            json!({"spec": {"known": 1}}),
            json!({"spec": {"known": 4}}),
            json!({"spec": {"known": 4, "unknown": 2}, "other": 3}),
        );
    }

    #[test]
    fn defaults_that_only_the_type_sees_are_not_written() {
        check(
            json!({"spec": {}}),
            json!({"spec": {"a": 0, "b": 0}, "status": {}}),
            json!({"spec": {"a": 0, "b": 1}, "status": {}}),
            json!({"spec": {"b": 1}}),
        );
    }

    #[test]
    fn a_field_below_one_that_is_not_there_is_added_with_it() {
        check(
            json!({}),
            json!({"metadata": {}}),
            json!({"metadata": {"labels": {"a": "b"}}}),
            json!({"metadata": {"labels": {"a": "b"}}}),
        );
    }

    #[test]
    fn removed_fields_are_removed() {
        check(
            json!({"a": 1, "b": {"c": 1, "d": 2}}),
            json!({"a": 1, "b": {"c": 1}}),
            json!({"b": {}}),
            json!({"b": {"d": 2}}),
        );
    }

    #[test]
    fn items_of_lists_keep_what_the_type_does_not_know() {
        check(
            json!([{"a": 1, "x": 1}, {"a": 2, "x": 2}]),
            json!([{"a": 1}, {"a": 2}]),
            json!([{"a": 1}, {"a": 3}]),
            json!([{"a": 1, "x": 1}, {"a": 3, "x": 2}]),
        );
    }
}

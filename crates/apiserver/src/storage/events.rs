//! Events have two views, of the core group and of a group of their own, with other names for some fields. They are kept as
//! the core group has them.

use serde_json::{Map, Value, json};

/// What the core group and the other one call a field.
const NAMES: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

const CORE: &str = "v1";
const OTHER: &str = "events.k8s.io/v1";

/// The core group's view of an event that the other group shows.
pub(super) fn to_core(event: Value) -> Value {
    let names = NAMES.map(|(core, other)| (other, core));
    renamed(event, &names, OTHER, CORE)
}

/// The other group's view of an event that the core group shows.
pub(super) fn from_core(event: Value) -> Value {
    renamed(event, &NAMES, CORE, OTHER)
}

fn renamed(mut event: Value, names: &[(&str, &str)], from: &str, to: &str) -> Value {
    let Some(fields) = event.as_object_mut() else {
        return event;
    };
    rename(fields, names, "");
    fields.insert("apiVersion".to_owned(), json!(to));
    let managed = event.pointer_mut("/metadata/managedFields");
    for entry in managed.and_then(Value::as_array_mut).into_iter().flatten() {
        if entry["apiVersion"] != from {
            continue;
        }
        entry["apiVersion"] = json!(to);
        if let Some(fields) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) {
            rename(fields, names, "f:");
        }
    }
    event
}

fn rename(fields: &mut Map<String, Value>, names: &[(&str, &str)], prefix: &str) {
    for (from, to) in names {
        if let Some(value) = fields.remove(&format!("{prefix}{from}")) {
            fields.insert(format!("{prefix}{to}"), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_views_say_the_same() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "message": "m", "count": 1, "reason": "r",
            "involvedObject": {"name": "p"},
            "metadata": {"name": "e", "managedFields": [
                {"apiVersion": "v1", "fieldsV1": {"f:message": {}, "f:reason": {}}},
            ]},
        });
        let other = from_core(core.clone());
        assert_eq!(other["apiVersion"], OTHER);
        assert_eq!(other["note"], "m");
        assert_eq!(other["regarding"]["name"], "p");
        assert_eq!(other.get("message"), None);
        let managed = &other["metadata"]["managedFields"][0];
        assert_eq!(managed["fieldsV1"], json!({"f:note": {}, "f:reason": {}}));
        assert_eq!(to_core(other), core);
    }
}

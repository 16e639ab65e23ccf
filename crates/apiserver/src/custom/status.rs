//! What definitions say of themselves.

use serde_json::{Value, json};

use super::{text, versions};
use crate::registry::ResourceType;

/// The status of a definition, by its names and those of the other types.
pub(super) fn of<'a>(
    definition: &Value,
    old: &Value,
    types: impl Iterator<Item = &'a ResourceType>,
    now: &str,
) -> Value {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let conflict = types
        .filter(|other| other.group == spec["group"])
        .find_map(|other| conflict(names, other));
    let (accepted, established) = match conflict {
        None => (
            condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
            condition(
                "Established",
                true,
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
        ),
        Some((reason, message)) => (
            condition("NamesAccepted", false, reason, &message),
            condition(
                "Established",
                false,
                "NotAccepted",
                "not all names are accepted",
            ),
        ),
    };
    let is_accepted = accepted["status"] == "True";
    let mut conditions = vec![accepted, established];
    for condition in &mut conditions {
        let before = old["conditions"].as_array().into_iter().flatten();
        let mut before = before.filter(|before| before["type"] == condition["type"]);
        let same = before.find(|before| before["status"] == condition["status"]);
        let since = same.map(|same| same["lastTransitionTime"].clone());
        condition["lastTransitionTime"] = since.unwrap_or_else(|| json!(now));
    }
    let stored = versions(spec).filter(|version| version["storage"] == true);
    let mut stored_versions: Vec<Value> = old["storedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for version in stored.map(|version| version["name"].clone()) {
        if !stored_versions.contains(&version) {
            stored_versions.push(version);
        }
    }
    json!({
        "acceptedNames": if is_accepted { names.clone() } else { json!({"plural": "", "kind": ""}) },
        "conditions": conditions,
        "storedVersions": stored_versions,
    })
}

/// Whether the kind of a definition is served.
pub(super) fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|found| found["type"] == "Established" && found["status"] == "True")
}

/// Says that a definition goes as soon as its objects are gone.
pub(super) fn terminate(definition: &mut Value, now: &str) {
    let conditions = &mut definition["status"]["conditions"];
    let is_said = |conditions: &Value| {
        let mut conditions = conditions.as_array().into_iter().flatten();
        conditions.any(|found| found["type"] == "Terminating")
    };
    if is_said(conditions) {
        return;
    }
    let text = "CustomResource deletion is in progress";
    let mut said = condition("Terminating", true, "InstanceDeletionInProgress", text);
    said["lastTransitionTime"] = json!(now);
    match conditions.as_array_mut() {
        Some(list) => list.push(said),
        None => *conditions = json!([said]),
    }
}

/// Which name another type of the same group has already.
fn conflict(names: &Value, other: &ResourceType) -> Option<(&'static str, String)> {
    let words = || {
        let short = other.short_names.iter().copied();
        short.chain([other.plural, &other.singular])
    };
    let is_taken = |word: &str| !word.is_empty() && words().any(|own| own == word);
    let taken = |word: &str| format!("{word:?} is already in use");
    let (plural, singular) = (text(&names["plural"]), text(&names["singular"]));
    if is_taken(&plural) {
        return Some(("PluralConflict", taken(&plural)));
    }
    if is_taken(&singular) {
        return Some(("SingularConflict", taken(&singular)));
    }
    let short = names["shortNames"].as_array().into_iter().flatten();
    let mut short = short.filter_map(Value::as_str);
    if let Some(word) = short.find(|word| is_taken(word)) {
        return Some(("ShortNamesConflict", taken(word)));
    }
    let kind = text(&names["kind"]);
    (kind == other.kind).then(|| ("KindConflict", taken(&kind)))
}

fn condition(name: &str, is_so: bool, reason: &str, message: &str) -> Value {
    let status = if is_so { "True" } else { "False" };
    json!({"type": name, "status": status, "reason": reason, "message": message})
}

//! Fields of Kubernetes policies that do not exist, such as a misspelt `podSelector`: without it, the policy would
//! mean something else.

use serde::Serialize;
use serde_json::Value;
use tortie_api::{Path, Problems};

/// Notes the fields of an object's spec that its type does not know.
pub(crate) fn note(value: &Value, typed: &impl Serialize, problems: &mut Problems) {
    let Ok(known) = serde_json::to_value(typed) else {
        return;
    };
    if let (Some(given), Some(known)) = (value.get("spec"), known.get("spec")) {
        compare(&Path::ROOT.field("spec"), given, known, problems);
    }
}

fn compare(at: &Path<'_>, given: &Value, known: &Value, problems: &mut Problems) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            for (field, value) in given.iter().filter(|(_, value)| !value.is_null()) {
                let at = at.field(field);
                match known.get(field) {
                    Some(known) => compare(&at, value, known, problems),
                    None => problems.add(&at, value, "is not a known field; it is ignored"),
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            for (index, (given, known)) in given.iter().zip(known).enumerate() {
                compare(&at.index(index), given, known, problems);
            }
        }
        _ => {}
    }
}

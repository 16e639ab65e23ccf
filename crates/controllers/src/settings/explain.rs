//! The settings for people, with where each comes from.

use serde_json::Value;

use super::Resolved;

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The path of its field in the resource.
    pub field: &'static str,
    pub value: String,
    /// Where the value comes from.
    pub origin: String,
}

/// All settings that a person can give.
pub fn explain(resolved: &Resolved) -> Vec<Explained> {
    let running = serde_json::to_value(&resolved.status.running_config).unwrap_or_default();
    let rows = resolved.origins.iter().map(|(field, origin)| Explained {
        field,
        value: value_at(&running, field),
        origin: origin.to_string(),
    });
    rows.collect()
}

/// What is at a path; a section is on or off.
fn value_at(running: &Value, field: &str) -> String {
    let found = field
        .split('.')
        .try_fold(running, |value, name| value.get(name));
    match found {
        None | Some(Value::Null) => "off".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(section)) => match section.get("reconcilerPeriod") {
            Some(Value::String(period)) if period == "0s" => "on".to_owned(),
            Some(Value::String(period)) => format!("on, compares everything every {period}"),
            _ => "on".to_owned(),
        },
        Some(other) => other.to_string(),
    }
}

//! The simple paths that printer columns are made of.

use serde_json::Value;

/// The first value at a path such as `.status.conditions[?(@.type=='Ready')].reason`.
///
/// Nothing if there is none, or if the path has parts other than fields and comparisons of a field with text.
pub(super) fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    if let Some(rest) = path.strip_prefix("[?(@.") {
        let (condition, rest) = rest.split_once(")]")?;
        let (field, wanted) = condition.split_once("==")?;
        let wanted = wanted.trim().strip_prefix('\'')?.strip_suffix('\'')?;
        let mut items = value.as_array()?.iter();
        let item = items.find(|item| item[field.trim()] == wanted)?;
        return find(item, rest);
    }
    let rest = path.strip_prefix('.')?;
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (field, rest) = rest.split_at(end);
    find(value.get(field)?, rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tortie_api::{Kind, crd};

    use super::*;

    #[test]
    fn fields_and_conditions_are_followed() {
        let value = json!({"status": {"conditions": [
            {"type": "Other", "reason": "No"},
            {"type": "Ready", "reason": "Yes"},
        ]}, "spec": {"order": 0}});
        let reason = |wanted: &str| {
            let path = format!(".status.conditions[?(@.type=='{wanted}')].reason");
            find(&value, &path).cloned()
        };
        assert_eq!(reason("Ready"), Some(json!("Yes")));
        assert_eq!(reason("Missing"), None);
        assert_eq!(find(&value, ".spec.order"), Some(&json!(0)));
        assert_eq!(find(&value, ".spec.order.deeper"), None);
        assert_eq!(find(&value, "spec"), None);
        assert_eq!(find(&value, ".status.conditions[?(@.type"), None);
    }

    /// Builds a value that has something at a path.
    fn value_at(path: &str) -> Value {
        let Some((before, condition)) = path.split_once("[?(@.type=='") else {
            let fields = path.trim_start_matches('.').rsplit('.');
            return fields.fold(json!("there"), |inner, field| json!({ field: inner }));
        };
        let (word, field) = condition.split_once("')].").unwrap();
        let mut value = value_at(before);
        let pointer = before.replace('.', "/");
        *value.pointer_mut(&pointer).unwrap() = json!([{"type": word, field: "there"}]);
        value
    }

    #[test]
    fn all_printer_columns_are_understood() {
        for kind in Kind::ALL {
            for (_, _, path) in crd::printer_columns(*kind) {
                assert_eq!(find(&value_at(path), path), Some(&json!("there")), "{path}");
            }
        }
    }
}

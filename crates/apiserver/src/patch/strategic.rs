//! Strategic merge patches, which merge lists item by item and carry directives.

use serde_json::{Map, Value};

use crate::failure::{Failure, Result};
use crate::structure::{ListType, Structure};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// How deep objects may be nested; JSON readers have a limit of their own, which is not much larger.
const MAX_DEPTH: usize = 100;

/// Merges a patch into an object.
pub(super) fn merge(object: &mut Value, patch: &Value, structure: Structure) -> Result<()> {
    let mut merger = Merger {
        structure,
        path: Vec::new(),
    };
    let Value::Object(patch) = patch else {
        return Err(Failure::bad_request("the patch must be a JSON object"));
    };
    merger.merge_object(as_object(object), patch)
}

struct Merger {
    structure: Structure,
    path: Vec<String>,
}

impl Merger {
    fn merge_object(
        &mut self,
        object: &mut Map<String, Value>,
        patch: &Map<String, Value>,
    ) -> Result<()> {
        match directive(patch)? {
            Some(Directive::Replace) => {
                *object = without_directives(patch);
                return Ok(());
            }
            Some(Directive::Delete) => {
                object.clear();
                return Ok(());
            }
            None => {}
        }
        if let Some(keys) = patch.get(RETAIN_KEYS) {
            let keys = list(RETAIN_KEYS, keys)?;
            object.retain(|key, _| keys.iter().any(|kept| kept == key.as_str()));
        }
        for (key, values) in patch {
            if let Some(field) = key.strip_prefix(DELETE_FROM) {
                let values = list(key, values)?;
                if let Some(Value::Array(items)) = object.get_mut(field) {
                    items.retain(|item| !values.contains(item));
                }
            }
        }
        for (key, value) in patch {
            if !key.starts_with('$') {
                self.merge_field(object, key, value)?;
            }
        }
        for (key, order) in patch {
            if let Some(field) = key.strip_prefix(ORDER) {
                let order = list(key, order)?;
                self.path.push(field.to_owned());
                if let Some(Value::Array(items)) = object.get_mut(field) {
                    self.sort(items, order);
                }
                self.path.pop();
            }
        }
        Ok(())
    }

    fn merge_field(
        &mut self,
        object: &mut Map<String, Value>,
        key: &str,
        patch: &Value,
    ) -> Result<()> {
        if self.path.len() >= MAX_DEPTH {
            return Err(Failure::bad_request("the patch is nested too deep"));
        }
        self.path.push(key.to_owned());
        match patch {
            Value::Null => {
                object.remove(key);
            }
            Value::Object(patch) if directive(patch)? == Some(Directive::Delete) => {
                object.remove(key);
            }
            Value::Object(patch) => {
                let field = object.entry(key).or_insert(Value::Null);
                self.merge_object(as_object(field), patch)?;
            }
            Value::Array(patch) => {
                let field = object.entry(key).or_insert(Value::Null);
                let items = as_array(field);
                self.merge_list(items, patch)?;
            }
            plain => {
                object.insert(key.to_owned(), plain.clone());
            }
        }
        self.path.pop();
        Ok(())
    }

    fn merge_list(&mut self, items: &mut Vec<Value>, patch: &[Value]) -> Result<()> {
        let list_type = self.structure.list_type(&self.path);
        let ListType::Map(keys) = list_type else {
            if list_type == ListType::Atomic {
                items.clear();
            }
            for value in patch {
                if list_type == ListType::Atomic || !items.contains(value) {
                    items.push(value.clone());
                }
            }
            return Ok(());
        };
        // Strategic patches tell items apart by the first key only.
        let key = keys[0];
        for item in patch {
            let Value::Object(change) = item else {
                return Err(self.not_items(key));
            };
            if directive(change)? == Some(Directive::Replace) {
                let others = patch.iter().filter(|other| *other != item);
                *items = others.cloned().collect();
                return Ok(());
            }
            let Some(name) = change.get(key) else {
                return Err(self.not_items(key));
            };
            let position = items.iter().position(|there| there.get(key) == Some(name));
            match (directive(change)?, position) {
                (Some(Directive::Delete), Some(position)) => {
                    items.remove(position);
                }
                (Some(Directive::Delete), None) => {}
                (_, Some(position)) => {
                    self.merge_object(as_object(&mut items[position]), change)?;
                }
                (_, None) => items.push(Value::Object(without_directives(change))),
            }
        }
        Ok(())
    }

    /// Puts items into an order. Those that it does not name follow the item that they followed before.
    fn sort(&self, items: &mut Vec<Value>, order: &[Value]) {
        let place = |item: &Value| match self.structure.list_type(&self.path) {
            ListType::Map(keys) => {
                let name = item.get(keys[0]);
                order.iter().position(|listed| listed.get(keys[0]) == name)
            }
            _ => order.iter().position(|listed| listed == item),
        };
        let mut last = None;
        let mut placed: Vec<(Option<usize>, Value)> = Vec::with_capacity(items.len());
        for item in items.drain(..) {
            last = place(&item).or(last);
            placed.push((last, item));
        }
        placed.sort_by_key(|(place, _)| *place);
        items.extend(placed.into_iter().map(|(_, item)| item));
    }

    fn not_items(&self, key: &str) -> Failure {
        let path = self.path.join(".");
        Failure::bad_request(format!(
            "{path}: every item of the patch must be an object with the field {key}"
        ))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive {
    Replace,
    Delete,
}

fn directive(patch: &Map<String, Value>) -> Result<Option<Directive>> {
    match patch.get(DIRECTIVE).map(|value| value.as_str()) {
        None | Some(Some("merge")) => Ok(None),
        Some(Some("replace")) => Ok(Some(Directive::Replace)),
        Some(Some("delete")) => Ok(Some(Directive::Delete)),
        Some(_) => Err(Failure::bad_request(
            "$patch must be one of merge, replace and delete",
        )),
    }
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    let fields = patch.iter().filter(|(key, _)| !key.starts_with('$'));
    fields
        .map(|(key, value)| {
            let value = match value {
                Value::Object(fields) => Value::Object(without_directives(fields)),
                other => other.clone(),
            };
            (key.clone(), value)
        })
        .collect()
}

fn list<'a>(key: &str, value: &'a Value) -> Result<&'a Vec<Value>> {
    value
        .as_array()
        .ok_or_else(|| Failure::bad_request(format!("{key} must be a list")))
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

fn as_array(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(items) => items,
        _ => unreachable!("made a list above"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(object: &Value, patch: &Value) -> Value {
        let mut object = object.clone();
        merge(&mut object, patch, Structure::of("", "Pod")).unwrap();
        object
    }

    #[test]
    fn items_with_keys_are_merged() {
        let pod = json!({"spec": {"containers": [
            {"name": "a", "image": "one"},
            {"name": "b", "image": "two"},
        ]}});
        let patch = json!({"spec": {"containers": [
            {"name": "b", "image": "three"},
            {"name": "a", "$patch": "delete"},
            {"name": "c"},
        ]}});
        let expected = json!({"spec": {"containers": [
            {"name": "b", "image": "three"},
            {"name": "c"},
        ]}});
        assert_eq!(merged(&pod, &patch), expected);
    }

    #[test]
    fn lists_without_keys_are_replaced_and_sets_grow() {
        let pod =
            json!({"metadata": {"finalizers": ["a"]}, "spec": {"tolerations": [{"key": "x"}]}});
        let patch = json!({
            "metadata": {"finalizers": ["b", "a"]},
            "spec": {"tolerations": [{"key": "y"}]},
        });
        let expected = json!({
            "metadata": {"finalizers": ["a", "b"]},
            "spec": {"tolerations": [{"key": "y"}]},
        });
        assert_eq!(merged(&pod, &patch), expected);
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}});
        assert_eq!(merged(&pod, &patch)["metadata"]["finalizers"], json!([]));
    }

    #[test]
    fn directives_replace_delete_retain_and_order() {
        let pod = json!({"spec": {
            "a": {"x": 1, "y": 2},
            "volumes": [{"name": "one"}, {"name": "two"}, {"name": "three"}],
        }});
        let patch = json!({"spec": {"a": {"$patch": "replace", "z": 3}}});
        assert_eq!(merged(&pod, &patch)["spec"]["a"], json!({"z": 3}));
        let patch = json!({"spec": {"a": {"$patch": "delete"}}});
        assert_eq!(merged(&pod, &patch)["spec"].get("a"), None);
        let patch = json!({"spec": {"a": {"$retainKeys": ["y"], "y": 4}}});
        assert_eq!(merged(&pod, &patch)["spec"]["a"], json!({"y": 4}));
        let patch =
            json!({"spec": {"$setElementOrder/volumes": [{"name": "three"}, {"name": "one"}]}});
        let expected = json!([{"name": "three"}, {"name": "one"}, {"name": "two"}]);
        assert_eq!(merged(&pod, &patch)["spec"]["volumes"], expected);
    }

    #[test]
    fn mistakes_are_refused() {
        let structure = Structure::of("", "Pod");
        for patch in [
            json!([]),
            json!({"$patch": "explode"}),
            json!({"spec": {"containers": ["a"]}}),
            json!({"spec": {"containers": [{"image": "a"}]}}),
            json!({"$setElementOrder/x": 3, "x": []}),
        ] {
            assert!(merge(&mut json!({}), &patch, structure).is_err(), "{patch}");
        }
    }
}

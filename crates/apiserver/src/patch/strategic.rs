//! Strategic merge patches, which merge lists item by item and carry directives.

use std::collections::{HashMap, HashSet};

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
            let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
            object.retain(|key, _| keys.contains(key.as_str()));
        }
        for (key, values) in patch {
            if let Some(field) = key.strip_prefix(DELETE_FROM) {
                let values: HashSet<&Value> = list(key, values)?.iter().collect();
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
        let keys = match self.structure.list_type(&self.path) {
            ListType::Map(keys) => keys,
            ListType::Atomic => {
                *items = patch.to_vec();
                return Ok(());
            }
            ListType::Set => {
                let there: HashSet<&Value> = items.iter().collect();
                let mut new: HashSet<&Value> = HashSet::new();
                let added = patch.iter();
                let added = added.filter(|value| !there.contains(value) && new.insert(value));
                let added: Vec<Value> = added.cloned().collect();
                items.extend(added);
                return Ok(());
            }
        };
        // Strategic patches tell items apart by the first key only.
        let key = keys[0];
        let mut list = KeyedList::new(std::mem::take(items), key);
        let merged = self.merge_items(&mut list, patch, key);
        *items = list.into_items();
        merged
    }

    fn merge_items(&mut self, items: &mut KeyedList, patch: &[Value], key: &str) -> Result<()> {
        for item in patch {
            let Value::Object(change) = item else {
                return Err(self.not_items(key));
            };
            if directive(change)? == Some(Directive::Replace) {
                let others = patch.iter().filter(|other| *other != item);
                *items = KeyedList::new(others.cloned().collect(), key);
                return Ok(());
            }
            let Some(name) = change.get(key) else {
                return Err(self.not_items(key));
            };
            if directive(change)? == Some(Directive::Delete) {
                items.remove(name);
            } else if let Some(there) = items.get_mut(name) {
                self.merge_object(as_object(there), change)?;
            } else {
                items.push(name, Value::Object(without_directives(change)));
            }
        }
        Ok(())
    }

    /// Puts items into an order. Those that it does not name follow the item that they followed before.
    fn sort(&self, items: &mut Vec<Value>, order: &[Value]) {
        let key = match self.structure.list_type(&self.path) {
            ListType::Map(keys) => Some(keys[0]),
            _ => None,
        };
        let mut wanted: HashMap<Option<&Value>, usize> = HashMap::with_capacity(order.len());
        for (place, listed) in order.iter().enumerate() {
            wanted.entry(name_of(listed, key)).or_insert(place);
        }
        let place = |item: &Value| wanted.get(&name_of(item, key)).copied();
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

/// A list whose items are found by their keys. Of several with one key the first counts.
struct KeyedList {
    /// None where one was removed.
    items: Vec<Option<Value>>,
    /// Where the items with a key are, the first of them last.
    places: HashMap<Value, Vec<usize>>,
}

impl KeyedList {
    fn new(items: Vec<Value>, key: &str) -> Self {
        let mut places: HashMap<Value, Vec<usize>> = HashMap::with_capacity(items.len());
        for (place, item) in items.iter().enumerate().rev() {
            if let Some(name) = item.get(key) {
                places.entry(name.clone()).or_default().push(place);
            }
        }
        Self {
            items: items.into_iter().map(Some).collect(),
            places,
        }
    }

    fn get_mut(&mut self, name: &Value) -> Option<&mut Value> {
        let place = *self.places.get(name)?.last()?;
        self.items.get_mut(place)?.as_mut()
    }

    fn remove(&mut self, name: &Value) {
        if let Some(place) = self.places.get_mut(name).and_then(Vec::pop) {
            self.items[place] = None;
        }
    }

    /// Adds an item with a key that none has.
    fn push(&mut self, name: &Value, item: Value) {
        let place = self.items.len();
        self.places.entry(name.clone()).or_default().push(place);
        self.items.push(Some(item));
    }

    fn into_items(self) -> Vec<Value> {
        self.items.into_iter().flatten().collect()
    }
}

/// What tells an item from others: its key, or the item itself in lists without keys.
fn name_of<'a>(item: &'a Value, key: Option<&str>) -> Option<&'a Value> {
    match key {
        Some(key) => item.get(key),
        None => Some(item),
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

    /// As many as fit into a request: whoever compares all with all does not come to an end.
    #[test]
    fn lists_may_have_very_many_items() {
        let pod = |image: &str| {
            let containers = (0..20_000).rev();
            let containers =
                containers.map(|number| json!({"name": format!("c{number}"), "image": image}));
            let order = (0..20_000).map(|number| json!({"name": format!("c{number}")}));
            let finalizers = (0..100_000).map(|number| json!(format!("example.com/{number}")));
            json!({
                "metadata": {"finalizers": finalizers.collect::<Value>()},
                "spec": {
                    "containers": containers.collect::<Value>(),
                    "$setElementOrder/containers": order.collect::<Value>(),
                },
            })
        };
        let changed = merged(&merged(&json!({}), &pod("one")), &pod("two"));
        let containers = changed["spec"]["containers"].as_array().unwrap();
        assert_eq!(containers.len(), 20_000);
        assert_eq!(containers[0], json!({"name": "c0", "image": "two"}));
        let finalizers = changed["metadata"]["finalizers"].as_array().unwrap();
        assert_eq!(finalizers.len(), 100_000);
        let removed = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers}});
        let emptied = merged(&changed, &removed);
        assert_eq!(emptied["metadata"]["finalizers"], json!([]));
    }

    #[test]
    fn of_items_with_one_key_the_first_is_meant() {
        let pod = json!({"spec": {"containers": [
            {"name": "a", "image": "one"},
            {"name": "a", "image": "two"},
        ]}});
        let change = json!({"spec": {"containers": [
            {"name": "a", "$patch": "delete"},
            {"name": "a", "image": "three"},
            {"name": "b"},
            {"name": "b", "image": "four"},
        ]}});
        let expected = json!({"spec": {"containers": [
            {"name": "a", "image": "three"},
            {"name": "b", "image": "four"},
        ]}});
        assert_eq!(merged(&pod, &change), expected);
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

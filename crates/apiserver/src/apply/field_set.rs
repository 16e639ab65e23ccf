//! Sets of fields of an object, and their wire form `FieldsV1`.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::structure::{ListType, Structure};

/// Fields that belong to nobody: who the object is, and what the server keeps.
const IDENTITY: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
    &["metadata", "generation"],
    &["metadata", "creationTimestamp"],
    &["metadata", "deletionTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "managedFields"],
];

/// A set of fields, as a tree: those at its leaves, and inner ones that are marked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Whether the place itself is in the set, besides what is below it.
    pub(super) is_member: bool,
    pub(super) below: BTreeMap<Step, FieldSet>,
}

/// One step down into an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Step {
    Field(String),
    /// An item of a list, by the JSON text of its keys in their order.
    Item(String),
    /// A value of a set, by its JSON text.
    Value(String),
}

impl FieldSet {
    /// All fields of an object.
    pub fn of(object: &Value, structure: Structure) -> Self {
        Self::of_value(object, structure, &mut Vec::new())
    }

    fn of_value(value: &Value, structure: Structure, path: &mut Vec<String>) -> Self {
        let mut set = Self::default();
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    path.push(name.clone());
                    let below = Self::of_value(value, structure, path);
                    set.below.insert(Step::Field(name.clone()), below);
                    path.pop();
                }
            }
            Value::Array(items) => {
                for (step, item) in steps(items, structure.list_type(path)) {
                    let mut below = match item {
                        Value::Object(_) => Self::of_value(item, structure, path),
                        _ => Self::default(),
                    };
                    below.is_member = true;
                    set.below.insert(step, below);
                }
            }
            _ => {}
        }
        set.is_member |= set.below.is_empty();
        set
    }

    /// The set without the fields that nobody can own.
    #[must_use]
    pub fn without_identity(mut self) -> Self {
        for path in IDENTITY {
            self.forget(path);
        }
        self.is_member &= !self.below.is_empty();
        self
    }

    fn forget(&mut self, path: &[&str]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let step = Step::Field((*first).to_owned());
        if rest.is_empty() {
            self.below.remove(&step);
        } else if let Some(below) = self.below.get_mut(&step) {
            below.forget(rest);
            if below.below.is_empty() {
                self.below.remove(&step);
            }
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }

    /// What is in one or the other.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut result = self.clone();
        result.is_member |= other.is_member;
        for (step, there) in &other.below {
            let joined = match result.below.get(step) {
                Some(here) => here.union(there),
                None => there.clone(),
            };
            result.below.insert(step.clone(), joined);
        }
        result
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.filtered(other, |here, there| here && there, Self::intersection, None)
    }

    /// What is in this one and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let alone = Some(Self::clone as fn(&Self) -> Self);
        self.filtered(other, |here, there| here && !there, Self::difference, alone)
    }

    /// Takes out what is in the other. Costs what the other holds.
    pub fn remove(&mut self, other: &Self) {
        self.is_member &= !other.is_member;
        for (step, there) in &other.below {
            if let Some(here) = self.below.get_mut(step) {
                here.remove(there);
                if here.is_empty() {
                    self.below.remove(step);
                }
            }
        }
    }

    fn filtered(
        &self,
        other: &Self,
        is_member: impl Fn(bool, bool) -> bool,
        both: impl Fn(&Self, &Self) -> Self,
        alone: Option<fn(&Self) -> Self>,
    ) -> Self {
        let below = self.below.iter().filter_map(|(step, here)| {
            let result = match other.below.get(step) {
                Some(there) => both(here, there),
                None => alone?(here),
            };
            (!result.is_empty()).then(|| (step.clone(), result))
        });
        Self {
            is_member: is_member(self.is_member, other.is_member),
            below: below.collect(),
        }
    }

    /// Removes the fields of the set from an object, and what is empty after that.
    pub fn remove_from(&self, object: &mut Value, structure: Structure) {
        self.remove_at(object, structure, &mut Vec::new());
    }

    fn remove_at(&self, value: &mut Value, structure: Structure, path: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (step, below) in &self.below {
                    let Step::Field(name) = step else { continue };
                    path.push(name.clone());
                    let is_gone = fields.get_mut(name).is_some_and(|field| {
                        below.remove_at(field, structure, path);
                        below.below.is_empty() || is_hollow(field)
                    });
                    path.pop();
                    if is_gone {
                        fields.remove(name);
                    }
                }
            }
            Value::Array(items) => {
                let list_type = structure.list_type(path);
                items.retain_mut(|item| {
                    let step = step_of(item, list_type);
                    let below = step.and_then(|step| self.below.get(&step));
                    if let Some(below) = below {
                        below.remove_at(item, structure, path);
                    }
                    !below.is_some_and(|below| below.is_member)
                });
            }
            _ => {}
        }
    }

    /// The fields as messages name them, such as `.spec.order`.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.add_paths(String::new(), &mut paths);
        paths
    }

    fn add_paths(&self, prefix: String, paths: &mut Vec<String>) {
        for (step, below) in &self.below {
            let name = match step {
                Step::Field(name) => format!("{prefix}.{name}"),
                Step::Item(keys) => format!("{prefix}[{}]", item_keys(keys)),
                Step::Value(value) => format!("{prefix}[={value}]"),
            };
            below.add_paths(name, paths);
        }
        if self.is_member && self.below.is_empty() && !prefix.is_empty() {
            paths.push(prefix);
        }
    }

    /// The wire form.
    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        if self.is_member && !self.below.is_empty() {
            fields.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (step, below) in &self.below {
            let name = match step {
                Step::Field(name) => format!("f:{name}"),
                Step::Item(keys) => format!("k:{keys}"),
                Step::Value(value) => format!("v:{value}"),
            };
            fields.insert(name, below.to_value());
        }
        Value::Object(fields)
    }

    /// Reads the wire form; what cannot be understood is left out.
    pub fn from_value(value: &Value) -> Self {
        let mut set = Self::default();
        let Value::Object(fields) = value else {
            return set;
        };
        for (name, below) in fields {
            let step = match name.split_once(':') {
                Some(("f", name)) => Step::Field(name.to_owned()),
                Some(("k", keys)) => Step::Item(keys.to_owned()),
                Some(("v", value)) => Step::Value(value.to_owned()),
                _ => {
                    set.is_member |= name == ".";
                    continue;
                }
            };
            set.below.insert(step, Self::from_value(below));
        }
        set.is_member |= set.below.is_empty();
        set
    }
}

/// Merges what somebody applies into an object: fields one by one, lists by their type.
pub(super) fn merge(object: &mut Value, applied: &Value, structure: Structure) {
    merge_at(object, applied, structure, &mut Vec::new());
}

fn merge_at(value: &mut Value, applied: &Value, structure: Structure, path: &mut Vec<String>) {
    match (value, applied) {
        (Value::Object(fields), Value::Object(applied)) => {
            for (name, applied) in applied {
                path.push(name.clone());
                match fields.get_mut(name) {
                    Some(field) => merge_at(field, applied, structure, path),
                    None => {
                        fields.insert(name.clone(), applied.clone());
                    }
                }
                path.pop();
            }
        }
        (Value::Array(items), Value::Array(applied)) => {
            let list_type = structure.list_type(path);
            if list_type == ListType::Atomic {
                items.clone_from(applied);
                return;
            }
            let mut places: HashMap<Step, usize> = HashMap::with_capacity(items.len());
            for (place, (step, _)) in steps(items, list_type).enumerate() {
                places.entry(step).or_insert(place);
            }
            for (step, item) in steps(applied, list_type) {
                match places.entry(step) {
                    Entry::Occupied(place) => {
                        merge_at(&mut items[*place.get()], item, structure, path);
                    }
                    Entry::Vacant(place) => {
                        place.insert(items.len());
                        items.push(item.clone());
                    }
                }
            }
        }
        (value, applied) => value.clone_from(applied),
    }
}

/// The items of a list that can be owned one by one.
pub(super) fn steps(items: &[Value], list_type: ListType) -> impl Iterator<Item = (Step, &Value)> {
    items
        .iter()
        .filter_map(move |item| Some((step_of(item, list_type)?, item)))
}

fn step_of(item: &Value, list_type: ListType) -> Option<Step> {
    match list_type {
        ListType::Atomic => None,
        ListType::Set => Some(Step::Value(item.to_string())),
        ListType::Map(keys) => {
            let keys = keys.iter().filter_map(|key| {
                let value = item.get(key)?;
                Some(((*key).to_owned(), value.clone()))
            });
            let keys: Map<String, Value> = keys.collect();
            Some(Step::Item(Value::Object(keys).to_string()))
        }
    }
}

/// An object or list without anything in it.
fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// `name="web"` for the keys of an item.
fn item_keys(keys: &str) -> String {
    match serde_json::from_str::<Map<String, Value>>(keys) {
        Ok(keys) => {
            let keys = keys.iter().map(|(key, value)| format!("{key}={value}"));
            keys.collect::<Vec<String>>().join(",")
        }
        Err(_) => keys.to_owned(),
    }
}

//! What differs between two states of an object.

use std::collections::HashMap;

use serde_json::Value;

use super::field_set::{FieldSet, Step, steps};
use crate::structure::Structure;

/// Two states of an object. Lists are indexed when they are first looked into, so that asking about many sets of fields,
/// or large ones, costs what they hold.
pub(super) struct Comparison<'a> {
    one: State<'a>,
    other: State<'a>,
}

struct State<'a> {
    object: &'a Value,
    structure: Structure,
    /// The items of lists that were looked into, by where the list is in memory.
    lists: HashMap<*const Value, HashMap<Step, &'a Value>>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(one: &'a Value, other: &'a Value, structure: Structure) -> Self {
        let state = |object| State {
            object,
            structure,
            lists: HashMap::new(),
        };
        Self {
            one: state(one),
            other: state(other),
        }
    }

    /// Those fields of a set whose values differ. A place with fields below it differs only if it is in one of the states
    /// alone.
    pub(super) fn differing(&mut self, fields: &FieldSet) -> FieldSet {
        let (one, other) = (self.one.object, self.other.object);
        self.differing_at(fields, Some(one), Some(other), &mut Vec::new())
    }

    fn differing_at(
        &mut self,
        fields: &FieldSet,
        one: Option<&'a Value>,
        other: Option<&'a Value>,
        path: &mut Vec<String>,
    ) -> FieldSet {
        let mut result = FieldSet::default();
        for (step, below) in &fields.below {
            // Items of lists have the path of their list.
            if let Step::Field(name) = step {
                path.push(name.clone());
            }
            let (one, other) = (
                self.one.child(one, step, path),
                self.other.child(other, step, path),
            );
            let differing = self.differing_at(below, one, other, path);
            if matches!(step, Step::Field(_)) {
                path.pop();
            }
            if !differing.is_empty() {
                result.below.insert(step.clone(), differing);
            }
        }
        result.is_member = fields.is_member
            && if fields.below.is_empty() {
                one != other
            } else {
                one.is_some() != other.is_some()
            };
        result
    }
}

impl<'a> State<'a> {
    fn child(
        &mut self,
        value: Option<&'a Value>,
        step: &Step,
        path: &[String],
    ) -> Option<&'a Value> {
        match (value?, step) {
            (Value::Object(fields), Step::Field(name)) => fields.get(name),
            (list @ Value::Array(items), Step::Item(_) | Step::Value(_)) => {
                let structure = self.structure;
                let index = self.lists.entry(std::ptr::from_ref(list));
                let index = index.or_insert_with(|| {
                    let mut index = HashMap::with_capacity(items.len());
                    for (step, item) in steps(items, structure.list_type(path)) {
                        index.entry(step).or_insert(item);
                    }
                    index
                });
                index.get(step).copied()
            }
            _ => None,
        }
    }
}

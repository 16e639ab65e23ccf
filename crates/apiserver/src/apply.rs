//! Server-side apply: who manages which fields of an object, and what follows when somebody applies.
//!
//! A manager that applies an object owns the fields it names. What it named before and does not name any more is removed,
//! unless somebody else owns it too; what somebody else owns with another value is a conflict, unless it is forced.

mod comparison;
mod field_set;
mod managed;

pub use field_set::FieldSet;
pub use managed::{Manager, Operation};

use serde_json::Value;

use self::comparison::Comparison;
use self::managed::{Entry, read_entries, write_entries};
use crate::failure::{Cause, Failure, Reason, Result};
use crate::structure::Structure;

/// What somebody wants an object to be.
#[derive(Debug, Clone, Copy)]
pub struct Apply<'a> {
    /// Who wants it.
    pub manager: &'a Manager,
    /// The fields that it names, without `metadata.managedFields`.
    pub object: &'a Value,
    /// Whether fields of others are taken over.
    pub force: bool,
    /// The time to write down, in RFC 3339.
    pub now: &'a str,
}

/// The object after somebody has applied it. Equal to `live` if nothing changes.
pub fn apply(live: &Value, apply: Apply<'_>, structure: Structure) -> Result<Value> {
    let mut entries = read_entries(live);
    let wanted = FieldSet::of(apply.object, structure).without_identity();
    if !apply.force {
        check_conflicts(live, &entries, &wanted, apply, structure)?;
    }
    let before = entries.iter().position(|entry| entry.is_of(apply.manager));
    let before = before.map(|position| entries.remove(position));

    let mut result = live.clone();
    let dropped = before
        .as_ref()
        .map(|entry| entry.fields.difference(&wanted));
    if let Some(mut dropped) = dropped {
        for entry in &entries {
            dropped.remove(&entry.fields);
        }
        dropped.remove_from(&mut result, structure);
    }
    field_set::merge(&mut result, apply.object, structure);

    // What is taken over with another value is no longer theirs; what is there with the same value is shared.
    let mut comparison = Comparison::new(live, &result, structure);
    for entry in &mut entries {
        let taken = entry.fields.intersection(&wanted);
        let changed = comparison.differing(&taken);
        entry.fields.remove(&changed);
    }
    entries.retain(|entry| !entry.fields.is_empty());
    let is_unchanged = before
        .as_ref()
        .is_some_and(|entry| entry.fields == wanted && entry.manager == *apply.manager);
    let time = match (&before, is_unchanged && same_content(live, &result)) {
        (Some(entry), true) => entry.time.clone(),
        _ => apply.now.to_owned(),
    };
    entries.push(Entry {
        manager: apply.manager.clone(),
        time,
        fields: wanted,
    });
    write_entries(&mut result, &entries);
    Ok(result)
}

/// Notes who changed which fields by a write other than apply. `old` is nothing for a new object.
pub fn track(old: &Value, new: &mut Value, manager: &Manager, now: &str, structure: Structure) {
    let mut entries = read_entries(old);
    let (before, after) = (
        FieldSet::of(old, structure).without_identity(),
        FieldSet::of(new, structure).without_identity(),
    );
    let removed = before.difference(&after);
    let added = after.difference(&before);
    let kept = after.intersection(&before);
    let changed = added.union(&Comparison::new(old, new, structure).differing(&kept));
    for entry in &mut entries {
        entry.fields = entry.fields.difference(&removed);
        if !entry.is_of(manager) {
            entry.fields = entry.fields.difference(&changed);
        }
    }
    if !changed.is_empty() {
        match entries.iter_mut().find(|entry| entry.is_of(manager)) {
            Some(entry) => {
                entry.fields = entry.fields.union(&changed);
                now.clone_into(&mut entry.time);
            }
            None => entries.push(Entry {
                manager: manager.clone(),
                time: now.to_owned(),
                fields: changed,
            }),
        }
    }
    entries.retain(|entry| !entry.fields.is_empty());
    write_entries(new, &entries);
}

fn check_conflicts(
    live: &Value,
    entries: &[Entry],
    wanted: &FieldSet,
    apply: Apply<'_>,
    structure: Structure,
) -> Result<()> {
    let mut causes = Vec::new();
    let mut texts = Vec::new();
    // What is merged into a field, such as no labels into labels, does not change it.
    let mut merged = live.clone();
    field_set::merge(&mut merged, apply.object, structure);
    let mut comparison = Comparison::new(live, &merged, structure);
    for entry in entries.iter().filter(|entry| !entry.is_of(apply.manager)) {
        let shared = entry.fields.intersection(wanted);
        let fields = comparison.differing(&shared).paths();
        if fields.is_empty() {
            continue;
        }
        let who = entry.manager.describe();
        for field in &fields {
            causes.push(Cause {
                reason: "FieldManagerConflict",
                message: format!("conflict with {who}"),
                field: field.clone(),
            });
        }
        texts.push(format!("conflict with {who}: {}", fields.join(", ")));
    }
    if causes.is_empty() {
        return Ok(());
    }
    let plural = if causes.len() == 1 { "" } else { "s" };
    let message = format!(
        "Apply failed with {} conflict{plural}: {}",
        causes.len(),
        texts.join("; ")
    );
    let mut failure = Failure::new(Reason::Conflict, message);
    failure.details.causes = causes;
    Err(failure)
}

/// Whether two objects are the same but for who manages them.
fn same_content(one: &Value, other: &Value) -> bool {
    let strip = |object: &Value| {
        let mut object = object.clone();
        write_entries(&mut object, &[]);
        object
    };
    strip(one) == strip(other)
}

#[cfg(test)]
mod tests;

//! Patches in the four formats of Kubernetes but for server-side apply: JSON, merge and strategic merge.

mod strategic;

use json_patch::{Patch as JsonPatch, PatchOperation};
use serde_json::Value;

use crate::failure::{Failure, Reason, Result};
use crate::structure::Structure;

/// How many steps a JSON patch may have.
const MAX_STEPS: usize = 10_000;

/// How deep the steps of a JSON patch may nest, as bodies may. Deeper objects exhaust the stack of whoever walks them.
const MAX_DEPTH: usize = 128;

/// How much the copies of a JSON patch may add up to: as much as a body may hold. Each could double the object.
const MAX_COPIED: usize = 3 << 20;

/// How much the steps of a JSON patch may move about: each could do so with the whole object. Values count with their
/// bytes, items of a list that make room or close up with [`SHIFTED`].
const MAX_MOVED: usize = 256 << 20;

/// What an item counts that makes room for another one, or closes up: a fraction of its size, because all of them are
/// moved at once.
const SHIFTED: usize = 2;

/// A change to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// RFC 6902: steps that must all succeed.
    Json(JsonPatch),
    /// RFC 7396: fields that replace those of the object, nulls that remove them.
    Merge(Value),
    /// The same, with lists that are merged item by item.
    Strategic(Value),
}

impl Patch {
    /// Reads a patch by its media type, without parameters.
    pub fn parse(media_type: &str, body: &[u8]) -> Result<Self> {
        let broken = |error: serde_json::Error| {
            Failure::bad_request(format!("the patch cannot be read: {error}"))
        };
        match media_type {
            "application/json-patch+json" => {
                let patch: JsonPatch = serde_json::from_slice(body).map_err(broken)?;
                if patch.0.len() > MAX_STEPS {
                    let message = format!(
                        "the patch has {} operations; at most {MAX_STEPS} are taken",
                        patch.0.len()
                    );
                    return Err(Failure::new(Reason::TooLarge, message));
                }
                Ok(Self::Json(patch))
            }
            "application/merge-patch+json" => {
                object(serde_json::from_slice(body).map_err(broken)?).map(Self::Merge)
            }
            "application/strategic-merge-patch+json" => {
                object(serde_json::from_slice(body).map_err(broken)?).map(Self::Strategic)
            }
            other => Err(Failure::new(
                Reason::UnsupportedMediaType,
                format!(
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json, \
                     application/strategic-merge-patch+json, application/apply-patch+yaml; it was {other}"
                ),
            )),
        }
    }

    /// The object with the patch. If it fails, nothing has changed.
    pub fn apply(&self, object: &Value, structure: Structure) -> Result<Value> {
        let mut patched = object.clone();
        match self {
            Self::Json(steps) => make_steps(&mut patched, steps)?,
            Self::Merge(patch) => json_patch::merge(&mut patched, patch),
            Self::Strategic(patch) => strategic::merge(&mut patched, patch, structure)?,
        }
        if patched.is_object() {
            Ok(patched)
        } else {
            Err(Failure::bad_request("the patch leaves no object"))
        }
    }
}

/// Makes the steps of a JSON patch one by one, before each of which its size is known.
fn make_steps(object: &mut Value, steps: &[PatchOperation]) -> Result<()> {
    let (mut copied, mut moved) = (0, 0);
    for (number, step) in steps.iter().enumerate() {
        let (path, added) = match step {
            PatchOperation::Add(add) => (add.path.as_str(), Some(&add.value)),
            PatchOperation::Replace(replace) => (replace.path.as_str(), Some(&replace.value)),
            PatchOperation::Move(from) => {
                let source = object.pointer(from.from.as_str());
                moved += source.map_or(0, weight) + shifted(object, from.from.as_str());
                (from.path.as_str(), source)
            }
            PatchOperation::Copy(from) => {
                let source = object.pointer(from.from.as_str());
                copied += source.map_or(0, weight);
                (from.path.as_str(), source)
            }
            PatchOperation::Remove(remove) => (remove.path.as_str(), None),
            PatchOperation::Test(_) => ("", None),
        };
        moved += shifted(object, path);
        if moved > MAX_MOVED {
            let message = format!(
                "the operations up to number {number} move {moved} bytes about; at most {MAX_MOVED} are taken"
            );
            return Err(Failure::new(Reason::TooLarge, message));
        }
        let depth = path.matches('/').count() + added.map_or(0, depth);
        if depth > MAX_DEPTH {
            let message = format!(
                "operation {number} nests fields {depth} deep; at most {MAX_DEPTH} are taken"
            );
            return Err(Failure::new(Reason::TooLarge, message));
        }
        if copied > MAX_COPIED {
            let message = format!(
                "the copies up to operation {number} add up to {copied} bytes; at most {MAX_COPIED} are taken"
            );
            return Err(Failure::new(Reason::TooLarge, message));
        }
        json_patch::patch(object, std::slice::from_ref(step)).map_err(|error| {
            let message = format!(
                "the server rejected our request due to an error in our request: operation {number}: {error}"
            );
            Failure::new(Reason::Invalid, message)
        })?;
    }
    Ok(())
}

/// What it costs to put something into a list or to take it out, if the path leads into one.
fn shifted(object: &Value, path: &str) -> usize {
    let list = match path.rsplit_once('/') {
        Some((list, place)) if place != "-" => object.pointer(list),
        _ => None,
    };
    list.and_then(Value::as_array)
        .map_or(0, |items| items.len() * SHIFTED)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// About as many bytes as a value takes.
fn weight(value: &Value) -> usize {
    let below = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| name.len() + weight(value))
            .sum(),
        _ => 0,
    };
    size_of::<Value>() + below
}

fn object(value: Value) -> Result<Value> {
    if value.is_object() {
        Ok(value)
    } else {
        Err(Failure::bad_request("the patch must be a JSON object"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patch(media_type: &str, patch: &Value, object: &Value) -> Result<Value> {
        let body = serde_json::to_vec(patch).unwrap();
        let structure = Structure::of("projectcalico.org", "NetworkPolicy");
        Patch::parse(media_type, &body)?.apply(object, structure)
    }

    #[test]
    fn steps_are_all_made_or_none() {
        let object = json!({"spec": {"order": 1, "types": ["Ingress"]}});
        let steps = json!([
            {"op": "test", "path": "/spec/order", "value": 1},
            {"op": "replace", "path": "/spec/order", "value": 2},
            {"op": "add", "path": "/spec/types/-", "value": "Egress"},
        ]);
        let patched = patch("application/json-patch+json", &steps, &object).unwrap();
        assert_eq!(
            patched,
            json!({"spec": {"order": 2, "types": ["Ingress", "Egress"]}})
        );
        let steps = json!([{"op": "remove", "path": "/spec/tier"}]);
        let failure = patch("application/json-patch+json", &steps, &object).unwrap_err();
        assert_eq!(failure.reason, Reason::Invalid);
        let whole = json!([{"op": "replace", "path": "", "value": 3}]);
        let failure = patch("application/json-patch+json", &whole, &object).unwrap_err();
        assert_eq!(failure.reason, Reason::BadRequest);
    }

    #[test]
    fn steps_that_grow_without_bounds_are_refused() {
        let check = |steps: Vec<Value>| {
            let object = json!({"spec": {"order": 1}});
            let refused = patch("application/json-patch+json", &Value::from(steps), &object);
            assert_eq!(refused.unwrap_err().reason, Reason::TooLarge);
        };
        let copy = |n: usize| json!({"op": "copy", "from": "/spec", "path": format!("/spec/{n}")});
        check((0..30).map(copy).collect());
        let nest = |n: usize| json!({"op": "add", "path": "/a".repeat(n), "value": {}});
        check((1..200).map(nest).collect());
        let mut turns = vec![json!({"op": "add", "path": "/a", "value": {}})];
        for _ in 0..200 {
            turns.push(json!({"op": "add", "path": "/b", "value": {}}));
            turns.push(json!({"op": "move", "from": "/a", "path": "/b/a"}));
            turns.push(json!({"op": "move", "from": "/b", "path": "/a"}));
        }
        check(turns);
    }

    #[test]
    fn steps_that_move_much_again_and_again_are_refused() {
        let items: Vec<Value> = (0..50_000).map(Value::from).collect();
        let object = json!({"spec": {"nets": items}});
        let check = |turn: &Value, path: &str| {
            let count = MAX_STEPS / turn.as_array().unwrap().len();
            let steps: Vec<Value> = (0..count)
                .flat_map(|_| turn.as_array().unwrap().clone())
                .collect();
            let refused = patch("application/json-patch+json", &Value::from(steps), &object);
            let refused = refused.unwrap_err();
            assert_eq!(refused.reason, Reason::TooLarge, "{path}");
            assert!(refused.message.contains("move"), "{refused}");
        };
        let there = json!({"op": "move", "from": "/spec/nets", "path": "/spec/others"});
        let back = json!({"op": "move", "from": "/spec/others", "path": "/spec/nets"});
        check(&json!([there, back]), "a whole list");
        check(
            &json!([{"op": "add", "path": "/spec/nets/0", "value": 1}]),
            "a place in a list",
        );
        // As many steps at the end of a small list are none too many.
        let small = json!({"spec": {"nets": []}});
        let add = json!({"op": "add", "path": "/spec/nets/-", "value": 1});
        let steps = Value::from(vec![add; MAX_STEPS]);
        patch("application/json-patch+json", &steps, &small).unwrap();
    }

    #[test]
    fn a_merge_replaces_lists_and_removes_by_null() {
        let object = json!({"spec": {"order": 1, "types": ["Ingress"]}});
        let change = json!({"spec": {"order": null, "types": ["Egress"]}});
        let patched = patch("application/merge-patch+json", &change, &object).unwrap();
        assert_eq!(patched, json!({"spec": {"types": ["Egress"]}}));
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        let object = json!({});
        for (media_type, body, reason) in [
            (
                "application/merge-patch+json",
                json!([]),
                Reason::BadRequest,
            ),
            ("application/json-patch+json", json!({}), Reason::BadRequest),
            ("text/plain", json!({}), Reason::UnsupportedMediaType),
        ] {
            assert_eq!(
                patch(media_type, &body, &object).unwrap_err().reason,
                reason
            );
        }
    }
}

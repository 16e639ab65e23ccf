//! One object, as it is kept for all who read it.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Bytes;
use serde_json::{Map, Value};

use super::event::size_of;

/// From how many bytes in memory an object is kept as text.
const LARGE: usize = 256 << 10;

/// How much of lists, maps and texts of large objects is at hand.
const ITEMS_AT_HAND: usize = 64;
const BYTES_AT_HAND: usize = 4096;

/// An object that many share. A large one is kept as text, which takes a quarter of the memory or less; what objects are
/// selected by and people are shown is at hand.
#[derive(Debug, Clone)]
pub struct Object(Arc<Kept>);

#[derive(Debug)]
enum Kept {
    Whole(Value),
    Text { head: Value, json: Bytes },
}

impl Object {
    /// Keeps an object.
    pub fn new(object: Value) -> Self {
        let kept = if size_of(&object) < LARGE {
            Kept::Whole(object)
        } else {
            Kept::Text {
                json: object.to_string().into(),
                head: head_of(object),
            }
        };
        Self(Arc::new(kept))
    }

    /// The object with all of its metadata; of lists, maps and texts elsewhere perhaps only the beginning.
    pub fn head(&self) -> &Value {
        match &*self.0 {
            Kept::Whole(object) => object,
            Kept::Text { head, .. } => head,
        }
    }

    /// All of the object.
    pub fn whole(&self) -> Cow<'_, Value> {
        match &*self.0 {
            Kept::Whole(object) => Cow::Borrowed(object),
            Kept::Text { json, .. } => {
                let object = serde_json::from_slice(json);
                Cow::Owned(object.expect("what was written from a value can be read again"))
            }
        }
    }

    /// Adds the JSON text of the object.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        match &*self.0 {
            // Writing a value into memory does not fail.
            Kept::Whole(object) => drop(serde_json::to_writer(bytes, object)),
            Kept::Text { json, .. } => bytes.extend_from_slice(json),
        }
    }

    /// The JSON text of a large object, of which there is one for all.
    pub fn text(&self) -> Option<Bytes> {
        match &*self.0 {
            Kept::Whole(_) => None,
            Kept::Text { json, .. } => Some(json.clone()),
        }
    }

    /// Roughly how much memory it takes.
    pub fn size(&self) -> usize {
        match &*self.0 {
            Kept::Whole(object) => size_of(object),
            Kept::Text { head, json } => size_of(head) + json.len(),
        }
    }

    /// Whether somebody else has it, too.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// At which revision it is.
    pub(super) fn revision(&self) -> Option<&str> {
        revision_of(self.head())
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.whole() == other.whole()
    }
}

pub(super) fn revision_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/resourceVersion")?.as_str()
}

fn head_of(mut object: Value) -> Value {
    let fields = object.as_object_mut().into_iter().flatten();
    for (_, value) in fields.filter(|(name, _)| *name != "metadata") {
        cut(value);
    }
    object
}

/// Leaves the beginning of what is long.
fn cut(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.truncate(ITEMS_AT_HAND);
            items.shrink_to_fit();
            items.iter_mut().for_each(cut);
        }
        Value::Object(fields) => {
            if fields.len() > ITEMS_AT_HAND {
                let all = std::mem::take(fields).into_iter();
                *fields = all.take(ITEMS_AT_HAND).collect::<Map<String, Value>>();
            }
            fields.values_mut().for_each(cut);
        }
        Value::String(text) if text.len() > BYTES_AT_HAND => {
            *text = text[..text.floor_char_boundary(BYTES_AT_HAND)].to_owned();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn large_objects_are_kept_as_text_with_what_selects_them_at_hand() {
        let nets: Vec<String> = (0..10_000).map(|number| format!("{number}")).collect();
        let labels: Map<String, Value> = (0..500)
            .map(|number| (format!("l{number}"), json!("x")))
            .collect();
        let value = json!({
            "metadata": {"name": "threats", "resourceVersion": "7", "labels": labels},
            "spec": {"nets": nets, "tier": "gold"},
        });
        let object = Object::new(value.clone());
        assert!(object.size() < size_of(&value) / 3, "{}", object.size());
        assert_eq!(object.head()["metadata"], value["metadata"]);
        assert_eq!(object.head()["spec"]["tier"], "gold");
        assert_eq!(
            object.head()["spec"]["nets"].as_array().unwrap().len(),
            ITEMS_AT_HAND
        );
        assert_eq!(*object.whole(), value);
        let mut text = Vec::new();
        object.write(&mut text);
        assert_eq!(text, value.to_string().into_bytes());
        assert_eq!(object.text().unwrap(), text);
        assert_eq!(object.revision(), Some("7"));
    }

    #[test]
    fn small_objects_are_at_hand_as_a_whole() {
        let nets = vec!["10.0.0.0/8"; ITEMS_AT_HAND + 1];
        let value = json!({"metadata": {"name": "few"}, "spec": {"nets": nets}});
        let object = Object::new(value.clone());
        assert_eq!(*object.head(), value);
        assert!(matches!(object.whole(), Cow::Borrowed(_)));
        assert_eq!(object.text(), None);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let mut text = json!("ä".repeat(BYTES_AT_HAND));
        cut(&mut text);
        assert!(text.as_str().unwrap().len() <= BYTES_AT_HAND);
    }
}

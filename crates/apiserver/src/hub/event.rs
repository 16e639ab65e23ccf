//! One change, as it is kept for all who watch.

use std::sync::OnceLock;

use axum::body::Bytes;
use serde_json::{Value, json};

use super::Object;

/// One change, with the states before and after it.
#[derive(Debug)]
pub struct HubEvent {
    /// The state of the datastore after it.
    pub revision: u64,
    /// The object before; none if it is new.
    pub before: Option<Object>,
    /// The object after; none if it was deleted.
    pub after: Option<Object>,
    /// Roughly how much memory it takes.
    pub(super) size: usize,
    /// The object before, at the revision of its end.
    last: OnceLock<Object>,
    /// What clients are sent, made once for all of them, by what it means to them.
    texts: [OnceLock<Bytes>; 3],
}

/// What a change means to a client, which sees selected objects only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The object is new.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

impl HubEvent {
    pub(super) fn put(revision: u64, before: Option<Object>, after: Object) -> Self {
        let size = after.size();
        Self::new(revision, before, Some(after), size)
    }

    pub(super) fn deleted(revision: u64, before: Object) -> Self {
        let size = before.size();
        Self::new(revision, Some(before), None, size)
    }

    fn new(revision: u64, before: Option<Object>, after: Option<Object>, size: usize) -> Self {
        Self {
            revision,
            before,
            after,
            size,
            last: OnceLock::new(),
            texts: Default::default(),
        }
    }

    /// The namespace of the object; empty if it has none.
    pub(super) fn namespace(&self) -> &str {
        let object = self.after.as_ref().or(self.before.as_ref());
        let namespace = object.and_then(|object| object.head().pointer("/metadata/namespace"));
        namespace.and_then(Value::as_str).unwrap_or_default()
    }

    /// The last state before the end, at the revision of that.
    pub fn last(&self) -> Option<Object> {
        let before = self.before.as_ref()?;
        let last = self.last.get_or_init(|| {
            let mut last = before.whole().into_owned();
            last["metadata"]["resourceVersion"] = json!(self.revision.to_string());
            Object::new(last)
        });
        Some(last.clone())
    }

    /// What `make` gave for the first client to whom the change means the same.
    pub fn text(&self, meaning: Meaning, make: impl FnOnce() -> Bytes) -> Bytes {
        self.texts[meaning as usize].get_or_init(make).clone()
    }
}

/// Roughly how much memory an object takes.
pub(super) fn size_of(value: &Value) -> usize {
    match value {
        Value::String(text) => 32 + text.len(),
        Value::Array(items) => 32 + items.iter().map(size_of).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields.iter();
            32 + fields
                .map(|(name, value)| 64 + name.len() + size_of(value))
                .sum::<usize>()
        }
        _ => 32,
    }
}

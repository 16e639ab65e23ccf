//! Which changes a controller cares about.
//!
//! A predicate is a function of the object before and after: nothing before it was made, nothing after it is gone.

use crate::object::Object;

/// Objects that are made or go, and those whose specification was changed: not those whose status was.
pub fn generation_changed<K: Object>() -> impl Fn(Option<&K>, Option<&K>) -> bool + Copy {
    |old, new| match (old, new) {
        (Some(old), Some(new)) => {
            old.generation() != new.generation() || old.is_deleting() != new.is_deleting()
        }
        _ => true,
    }
}

/// Objects that are made or go, and those whose labels were changed.
pub fn labels_changed<K: Object>() -> impl Fn(Option<&K>, Option<&K>) -> bool + Copy {
    |old, new| match (old, new) {
        (Some(old), Some(new)) => !old.has_labels_of(new),
        _ => true,
    }
}

/// Objects that are made or go, and those whose annotations were changed.
pub fn annotations_changed<K: Object>() -> impl Fn(Option<&K>, Option<&K>) -> bool + Copy {
    |old, new| match (old, new) {
        (Some(old), Some(new)) => !old.has_annotations_of(new),
        _ => true,
    }
}

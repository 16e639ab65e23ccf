//! What people should know of objects that are there now.

use std::collections::HashMap;

use tortie_sync::Name;

use super::Topic;

/// What people should know of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remark {
    /// The kind of the object.
    pub kind: String,
    /// Its name, with the namespace if it has one.
    pub name: String,
    /// What is to be known.
    pub text: String,
}

/// One remark for each object that needs one.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    texts: HashMap<(Topic, Name), String>,
    is_changed: bool,
}

impl Remarks {
    /// This is to be known of an object, or nothing any more.
    pub(super) fn set(&mut self, key: &(Topic, Name), text: Option<&str>) {
        if self.texts.get(key).map(String::as_str) == text {
            return;
        }
        self.is_changed = true;
        match text {
            Some(text) => self.texts.insert(key.clone(), text.to_owned()),
            None => self.texts.remove(key),
        };
    }

    /// All of them in order, if they changed since this was last asked.
    pub(super) fn take_changed(&mut self) -> Option<Vec<Remark>> {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let remarks = self.texts.iter().map(|((topic, name), text)| Remark {
            kind: topic.to_string(),
            name: match name.namespace() {
                "" => name.name().to_owned(),
                namespace => format!("{namespace}/{}", name.name()),
            },
            text: text.clone(),
        });
        let mut remarks: Vec<Remark> = remarks.collect();
        remarks.sort();
        Some(remarks)
    }
}

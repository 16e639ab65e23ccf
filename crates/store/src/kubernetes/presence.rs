//! Which objects there were, of the kinds that a cluster may do without.
//!
//! Where the API server says that it does not know such a kind, there are none, unless some were seen and not deleted
//! since: Kubernetes deletes all objects of a kind, one by one, before it forgets the kind itself.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tortie_sync::kubernetes::Selection;

use super::source::Source;
use crate::error::Error;

/// See the module. Clones share what they know.
#[derive(Debug, Clone, Default)]
pub(super) struct Presence(Arc<Mutex<HashMap<String, HashSet<String>>>>);

impl Presence {
    /// These are all objects of a source, if all were asked for.
    pub(super) fn set_all(&self, source: &Source, at: &Selection, ids: HashSet<String>) {
        if source.is_optional() && *at == Selection::default() {
            self.lock().insert(source.endpoint.path(), ids);
        }
    }

    /// There is this object.
    pub(super) fn add(&self, source: &Source, object: &Value) {
        if source.is_optional() {
            let mut seen = self.lock();
            let ids = seen.entry(source.endpoint.path()).or_default();
            ids.insert(id_of(object));
        }
    }

    /// This object was deleted.
    pub(super) fn remove(&self, source: &Source, object: &Value) {
        if let Some(ids) = self.lock().get_mut(&source.endpoint.path()) {
            ids.remove(&id_of(object));
        }
    }

    /// The API server says that it does not know the kind of a source: an error, unless there are no such objects.
    pub(super) fn check_missing(&self, source: &Source) -> Result<(), Error> {
        let path = source.endpoint.path();
        let seen = self.lock().get(&path).map_or(0, HashSet::len);
        if source.is_optional() && seen == 0 {
            return Ok(());
        }
        let there = match seen {
            0 => String::new(),
            seen => format!(", although there were {seen} objects"),
        };
        let advice = match source.crd_group() {
            Some(_) => "; if they are not defined, `tortie crds | kubectl apply -f -` defines them",
            None => "",
        };
        Err(Error::message(format!(
            "Kubernetes answers 404 for {path}{there}{advice}"
        )))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashSet<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What tells an object from the others of its kind.
pub(super) fn id_of(object: &Value) -> String {
    let text = |pointer: &str| {
        let value = object.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"))
}

//! Large objects that were read a moment ago, for others who read the same list.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::failure::Result;
use crate::hub::Object;
use crate::registry::{ResourceId, ResourceType};

/// From how many bytes of JSON an object is kept.
const LARGE: usize = 64 << 10;

/// How many bytes of them are kept.
const MAX_BYTES: usize = 32 << 20;

#[derive(Default)]
pub(super) struct Decoded {
    recent: Mutex<VecDeque<Entry>>,
}

struct Entry {
    id: Id,
    bytes: usize,
    object: Arc<OnceLock<Result<Option<Object>>>>,
}

/// An object in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) of: ResourceId,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) revision: u64,
}

impl Id {
    pub(super) fn new(of: &ResourceType, namespace: &str, name: &str, revision: u64) -> Self {
        Self {
            of: of.id(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            revision,
        }
    }
}

impl Decoded {
    /// What `read` gives, or gave to somebody else. Those who come meanwhile wait for it.
    pub(super) fn get(
        &self,
        id: Id,
        bytes: usize,
        read: impl FnOnce() -> Result<Option<Object>>,
    ) -> Result<Option<Object>> {
        if bytes < LARGE {
            return read();
        }
        let object = self.entry(id, bytes);
        object.get_or_init(read).clone()
    }

    /// Whether an object is at hand.
    pub(super) fn has(&self, id: &Id) -> bool {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut recent = recent.iter();
        recent.any(|entry| entry.id == *id && entry.object.get().is_some())
    }

    fn entry(&self, id: Id, bytes: usize) -> Arc<OnceLock<Result<Option<Object>>>> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = recent.iter().find(|entry| entry.id == id) {
            return Arc::clone(&known.object);
        }
        let object = Arc::default();
        recent.push_back(Entry {
            id,
            bytes,
            object: Arc::clone(&object),
        });
        let mut all: usize = recent.iter().map(|entry| entry.bytes).sum();
        while all > MAX_BYTES && recent.len() > 1 {
            all -= recent.pop_front().map_or(0, |oldest| oldest.bytes);
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    #[test]
    fn large_objects_are_read_once_by_all_and_forgotten_when_there_are_others() {
        let registry = Registry::standalone();
        let of = registry.find("projectcalico.org", "v3", "tiers").unwrap();
        let decoded = Decoded::default();
        let reads = AtomicUsize::new(0);
        let get = |name: &str, revision, bytes| {
            let id = Id::new(of, "", name, revision);
            let object = decoded.get(id, bytes, || {
                reads.fetch_add(1, Ordering::SeqCst);
                Ok(Some(Object::new(json!({"metadata": {"name": name}}))))
            });
            object.unwrap();
            reads.load(Ordering::SeqCst)
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| get("a", 1, LARGE));
            }
        });
        assert_eq!(get("a", 1, LARGE), 1);
        assert!(decoded.has(&Id::new(of, "", "a", 1)));
        assert_eq!(get("a", 2, LARGE), 2, "it changed");
        assert_eq!(get("small", 1, 10), 3);
        assert_eq!(get("small", 1, 10), 4);
        assert_eq!(get("b", 1, MAX_BYTES), 5);
        assert!(!decoded.has(&Id::new(of, "", "a", 1)));
        assert_eq!(get("b", 1, MAX_BYTES), 5);
    }
}

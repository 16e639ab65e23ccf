//! What was found in etcd, and the lists that are made of it.

use tortie_api::Resource;

use super::messages::KeyValue;
use super::paths::Location;
use super::value::Stored;
use crate::default_profile;
use crate::error::{Error, Result};
use crate::key::{Key, Query, Revision};
use crate::store::{Invalid, List};

/// What was found in etcd under one key.
pub(super) struct Found {
    pub(super) kv: KeyValue,
    pub(super) location: Location,
}

// === impl Found ===

impl Found {
    /// None if the key is not that of an object.
    pub(super) fn new(kv: KeyValue) -> Option<Self> {
        let location = Location::parse(kv.path()?)?;
        Some(Self { kv, location })
    }

    pub(super) fn stored(&self) -> Stored<'_> {
        Stored {
            location: &self.location,
            value: &self.kv.value,
            create_revision: self.kv.create_revision,
            mod_revision: self.kv.mod_revision,
        }
    }

    pub(super) fn key(&self) -> Key {
        self.stored().key()
    }

    pub(super) fn decode(&self, key: &Key) -> Result<Resource> {
        let unreadable = |reason| Error::Unreadable {
            key: key.clone(),
            reason,
            revision: Revision(self.kv.mod_revision.to_string()),
        };
        self.stored().decode().map_err(unreadable)
    }
}

/// What a query selects among what was found.
pub(super) fn list_of(found: &[Found], query: &Query, revision: i64) -> List {
    let mut entries: Vec<_> = found
        .iter()
        .map(|found| (found.key(), found))
        .filter(|(key, _)| query.selects(key))
        .collect();
    // Not etcd's order, where `/` comes after `-`. Of a policy under both its paths, that under
    // the newer one stands.
    entries.sort_by_cached_key(|(key, found)| (key.clone(), found.location.key() != *key));
    entries.dedup_by(|(later, _), (earlier, _)| later == earlier);
    let revision = Revision(revision.to_string());
    let mut list = List {
        items: Vec::new(),
        invalid: Vec::new(),
        revision,
    };
    for (key, found) in entries {
        match found.stored().decode() {
            Ok(resource) => list.items.push(resource),
            Err(reason) => {
                let value = found.stored().value;
                list.invalid.push(Invalid::of_bytes(key, reason, value));
            }
        }
    }
    default_profile::add_to(&mut list.items, query);
    list
}

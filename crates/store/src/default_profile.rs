//! The profile that is in every datastore without being stored: it allows everything.

pub(crate) use tortie_api::k8s::DEFAULT_ALLOW_PROFILE as NAME;
use tortie_api::k8s::default_allow_profile;
use tortie_api::{Kind, Resource};

use crate::embedded::Stored;
use crate::error::{Error, Result};
use crate::key::{Key, Query};

/// It never changes, so one revision does for ever.
const REVISION: &str = "1";

/// Whether the key is that of the profile.
pub(crate) fn is(key: &Key) -> bool {
    key.kind == Kind::Profile && key.name == NAME
}

/// The profile.
pub(crate) fn resource() -> Resource {
    let mut profile = default_allow_profile();
    REVISION.clone_into(&mut profile.metadata.resource_version);
    profile.into()
}

/// What would be known of it if it were stored.
pub(crate) fn stored() -> Stored {
    Stored {
        namespace: String::new(),
        name: NAME.to_owned(),
        revision: REVISION.parse().unwrap_or_default(),
        bytes: 0,
    }
}

/// Adds the profile to a sorted list, where the query selects it.
pub(crate) fn add_to(items: &mut Vec<Resource>, query: &Query) {
    let key = Key::global(Kind::Profile, NAME);
    if query.selects(&key) {
        items.retain(|item| item.metadata().name != NAME);
        let at = items.partition_point(|item| item.metadata().name.as_str() < NAME);
        items.insert(at, resource());
    }
}

/// Refuses to change or remove the profile.
pub(crate) fn check_writable(operation: &'static str, key: &Key) -> Result<()> {
    if !is(key) {
        return Ok(());
    }
    if operation == "create" {
        return Err(Error::AlreadyExists(key.clone()));
    }
    let reason = "it is built in; make a profile of your own instead".to_owned();
    Err(Error::Unsupported {
        operation,
        key: key.clone(),
        reason,
    })
}

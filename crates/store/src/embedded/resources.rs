//! Resources in the file: what a watch of them delivers, and what refusals mean for them.

use tortie_api::Problems;

use super::feed::{Committed, State};
use super::keys::{self, AnyKey};
use super::watch::Selection;
use super::writer::{Objection, Refused};
use crate::error::Error;
use crate::json;
use crate::key::{Key, Query, Revision};
use crate::store::{Change, Event, Invalid};

impl Selection for Query {
    type Event = Event;

    fn logged(&self, revision: u64, key: &[u8], json: Option<&[u8]>) -> Option<Event> {
        let key = keys::decode(key)?;
        if !self.selects(&key) {
            return None;
        }
        let change = match json {
            None => Change::Delete(key),
            Some(json) => match json::decode(key.kind, json, revision.to_string()) {
                Ok(resource) => Change::Put(resource),
                Err(reason) => Change::Invalid(Invalid::of_bytes(key, reason, json)),
            },
        };
        Some(event(revision, change))
    }

    fn committed(&self, change: &Committed) -> Option<Event> {
        let AnyKey::Resource(key) = &change.key else {
            return None;
        };
        if !self.selects(key) {
            return None;
        }
        let new = match &change.state {
            State::Resource(resource) => Change::Put((**resource).clone()),
            _ => Change::Delete(key.clone()),
        };
        Some(event(change.revision, new))
    }

    fn bookmark(&self, revision: u64) -> Event {
        event(revision, Change::Bookmark)
    }
}

/// What a refusal is to the caller.
pub(super) fn error(refused: Refused) -> Error {
    match refused {
        Refused::Failed(error) => error,
        Refused::Object(AnyKey::Resource(key), objection) => match objection {
            Objection::NotFound => Error::NotFound(key),
            Objection::AlreadyExists => Error::AlreadyExists(key),
            Objection::Conflict => Error::Conflict(key),
        },
        Refused::Object(AnyKey::Document(_), _) => {
            unreachable!("writes of resources touch no documents")
        }
    }
}

pub(super) fn invalid_name(key: &Key) -> Error {
    let mut problems = Problems::default();
    let path = tortie_api::Path::ROOT;
    problems.add(
        &path.field("metadata"),
        &key.name,
        "must not hold a NUL in name or namespace",
    );
    Error::Invalid {
        key: key.clone(),
        problems,
    }
}

fn event(revision: u64, change: Change) -> Event {
    Event {
        revision: Revision(revision.to_string()),
        change,
    }
}

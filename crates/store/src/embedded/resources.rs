//! Resources in the file: what a watch of them delivers, and what refusals mean for them.

use std::borrow::Cow;

use tortie_api::Problems;

use super::feed::{Committed, State};
use super::keys::AnyKey;
use super::views::{self, Shown};
use super::watch::Selection;
use super::writer::{Objection, Refused};
use crate::error::Error;
use crate::key::{Key, Query, Revision};
use crate::store::{Change, Event};

impl Selection for Query {
    type Event = Event;

    fn logged(&self, revision: u64, key: &[u8], json: Option<&[u8]>) -> Option<Event> {
        let (shown, key) = views::parse(self.kind, key)?;
        let json = json.map(|json| (shown, json));
        self.selects(&key)
            .then(|| event(revision, change_of(key, revision, json)))
    }

    fn committed(&self, change: &Committed) -> Option<Event> {
        let (shown, key) = match &change.key {
            AnyKey::Resource(key) => (None, Cow::Borrowed(key)),
            AnyKey::Document(document) => {
                let shown = views::of_collection(&document.collection)?;
                let key = shown.key(&document.namespace, &document.name)?;
                (Some(shown), Cow::Owned(key))
            }
        };
        if !self.selects(&key) {
            return None;
        }
        let json = match &change.state {
            State::Resource(resource) => {
                return Some(event(change.revision, Change::Put((**resource).clone())));
            }
            State::Document(json) => Some((shown, &**json)),
            State::Removed | State::OnlyInLog => None,
        };
        let new = change_of(key.into_owned(), change.revision, json);
        Some(event(change.revision, new))
    }

    fn bookmark(&self, revision: u64) -> Event {
        event(revision, Change::Bookmark)
    }
}

/// What a change is to resources: the new state, as it is stored, unless the object was removed.
fn change_of(key: Key, revision: u64, json: Option<(Option<Shown>, &[u8])>) -> Change {
    let Some((shown, json)) = json else {
        return Change::Delete(key);
    };
    match views::decode(shown, &key, revision, json) {
        Ok(resource) => Change::Put(resource),
        Err(invalid) => Change::Invalid(invalid),
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

//! What frames hold.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tortie_api::{Kind, Resource};

use super::failure::Failure;
use super::frame::Malformed;
use crate::json;
use crate::key::{Key, Query, Revision, kind_name};
use crate::store::{Change, Compacted, Event, Invalid, Precondition, Verified, Write};

/// The first frame, from the server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Greeting {
    pub(super) protocol: u32,
    /// Why the server does not want to talk, if so.
    pub(super) refusal: Option<String>,
    pub(super) reads_many_at_once: bool,
}

/// The second frame, from the client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
}

/// A request: an operation of the datastore.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Call {
    Get(Key),
    GetMany(Vec<Key>),
    Revisions(Vec<Key>),
    List(Query),
    Create(ResourceJson),
    Update(ResourceJson),
    UpdateStatus(ResourceJson),
    Delete(Key, Precondition),
    WriteTogether(Vec<WriteJson>),
    ListAffinities(String),
    Verify,
    Compact,
    /// To a path of the machine that both processes are on.
    BackUp(PathBuf),
    /// The connection is for this alone from here on.
    Watch(Query, Revision),
}

/// An answer, of the form that its call has.
pub(super) type Reply = Result<Answer, Failure>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Answer {
    Resource(ResourceJson),
    Resources(Vec<ResourceJson>),
    Each(Vec<Result<ResourceJson, Failure>>),
    Revisions(Vec<Option<Revision>>),
    /// A part of a list.
    List {
        items: Vec<ResourceJson>,
        invalid: Vec<Invalid>,
        revision: Revision,
    },
    Verified(Verified),
    Compacted(Compacted),
    Done,
    /// The watch has begun.
    Watching,
    /// What a watch delivers.
    Event {
        revision: Revision,
        change: ChangeJson,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum WriteJson {
    Create(ResourceJson),
    Update(ResourceJson),
    Delete(ResourceJson),
    Unchanged(Key, Option<Revision>),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ChangeJson {
    Put(ResourceJson),
    Delete(Key),
    Invalid(Invalid),
    Bookmark,
}

/// A resource whose JSON is read only where it is needed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ResourceJson {
    #[serde(with = "kind_name")]
    kind: Kind,
    revision: String,
    json: Box<RawValue>,
}

// === impl Call ===

impl Call {
    pub(super) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        Ok(serde_json::from_slice(body)?)
    }

    /// The objects to be written.
    pub(super) fn into_objects(self) -> Vec<ResourceJson> {
        match self {
            Self::Create(object) | Self::Update(object) | Self::UpdateStatus(object) => {
                vec![object]
            }
            Self::WriteTogether(writes) => writes
                .into_iter()
                .filter_map(|write| match write {
                    WriteJson::Create(object)
                    | WriteJson::Update(object)
                    | WriteJson::Delete(object) => Some(object),
                    WriteJson::Unchanged(..) => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

// === impl ResourceJson ===

impl ResourceJson {
    pub(super) fn decode(&self) -> Result<Resource, Malformed> {
        json::decode(self.kind, self.json.get().as_bytes(), self.revision.clone())
            .map_err(Malformed::Object)
    }

    /// The size of its JSON.
    pub(super) fn bytes(&self) -> usize {
        self.json.get().len()
    }
}

impl From<&Resource> for ResourceJson {
    fn from(resource: &Resource) -> Self {
        Self {
            kind: resource.kind(),
            revision: resource.metadata().resource_version.clone(),
            json: serde_json::value::to_raw_value(resource)
                .expect("resources have string keys and finite numbers only"),
        }
    }
}

// === impl WriteJson ===

impl From<&Write> for WriteJson {
    fn from(write: &Write) -> Self {
        match write {
            Write::Create(resource) => Self::Create(resource.into()),
            Write::Update(resource) => Self::Update(resource.into()),
            Write::Delete(resource) => Self::Delete(resource.into()),
            Write::Unchanged(key, revision) => Self::Unchanged(key.clone(), revision.clone()),
        }
    }
}

impl WriteJson {
    pub(super) fn decode(self) -> Result<Write, Malformed> {
        Ok(match self {
            Self::Create(resource) => Write::Create(resource.decode()?),
            Self::Update(resource) => Write::Update(resource.decode()?),
            Self::Delete(resource) => Write::Delete(resource.decode()?),
            Self::Unchanged(key, revision) => Write::Unchanged(key, revision),
        })
    }
}

// === impl ChangeJson ===

impl From<Event> for Answer {
    fn from(event: Event) -> Self {
        let change = match event.change {
            Change::Put(resource) => ChangeJson::Put((&resource).into()),
            Change::Delete(key) => ChangeJson::Delete(key),
            Change::Invalid(invalid) => ChangeJson::Invalid(invalid),
            Change::Bookmark => ChangeJson::Bookmark,
        };
        Self::Event {
            revision: event.revision,
            change,
        }
    }
}

impl ChangeJson {
    pub(super) fn decode(self) -> Result<Change, Malformed> {
        Ok(match self {
            Self::Put(resource) => Change::Put(resource.decode()?),
            Self::Delete(key) => Change::Delete(key),
            Self::Invalid(invalid) => Change::Invalid(invalid),
            Self::Bookmark => Change::Bookmark,
        })
    }
}

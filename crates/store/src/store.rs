//! The trait that all datastore drivers implement.

use std::path::Path;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde::{Deserialize, Deserializer, Serialize};
use tortie_api::{Kind, Resource};

use crate::default_profile;
use crate::embedded::Snapshot;
use crate::error::{Error, Result};
use crate::key::{Key, Query, Revision};

/// How many objects are asked for at once where each needs a request of its own.
const GETS_AT_ONCE: usize = 8;

/// A datastore.
///
/// Every resource that a driver returns carries its revision in `metadata.resourceVersion`.
#[async_trait]
pub trait Store: Send + Sync {
    /// Fails if nothing could be written now, as far as that can be told without writing. Datastores elsewhere say so
    /// themselves.
    async fn check_health(&self) -> Result<()> {
        Ok(())
    }

    /// Checks all that is stored, for datastores that are a file.
    async fn verify(&self) -> Result<Verified> {
        Err(no_file())
    }

    /// Gives back to the disk what is not used, for datastores that are a file. Everybody waits meanwhile.
    async fn compact(&self) -> Result<Compacted> {
        Err(no_file())
    }

    /// The present state, to be read for a while, for datastores that are a file of this process.
    fn snapshot(&self) -> Result<Option<Snapshot>> {
        Ok(None)
    }

    /// Writes all that is stored to a new file, as of one moment, for datastores that are a file.
    async fn back_up(&self, to: &Path) -> Result<()> {
        let _ = to;
        Err(no_file())
    }

    /// Reads one object.
    async fn get(&self, key: &Key) -> Result<Resource>;

    /// Reads several objects, each as [`Store::get`] does, with as few requests as the datastore can do that. The outer
    /// error is of the datastore, an inner one of one object.
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Result<Resource>>> {
        let mut all = Vec::with_capacity(keys.len());
        for keys in keys.chunks(GETS_AT_ONCE) {
            let mut gets = Vec::with_capacity(keys.len());
            for key in keys {
                gets.push(self.get(key));
            }
            for found in futures::future::join_all(gets).await {
                match found {
                    Err(error) if error.is_retryable() => return Err(error),
                    found => all.push(found),
                }
            }
        }
        Ok(all)
    }

    /// Whether several objects cost no more requests than one.
    fn reads_many_at_once(&self) -> bool {
        false
    }

    /// At which revisions objects are; none where there is no such object.
    async fn revisions(&self, keys: &[Key]) -> Result<Vec<Option<Revision>>> {
        let found = self.get_many(keys).await?;
        let revision = |found: Result<Resource>| match found {
            Ok(found) => Ok(Some(Revision(found.metadata().resource_version.clone()))),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        };
        found.into_iter().map(revision).collect()
    }

    /// Reads all objects that a query selects, in order of namespace and name, as of one revision.
    async fn list(&self, query: &Query) -> Result<List>;

    /// Reads the same in parts, for those who need not have everything in memory at once. All parts show one revision,
    /// and bear it; there is at least one. What is in order is each part. After an error, what came before may be only a
    /// part; [`Error::Gone`] means that the revision was forgotten before the last part was read.
    fn list_in_parts(&self, query: &Query) -> BoxStream<'_, Result<List>> {
        let query = query.clone();
        stream::once(async move { self.list(&query).await }).boxed()
    }

    /// Stores a new object; [`Error::AlreadyExists`] if there is one. Any revision in its metadata is ignored.
    async fn create(&self, resource: Resource) -> Result<Resource>;

    /// Replaces an object, if it still is at the revision in the given resource's metadata; [`Error::Conflict`] if it
    /// is not, [`Error::NotFound`] if it is gone.
    async fn update(&self, resource: Resource) -> Result<Resource>;

    /// Like [`Store::update`], for the observed state only where the datastore keeps that apart.
    async fn update_status(&self, resource: Resource) -> Result<Resource> {
        self.update(resource).await
    }

    /// Fails as a deletion does where the datastore leaves objects like this one to others, so that nobody begins with what
    /// goes with it.
    fn check_deletable(&self, key: &Key) -> Result<()> {
        default_profile::check_writable("delete", key)
    }

    /// Removes an object and returns what it was; [`Error::Conflict`] if the precondition does not hold.
    async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource>;

    /// Carries out all writes or none of them, and gives what was created and updated, in their order. The error is that
    /// of the first write whose condition does not hold. No object may be named twice.
    ///
    /// Datastores that cannot do this answer [`Error::Unsupported`] and have written nothing.
    async fn write_together(&self, writes: Vec<Write>) -> Result<Vec<Resource>> {
        match writes.first() {
            None => Ok(Vec::new()),
            Some(write) => Err(Error::Unsupported {
                operation: "write together",
                key: write.key(),
                reason: "this datastore changes one object at a time".to_owned(),
            }),
        }
    }

    /// Reads the block affinities of all owners with this name, in order of their names.
    async fn list_affinities(&self, owner: &str) -> Result<List> {
        let mut list = self.list(&Query::all(Kind::BlockAffinity)).await?;
        list.items.retain(|item| match item {
            Resource::BlockAffinity(affinity) => affinity.spec.node == owner,
            _ => false,
        });
        Ok(list)
    }

    /// Follows the changes after a revision, usually that of a list, over one connection.
    ///
    /// A watch never connects again by itself. It is over when its connection is: with an error, or without one if it
    /// looks as if the datastore ended it in good order. To go on, the caller watches from the last revision that it was told; but
    /// [`Error::Gone`] means to list again. Whoever wants all this done follows with `tortie_sync`.
    async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch>;
}

/// What a check of all that is stored found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// How many objects there are.
    pub objects: u64,
    /// The revision of the last change.
    pub revision: u64,
    /// What is wrong; nothing if all is well.
    pub problems: Vec<String>,
}

/// What a file took of the disk, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    pub before: u64,
    /// Afterwards.
    pub after: u64,
}

fn no_file() -> Error {
    Error::message(
        "this datastore is not a file of this machine; use the tools of etcd or Kubernetes",
    )
}

/// One of several writes that are carried out together.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Stores a new object, as [`Store::create`] does.
    Create(Resource),
    /// Replaces an object that is at the revision in the resource, as [`Store::update`] does.
    Update(Resource),
    /// Removes an object that is at the revision in the resource.
    Delete(Resource),
    /// Changes nothing, but fails with [`Error::Conflict`] if the object is at another revision; without one, if there
    /// is such an object.
    Unchanged(Key, Option<Revision>),
}

impl Write {
    /// The object in question.
    pub fn key(&self) -> Key {
        match self {
            Self::Create(resource) | Self::Update(resource) | Self::Delete(resource) => {
                Key::of(resource)
            }
            Self::Unchanged(key, _) => key.clone(),
        }
    }
}

/// What must be true of an object for its deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precondition {
    /// It is at this revision.
    pub revision: Option<Revision>,
    /// It is this very object.
    pub uid: Option<String>,
}

/// The objects that a query selected.
#[derive(Debug, Clone)]
pub struct List {
    /// The objects.
    pub items: Vec<Resource>,
    /// Stored values that could not be read as objects.
    pub invalid: Vec<Invalid>,
    /// The state of the datastore that this list shows; a watch may continue from here.
    pub revision: Revision,
}

/// A stored value that could not be read as an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invalid {
    /// The key it is stored under.
    pub key: Key,
    /// Why it could not be read.
    pub reason: String,
    /// For a policy that is enforced: what denies in its place, if it can be told about whom the policy is.
    #[serde(default, deserialize_with = "read_stand_in")]
    pub stand_in: Option<Box<Resource>>,
}

impl Invalid {
    /// A value that could not be read; `stored` is its content as far as that is JSON.
    pub fn new(key: Key, reason: String, stored: Option<&serde_json::Value>) -> Self {
        let stand_in = stored.and_then(|stored| tortie_api::stand_in(key.kind, stored));
        let stand_in = stand_in.map(|mut resource| {
            let metadata = resource.metadata_mut();
            metadata.name.clone_from(&key.name);
            metadata.namespace.clone_from(&key.namespace);
            Box::new(resource)
        });
        Self {
            key,
            reason,
            stand_in,
        }
    }

    /// The same, from stored bytes.
    pub(crate) fn of_bytes(key: Key, reason: String, stored: &[u8]) -> Self {
        let stored = serde_json::from_slice(stored).ok();
        Self::new(key, reason, stored.as_ref())
    }
}

/// Resources tell their kind in JSON, and are read as that.
fn read_stand_in<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<Resource>>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    let kind = value.get("kind").and_then(serde_json::Value::as_str);
    let resource = kind
        .and_then(tortie_api::Kind::from_name)
        .and_then(|kind| Resource::decode_stored(kind, &value).ok());
    Ok(resource.map(Box::new))
}

/// A stream of changes.
pub type Watch = BoxStream<'static, Result<Event>>;

/// One change, or a mark of how far the watch has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The state of the datastore after the change; a later watch may continue from here.
    pub revision: Revision,
    /// What changed.
    pub change: Change,
}

/// What changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The object was created or replaced.
    Put(Resource),
    /// The object was removed.
    Delete(Key),
    /// The object was created or replaced by something that cannot be read; treat it as absent.
    Invalid(Invalid),
    /// Nothing changed; the revision can be used to resume.
    Bookmark,
}

/// Refuses an update that does not say which revision it is based on.
pub(crate) fn expected_revision(resource: &Resource) -> Result<&str> {
    match resource.metadata().resource_version.as_str() {
        "" => Err(Error::Conflict(Key::of(resource))),
        revision => Ok(revision),
    }
}

/// Refuses writes of which two are about one object: datastores differ in what they make of that.
pub(crate) fn check_distinct<T: Ord>(keys: impl Iterator<Item = T>) -> Result<()> {
    let mut keys: Vec<T> = keys.collect();
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    if keys.len() == count {
        Ok(())
    } else {
        Err(Error::message(
            "an object can be written only once in writes that are made together",
        ))
    }
}

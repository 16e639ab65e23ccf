//! Where objects are kept, as the service sees it: JSON by type, namespace and name.

mod calico;
mod definitions;
mod documents;
mod events;
mod native;
mod roles;
pub(crate) mod services;
mod standalone;

pub use calico::CalicoStorage;
pub use definitions::DefinitionStorage;
pub use documents::DocumentStorage;
pub(crate) use native::check_unknown;
pub use roles::RoleStorage;
pub use services::ServiceStorage;
pub use standalone::StandaloneStorage;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::Value;
use tortie_store::Error;
use tortie_store::embedded::{Most, Snapshot, Stored};

use crate::failure::{Failure, Reason, Result};
use crate::registry::ResourceType;

/// A place where objects are kept. Every object that it gives carries its revision in `metadata.resourceVersion`.
#[async_trait]
pub trait Storage: Send + Sync {
    /// Fills in the defaults of a type, as storing the object does. What is wrong is left to be refused then.
    fn complete(&self, of: &ResourceType, object: &mut Value);

    /// The fields of an object that its type does not have, and that are not in what was stored of it.
    fn unknown_fields(&self, of: &ResourceType, given: &Value, stored: &Value) -> Vec<String>;

    /// Fails if nothing could be written now.
    async fn check_health(&self) -> Result<()> {
        Ok(())
    }

    /// Reads one object.
    async fn get(&self, of: &ResourceType, namespace: &str, name: &str) -> Result<Value>;

    /// Reads all objects of a type, in order of namespace and name, and gives them away one by one: all of them may be more
    /// than should be in memory. Gives the revision of the state that they show. After a failure, they were only a part.
    async fn list_each(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        take: &mut (dyn FnMut(Value) + Send),
    ) -> Result<u64>;

    /// Reads all objects of a type, in order of namespace and name.
    async fn list(&self, of: &ResourceType, namespace: Option<&str>) -> Result<Listed> {
        let mut items = Vec::new();
        let mut take = |object| items.push(object);
        let revision = self.list_each(of, namespace, &mut take).await?;
        Ok(Listed { items, revision })
    }

    /// The present state, where it can be shown for a while.
    fn snapshot(&self) -> Result<Option<Snapshot>> {
        Ok(None)
    }

    /// What there is of a type in a state, after a namespace and name. Blocks.
    fn look(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        most: Most,
    ) -> Result<Vec<Stored>>;

    /// Reads one object in a state; none if it cannot be read as one, which is told in the log. Blocks.
    fn read(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>>;

    /// How many bytes of JSON an object is; nothing if there is none. Blocks.
    fn size(
        &self,
        snapshot: &Snapshot,
        of: &ResourceType,
        namespace: &str,
        name: &str,
    ) -> Result<usize>;

    /// Stores a new object.
    async fn create(&self, of: &ResourceType, object: Value, mode: Mode) -> Result<Value>;

    /// Replaces an object that is at the revision in `object`.
    async fn update(&self, of: &ResourceType, object: Value, mode: Mode) -> Result<Value>;

    /// Removes an object that is at a revision.
    async fn delete(&self, of: &ResourceType, object: &Value, mode: Mode) -> Result<()>;

    /// Follows all changes to objects of a type after a revision. The stream ends with an error.
    async fn watch(&self, of: &ResourceType, from: u64) -> Result<Changes>;
}

/// How a write is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode {
    /// Everything is checked, nothing is written.
    pub is_dry_run: bool,
    /// Fields that the type does not have are dropped rather than refused.
    pub drops_unknown_fields: bool,
    /// The observed state is meant, not the desired one.
    pub is_status: bool,
}

/// Objects as of one revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The objects.
    pub items: Vec<Value>,
    pub revision: u64,
}

pub type Changes = BoxStream<'static, Result<Change>>;

#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The state after it.
    pub revision: u64,
    /// What changed.
    pub what: What,
}

/// What changed.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// An object was created or replaced.
    Put(Value),
    /// An object was removed.
    Delete {
        /// Its namespace, empty if the type has none.
        namespace: String,
        name: String,
    },
    /// Nothing; all changes up to the revision have been told.
    Bookmark,
}

/// Lets a request end here that nobody waits for any more: after long checks, before what it does lasts.
async fn before_writing() {
    tokio::task::yield_now().await;
}

/// What becomes of an object.
#[derive(Clone, Copy)]
enum Step {
    Create,
    Update,
    Delete,
}

/// Writes, and notes what came of it, also when nobody waits for the answer any more: what is noted would otherwise not be
/// what is stored. `what` is what it writes, for messages.
async fn to_the_end<T: Send + 'static>(
    what: &str,
    write: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    before_writing().await;
    tokio::spawn(write).await.unwrap_or_else(|error| {
        let message = format!("a write of a {what} did not end: {error}");
        Err(Failure::new(Reason::Internal, message))
    })
}

/// What a failure of the datastore means to clients.
fn store_failure(of: &ResourceType, name: &str, error: Error) -> Failure {
    match error {
        Error::NotFound(_) => Failure::not_found(of, name),
        Error::AlreadyExists(_) => Failure::already_exists(of, name),
        Error::Conflict(_) => Failure::modified(of, name),
        Error::Invalid { problems, .. } => Failure::invalid(of.group, of.kind, name, &problems),
        Error::Gone(revision) => Failure::new(
            Reason::Expired,
            format!("too old resource version: {revision}"),
        ),
        Error::Unsupported { .. } => Failure::new(Reason::MethodNotAllowed, error.to_string()),
        error if error.is_retryable() => Failure::new(Reason::Unavailable, error.to_string()),
        error => Failure::new(Reason::Internal, error.to_string()),
    }
}

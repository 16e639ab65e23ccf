//! Where the objects of one topic come from.

pub(crate) mod kubernetes;
pub(crate) mod store;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tortie_store::Revision;

use crate::object::{Item, Name};

/// Lists and watches the objects of one topic.
#[async_trait]
pub(crate) trait Source: Send + Sync {
    /// Reads all objects.
    async fn list(&self) -> Result<Snapshot, Failure>;

    /// Follows the changes after a revision that a list or an event gave.
    async fn watch(&self, from: &Revision) -> Result<Events, Failure>;
}

/// All objects, as of one revision.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) items: Vec<Item>,
    pub(crate) revision: Revision,
}

pub(crate) type Events = BoxStream<'static, Result<Event, Failure>>;

/// A change, and the revision to go on from after it.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: Revision,
    pub(crate) change: Change,
}

#[derive(Debug)]
pub(crate) enum Change {
    Set(Item),
    Remove(Name),
    /// Only the revision is news.
    Nothing,
}

/// Why objects could not be listed or watched, by what is to be done about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Read everything again.
    #[error("the revision is no longer kept")]
    Gone,
    /// There are no objects, unless some were known.
    #[error("the datastore does not know the kind")]
    MissingKind,
    /// Read everything now and then instead of watching.
    #[error("the kind cannot be watched")]
    NotWatchable,
    /// Try again later.
    #[error("the datastore cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Try again a few times, then read everything.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

//! Where objects come from.

use async_trait::async_trait;
use futures::stream::BoxStream;

use crate::object::{Item, Name};
use crate::revision::Revision;

/// Lists and watches objects.
#[async_trait]
pub trait Source<V>: Send + Sync {
    /// Reads all objects, in one part or more. After a failure, what came before may be only a part; [`Failure::Gone`]
    /// means that their revision was forgotten before the last part was read.
    fn list(&self, reading: Reading) -> BoxStream<'_, Result<Part<V>, Failure>>;

    /// Follows the changes after a revision that a list or an event gave, over one connection.
    async fn watch(&self, from: &Revision) -> Result<Events<V>, Failure>;
}

/// How a list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// With as many requests as keep what is in memory small.
    InParts,
    /// With as few as possible, because in parts it took so long that its revision was forgotten.
    AtOnce,
}

/// Some of the objects.
#[derive(Debug)]
pub struct Part<V> {
    /// The objects.
    pub items: Vec<Item<V>>,
    /// The revision that all parts show.
    pub revision: Revision,
}

/// Changes, until the connection ends.
pub type Events<V> = BoxStream<'static, Result<Event<V>, Failure>>;

/// A change, and the revision to go on from after it.
#[derive(Debug)]
pub struct Event<V> {
    pub revision: Revision,
    /// The change; nothing if only the revision is news.
    pub change: Option<Change<V>>,
}

/// What is new of an object.
#[derive(Debug)]
pub enum Change<V> {
    /// It is there.
    Set(Item<V>),
    /// It is gone.
    Remove(Name),
}

/// Why objects could not be listed or watched, by what is to be done about it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
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

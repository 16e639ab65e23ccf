//! What can go wrong in a datastore, by what the caller should do about it.

use tortie_api::Problems;

use crate::key::{Key, Revision};

/// The result of a datastore operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a datastore operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such object.
    #[error("resource does not exist: {0}")]
    NotFound(Key),
    /// There is such an object already.
    #[error("resource already exists: {0}")]
    AlreadyExists(Key),
    /// The object changed since it was read: read it again and retry.
    #[error("update conflict: {0}")]
    Conflict(Key),
    /// The revision to watch from is no longer kept: list again and watch from there.
    #[error("revision {0} is no longer available; list again")]
    Gone(String),
    /// The object breaks rules; nothing was stored.
    #[error("{key}: {problems}")]
    Invalid {
        /// The object.
        key: Key,
        /// What is wrong with it.
        problems: Problems,
    },
    /// There is such an object, but what is stored cannot be read as one.
    #[error("{key} cannot be read: {reason}")]
    Unreadable {
        /// The object.
        key: Key,
        /// Why not.
        reason: String,
        /// The revision that it is at, for who replaces or removes just this.
        revision: Revision,
    },
    /// The datastore, or this object, does not allow the operation.
    #[error("operation {operation} is not supported on {key}: {reason}")]
    Unsupported {
        /// The operation, such as `delete`.
        operation: &'static str,
        /// The object.
        key: Key,
        /// Why not, and what to do instead.
        reason: String,
    },
    /// The datastore refused our credentials or permissions.
    #[error("connection is unauthorized: {0}")]
    Unauthorized(String),
    /// The datastore cannot be reached or did not answer: retry later.
    #[error("datastore is unavailable: {message}")]
    Unavailable {
        /// What was tried.
        message: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// Malformed response, or misconfigured datastore.
    #[error("{message}")]
    Other {
        /// What happened.
        message: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl Error {
    /// Whether trying again later may help without any change by the caller.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// Whether another write came first: read again and retry.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::AlreadyExists(_))
    }

    /// An unavailable datastore, with the cause.
    pub fn unavailable(
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable {
            message: message.into(),
            source: Some(source.into()),
        }
    }

    /// A failure without a class of its own, with the cause.
    pub fn other(
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Other {
            message: message.into(),
            source: Some(source.into()),
        }
    }

    /// A failure without a class of its own and without a deeper cause.
    pub fn message(message: impl Into<String>) -> Self {
        Self::Other {
            message: message.into(),
            source: None,
        }
    }
}

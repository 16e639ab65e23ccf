//! Errors on their way through the socket.

use std::error::Error as StdError;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::problems::{self, ProblemJson};
use crate::error::Error;
use crate::key::{Key, Revision};

/// The operations that datastores name when they refuse them.
const OPERATIONS: [&str; 5] = [
    "create",
    "update",
    "update status",
    "delete",
    "write together",
];

/// An [`Error`] with the texts of its causes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Failure {
    NotFound(Key),
    AlreadyExists(Key),
    Conflict(Key),
    Gone(String),
    Invalid {
        key: Key,
        problems: Vec<ProblemJson>,
    },
    Unreadable {
        key: Key,
        reason: String,
        revision: Revision,
    },
    Unsupported {
        operation: String,
        key: Key,
        reason: String,
    },
    Unauthorized(String),
    Unavailable {
        message: String,
        causes: Vec<String>,
    },
    Other {
        message: String,
        causes: Vec<String>,
    },
}

/// A cause that happened in the other process.
#[derive(Debug)]
struct Cause {
    message: String,
    source: Option<BoxedError>,
}

type BoxedError = Box<dyn StdError + Send + Sync>;

// === impl Failure ===

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(key) => Self::NotFound(key),
            Error::AlreadyExists(key) => Self::AlreadyExists(key),
            Error::Conflict(key) => Self::Conflict(key),
            Error::Gone(revision) => Self::Gone(revision),
            Error::Invalid { key, problems } => Self::Invalid {
                key,
                problems: problems.iter().map(Into::into).collect(),
            },
            Error::Unreadable {
                key,
                reason,
                revision,
            } => Self::Unreadable {
                key,
                reason,
                revision,
            },
            Error::Unsupported {
                operation,
                key,
                reason,
            } => Self::Unsupported {
                operation: operation.to_owned(),
                key,
                reason,
            },
            Error::Unauthorized(message) => Self::Unauthorized(message),
            Error::Unavailable { message, source } => Self::Unavailable {
                message,
                causes: causes(source.as_deref()),
            },
            Error::Other { message, source } => Self::Other {
                message,
                causes: causes(source.as_deref()),
            },
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotFound(key) => Self::NotFound(key),
            Failure::AlreadyExists(key) => Self::AlreadyExists(key),
            Failure::Conflict(key) => Self::Conflict(key),
            Failure::Gone(revision) => Self::Gone(revision),
            Failure::Invalid { key, problems } => Self::Invalid {
                key,
                problems: problems::collect(&problems),
            },
            Failure::Unreadable {
                key,
                reason,
                revision,
            } => Self::Unreadable {
                key,
                reason,
                revision,
            },
            Failure::Unsupported {
                operation,
                key,
                reason,
            } => Self::Unsupported {
                operation: known(&operation),
                key,
                reason,
            },
            Failure::Unauthorized(message) => Self::Unauthorized(message),
            Failure::Unavailable { message, causes } => Self::Unavailable {
                message,
                source: chain(causes),
            },
            Failure::Other { message, causes } => Self::Other {
                message,
                source: chain(causes),
            },
        }
    }
}

/// Errors name operations by words of the program; those of a newer server may be unknown here.
fn known(operation: &str) -> &'static str {
    let found = OPERATIONS.iter().find(|known| **known == operation);
    found.copied().unwrap_or("of this sort")
}

fn causes(source: Option<&(dyn StdError + Send + Sync + 'static)>) -> Vec<String> {
    let mut texts = Vec::new();
    let mut next = source.map(|error| error as &dyn StdError);
    while let Some(error) = next {
        texts.push(error.to_string());
        next = error.source();
    }
    texts
}

fn chain(causes: Vec<String>) -> Option<BoxedError> {
    let add = |source: Option<BoxedError>, message| -> Option<BoxedError> {
        Some(Box::new(Cause { message, source }))
    };
    causes.into_iter().rev().fold(None, add)
}

// === impl Cause ===

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}

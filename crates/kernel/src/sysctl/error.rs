//! What can go wrong.

use std::io;
use std::path::PathBuf;

/// A result of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a setting was not read or made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No interface can have this name.
    #[error("`{name}` cannot be the name of an interface")]
    NotAnInterface { name: String },
    /// The setting is none of the network.
    #[error("`{path}` is not the path of a setting below net/")]
    NotOfNetwork { path: String },
    /// The interface is not there, or no longer.
    #[error("there is no interface `{name}`")]
    MissingInterface { name: String },
    /// Reading failed.
    #[error("cannot read {}", file.display())]
    Read {
        /// The setting.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Writing failed.
    #[error("cannot write `{value}` to {}", file.display())]
    Write {
        /// The setting.
        file: PathBuf,
        /// What was to be written.
        value: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Whether the setting or its interface is not there.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::NotAnInterface { .. } | Self::NotOfNetwork { .. } => false,
            Self::MissingInterface { .. } => true,
            Self::Read { source, .. } | Self::Write { source, .. } => {
                source.kind() == io::ErrorKind::NotFound
            }
        }
    }
}

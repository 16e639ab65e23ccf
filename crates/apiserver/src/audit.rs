//! What was asked for, by whom and with which result, as lines of JSON that tools for Kubernetes' audit log read.
//!
//! # Invariants
//! - The line of a request is in the file before its answer is sent; of one that gets no answer there is a line, too.
//! - Secrets are not in it, and its owner alone may read it.

mod event;
mod file;

pub use self::event::Record;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use self::file::RotatedFile;
use tortie_error::Causes;

/// How much of requests is written down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    None,
    /// Who, when, what and with which result.
    #[default]
    Metadata,
    /// What was sent as well.
    Request,
    /// What was answered as well, if that is one object.
    RequestResponse,
}

/// Where the log is, and how much there is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The file.
    pub path: PathBuf,
    /// How much is written down.
    pub level: Level,
    /// How many bytes the file may have before another one is begun.
    pub max_bytes: u64,
    /// How many files are kept besides it.
    pub backups: usize,
}

pub struct Log {
    level: Level,
    file: Mutex<RotatedFile>,
}

impl Level {
    /// All of them, with the least first.
    pub const ALL: [Self; 4] = [
        Self::None,
        Self::Metadata,
        Self::Request,
        Self::RequestResponse,
    ];

    /// The name in Kubernetes' policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|level| level.as_str() == text);
        found.ok_or_else(|| "must be None, Metadata, Request or RequestResponse".to_owned())
    }
}

impl Log {
    /// Opens the file, and adds to what it has. None if nothing is to be written.
    pub fn open(settings: &Settings) -> std::io::Result<Option<Self>> {
        if settings.level == Level::None {
            return Ok(None);
        }
        let file = RotatedFile::open(settings.path.clone(), settings.max_bytes, settings.backups)?;
        Ok(Some(Self {
            level: settings.level,
            file: Mutex::new(file),
        }))
    }

    /// How much is written down.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Adds a line. What cannot be written is told in the log of the program: requests go on, so that a full disk does not
    /// keep out those who come to free it.
    pub(crate) fn add(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write(&line) {
            tracing::error!(
                path = %file.path().display(),
                error = %Causes(&error),
                line = %String::from_utf8_lossy(&line[..line.len().min(1024)]).trim_end(),
                "The audit log cannot be written"
            );
        }
    }
}

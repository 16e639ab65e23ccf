//! The engine's input, kept in a file that `tortie replay` plays.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tortie_engine::record::Event;

/// A file that every event is written to.
pub struct Recording {
    path: PathBuf,
    file: BufWriter<File>,
    /// The first failure; nothing is written after it.
    outcome: std::io::Result<()>,
}

impl Recording {
    /// Starts a file, which only its owner can read: it tells all about a cluster.
    pub fn create(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            outcome: Ok(()),
        })
    }

    pub(crate) fn write(&mut self, event: &Event) {
        if self.outcome.is_ok() {
            self.outcome = writeln!(self.file, "{}", event.to_line());
        }
    }

    /// Ends the file; tells whether all was written.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.outcome
            .and_then(|()| self.file.flush())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

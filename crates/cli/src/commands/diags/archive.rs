//! A compressed archive that its owner alone can read.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

/// An archive that is being written. One that is not finished is removed.
pub(super) struct Archive {
    path: PathBuf,
    /// The folder that everything is in.
    top: String,
    time: u64,
    /// Nothing once it is finished.
    builder: Option<Builder<GzEncoder<BufWriter<File>>>>,
}

impl Archive {
    pub(super) fn create(path: &Path, top: &str) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(tortie_files::SECRET)
            .open(path)?;
        let encoder = GzEncoder::new(BufWriter::new(file), Compression::default());
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            path: path.to_owned(),
            top: top.to_owned(),
            time: now.unwrap_or_default().as_secs(),
            builder: Some(Builder::new(encoder)),
        })
    }

    pub(super) fn add(&mut self, name: &str, content: &[u8]) -> Result<()> {
        let Some(builder) = &mut self.builder else {
            return Ok(());
        };
        let mut header = Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(tortie_files::SECRET);
        header.set_mtime(self.time);
        let name = format!("{}/{name}", self.top);
        let added = builder.append_data(&mut header, &name, content);
        added.with_context(|| format!("cannot write {name} to {}", self.path.display()))
    }

    /// Ends the file, and gives its path.
    pub(super) fn finish(mut self) -> Result<PathBuf> {
        let builder = self.builder.take();
        let finish = || {
            if let Some(builder) = builder {
                let file = builder.into_inner()?.finish()?;
                file.into_inner()
                    .map_err(io::IntoInnerError::into_error)?
                    .flush()?;
            }
            io::Result::Ok(())
        };
        finish().with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(std::mem::take(&mut self.path))
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        if self.builder.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

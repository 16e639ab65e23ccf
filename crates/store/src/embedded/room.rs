//! Whether there is room for a write: on the disk, and within the quota.
//!
//! redb takes nothing more after a write that failed, so that a full disk is noticed before it is written to. What
//! removes objects is let through, because that is the way out.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;
use tortie_error::Causes;

use super::file::StoreFile;
use super::writer::{Operation, Write};
use crate::error::{Error, Result};
use crate::store::Compacted;

/// How large the file may become unless told otherwise: more than any cluster needs, and what etcd recommends at most.
pub const DEFAULT_QUOTA: u64 = 8 << 30;

/// What a write takes besides its content: the pages on the way to it, in both tables.
const PAGES: u64 = 64 << 10;

/// What is never used up: for deletions, and for what redb notes at a commit.
const RESERVE: u64 = 4 << 20;

/// Blocks in which the kernel counts.
const BLOCK: u64 = 512;

/// How much longer than a compaction took nobody is held up by another one.
const COMPACTION_PAUSE: u32 = 20;

/// What is known of the room between batches.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// When a compaction may hold up everybody again.
    next_compaction: Option<Instant>,
}

impl Room {
    /// Why so many bytes more cannot be written, if so. Beyond the quota, the file is first made smaller, which holds up
    /// everybody for a moment.
    pub(super) fn check(&mut self, file: &StoreFile, bytes: u64) -> Result<()> {
        let path = file.path();
        let mut used = used(path)?;
        let quota = file.quota();
        let is_due = self
            .next_compaction
            .is_none_or(|next| Instant::now() > next);
        if used + bytes > quota && is_due {
            let start = Instant::now();
            let compacted = compact(file);
            self.next_compaction = Some(Instant::now() + start.elapsed() * COMPACTION_PAUSE);
            if let Err(error) = compacted {
                tracing::warn!(path = %path.display(), error = %Causes(&error), "The store cannot be compacted the store");
            }
            used = self::used(path)?;
        }
        let (shown, mib) = (path.display(), |bytes: u64| bytes.div_ceil(1 << 20));
        if used + bytes > quota {
            return Err(full(format!(
                "the store {shown} has {} MiB of the {} MiB that it may have; delete what is not needed, or raise the quota \
                 (`tortie up --quota`)",
                mib(used),
                mib(quota)
            )));
        }
        let free = free(path)?;
        let needed = bytes + RESERVE;
        if free < needed {
            return Err(full(format!(
                "the disk of {shown} has {} MiB left where {} MiB are needed; make room on it, and writes work again",
                free >> 20,
                mib(needed)
            )));
        }
        Ok(())
    }
}

/// Gives back to the disk what is not used, and says how much that was. Nobody may write meanwhile; reads wait.
pub(super) fn compact(file: &StoreFile) -> Result<Compacted> {
    let path = file.path();
    let before = used(path)?;
    file.compact().map_err(|error| {
        Error::unavailable(
            format!("The store cannot be compacted {}", path.display()),
            error,
        )
    })?;
    let after = used(path)?;
    tracing::info!(path = %path.display(), before, after, "The store was compacted");
    Ok(Compacted { before, after })
}

impl Write {
    /// How much it may take of the disk; nothing if it removes or only looks.
    pub(super) fn growth(&self) -> u64 {
        match &self.operation {
            Operation::Create(content) | Operation::Update { content, .. } => {
                // Once as the object, once in the log.
                2 * (content.json().len() + self.stored_key.len()) as u64 + PAGES
            }
            Operation::Probe => PAGES,
            Operation::Together(writes) => writes.iter().map(Self::growth).sum(),
            Operation::Delete { .. }
            | Operation::Check { .. }
            | Operation::Verify
            | Operation::Compact => 0,
        }
    }
}

fn full(message: String) -> Error {
    Error::Unavailable {
        message,
        source: None,
    }
}

/// What the file takes of the disk.
pub(super) fn used(path: &Path) -> Result<u64> {
    let metadata = fs::metadata(path);
    let metadata = metadata.map_err(|error| unknown(path, error))?;
    Ok(metadata.blocks() * BLOCK)
}

/// What is left of the disk.
fn free(path: &Path) -> Result<u64> {
    let disk = rustix::fs::statvfs(path).map_err(|error| unknown(path, error.into()))?;
    Ok(disk.f_bavail * disk.f_frsize)
}

fn unknown(path: &Path, error: std::io::Error) -> Error {
    let message = format!("cannot tell how much room there is for {}", path.display());
    Error::unavailable(message, error)
}

//! The lock that keeps plugins on a node from changing blocks at once.
//!
//! Doing so would be right, only slower: they would all want to change the same block.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use tortie_error::Causes;
use tortie_files::places;

use crate::config::NetworkConfig;

/// The lock, until it is dropped; nothing where it could not be had.
#[derive(Debug)]
pub(super) struct Lock {
    _file: Option<File>,
}

impl Lock {
    /// Waits for the lock.
    pub(super) async fn acquire(config: &NetworkConfig) -> Self {
        let path = path(config);
        let file = match locked(path).await {
            Ok(file) => Some(file),
            Err(error) => {
                let path = path.display();
                tracing::warn!(%path, error = %Causes(&error), "There is no lock; plugins may get in each other's way");
                None
            }
        };
        Self { _file: file }
    }
}

/// The file that is locked.
pub(crate) fn path(config: &NetworkConfig) -> &Path {
    if config.ipam_lock_file.as_os_str().is_empty() {
        Path::new(places::IPAM_LOCK)
    } else {
        &config.ipam_lock_file
    }
}

async fn locked(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(error),
        Err(TryLockError::WouldBlock) => {
            let waiting = tokio::task::spawn_blocking(move || file.lock().map(|()| file));
            waiting.await.map_err(io::Error::other)?
        }
    }
}

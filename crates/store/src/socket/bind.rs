//! Makes the socket file.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use tokio::net::UnixListener;

use crate::error::{Error, Result};

/// Listens on a socket that only its owner can reach. Makes the folder if it is not there; one that others may enter is
/// refused. A socket that a killed process left behind is replaced, one that a process listens on is not.
///
/// Must be called within a tokio runtime. Blocks for moments only.
pub fn bind(path: impl AsRef<Path>) -> Result<UnixListener> {
    let path = path.as_ref();
    let failed = |error: io::Error| {
        Error::other(
            format!("cannot listen on the socket {}", path.display()),
            error,
        )
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.map_err(failed)?;
    check_private(folder, &fs::metadata(folder).map_err(failed)?)?;
    // Held to the end, so that of two that start at once one does not remove the other's socket.
    let lock = File::open(folder).map_err(failed)?;
    lock.lock().map_err(failed)?;
    remove_stale(path)?;
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

fn check_private(folder: &Path, metadata: &Metadata) -> Result<()> {
    let (mode, owner) = (metadata.mode() & 0o777, metadata.uid());
    let own = rustix::process::geteuid().as_raw();
    let folder = folder.display();
    if owner != own {
        return Err(Error::message(format!(
            "the folder {folder} for the socket belongs to user {owner}; it must belong to user {own}"
        )));
    }
    if mode & 0o077 != 0 {
        return Err(Error::message(format!(
            "the folder {folder} for the socket has mode {mode:o}, so others may use it; set it to 700"
        )));
    }
    Ok(())
}

fn remove_stale(path: &Path) -> Result<()> {
    let shown = path.display();
    let failed = |error| Error::other(format!("cannot replace the socket {shown}"), error);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(Error::message(format!(
                "{shown} is there and is not a socket; move it away or choose another path"
            )));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(failed(error)),
        // It accepted, or would if fewer were waiting.
        _ => Err(Error::Unavailable {
            message: format!("another process listens on the socket {shown}"),
            source: None,
        }),
    }
}

//! Files that are replaced as a whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// How much of two files is compared at a time.
const CHUNK: usize = 1 << 16;

/// Writes a file with these permissions.
pub(super) fn write(to: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    replace(to, mode, |file| file.write_all(content))
}

/// Copies a file with its permissions, unless it is there as it should be.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mode = fs::metadata(from)?.permissions().mode() & 0o7777;
    if is_same(from, to)? {
        return Ok(());
    }
    let mut source = File::open(from)?;
    replace(to, mode, |file| io::copy(&mut source, file).map(drop))?;
    if is_same(from, to)? {
        Ok(())
    } else {
        Err(io::Error::other("the copy is not like the original"))
    }
}

/// Removes a file, or a folder with all in it. That it is gone is no error.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether files can be made in a folder.
pub(super) fn is_writable(folder: &Path) -> bool {
    let probe = folder.join(format!(".tortie-probe-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&probe);
    // What was not made need not be removed.
    let _ = made.as_ref().map(|_| fs::remove_file(&probe));
    made.is_ok()
}

fn replace(to: &Path, mode: u32, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let temporary = beside(to);
    // One that was left by somebody who was killed may have other permissions.
    remove(&temporary)?;
    let write = || {
        let mut opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)?;
        fill(&mut opened)?;
        opened.set_permissions(Permissions::from_mode(mode))?;
        opened.sync_all()?;
        fs::rename(&temporary, to)
    };
    write().inspect_err(|_| {
        let _ = remove(&temporary);
    })
}

/// On the same file system, and with a name that runtimes do not read.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(".tmp");
    path.with_file_name(name)
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = match (File::open(one)?, File::open(other)) {
        (one, Ok(other)) => (one, other),
        (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        (_, Err(error)) => return Err(error),
    };
    let (first, second) = (one.metadata()?, other.metadata()?);
    if first.len() != second.len() || first.permissions().mode() != second.permissions().mode() {
        return Ok(false);
    }
    let (mut a, mut b) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut left = first.len();
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        one.read_exact(&mut a[..length])?;
        other.read_exact(&mut b[..length])?;
        if a[..length] != b[..length] {
            return Ok(false);
        }
        left -= length as u64;
    }
    Ok(true)
}

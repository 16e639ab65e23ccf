//! Files and folders of an installation.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// How much of two files is compared at a time.
const CHUNK: usize = 1 << 16;

/// Copies a file with its permissions, unless it is there as it should be.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mode = fs::metadata(from)?.permissions().mode() & 0o7777;
    if is_same(from, to)? {
        return Ok(());
    }
    let mut source = File::open(from)?;
    tortie_files::fill(to, mode, |file| io::copy(&mut source, file).map(drop))?;
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

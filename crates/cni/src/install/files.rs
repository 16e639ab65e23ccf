//! Files and folders of an installation.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// How much of two files is compared at a time.
const CHUNK: usize = 1 << 16;

/// Permissions of folders.
const FOLDER_MODE: u32 = 0o755;

/// Makes a folder and those that it is in, for everybody to read. Tells whether anything was to be made.
pub(super) fn make_folder(path: &Path) -> io::Result<bool> {
    if path.is_dir() {
        return Ok(false);
    }
    if let Some(above) = path.parent() {
        make_folder(above)?;
    }
    fs::create_dir(path)?;
    // What the process masks out is asked for nevertheless.
    fs::set_permissions(path, fs::Permissions::from_mode(FOLDER_MODE))?;
    Ok(true)
}

/// Writes a file, unless it is there as it should be. Tells whether it was written.
pub(super) fn write(to: &Path, content: &str, mode: u32) -> io::Result<bool> {
    let is_same = fs::read(to).is_ok_and(|found| found == content.as_bytes())
        && fs::metadata(to)?.permissions().mode() & 0o7777 == mode;
    if !is_same {
        tortie_files::replace(to, content, mode)?;
    }
    Ok(!is_same)
}

/// Gives a file a second name in its folder. Tells whether it did not have it.
pub(super) fn link(from: &Path, to: &Path) -> io::Result<bool> {
    let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    if identity(to).is_ok_and(|there| identity(from).is_ok_and(|wanted| wanted == there)) {
        return Ok(false);
    }
    let mut name = OsString::from(".");
    name.push(to.file_name().unwrap_or_default());
    name.push(".new");
    let new = to.with_file_name(name);
    remove(&new)?;
    if fs::hard_link(from, &new).is_err() {
        return copy(from, to);
    }
    fs::rename(&new, to)?;
    Ok(true)
}

/// Copies a file with its permissions, unless it is there as it should be. Tells whether it was copied.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<bool> {
    let mode = fs::metadata(from)?.permissions().mode() & 0o7777;
    if is_same(from, to)? {
        return Ok(false);
    }
    let mut source = File::open(from)?;
    tortie_files::fill(to, mode, |file| io::copy(&mut source, file).map(drop))?;
    if is_same(from, to)? {
        Ok(true)
    } else {
        Err(io::Error::other("the copy is not like the original"))
    }
}

/// Removes a file, or a folder with all in it. Tells whether it was there.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    let removed = if path.is_dir() && !path.is_symlink() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    was_there(removed)
}

/// Removes a folder, unless something is in it. Tells whether it was removed.
pub(super) fn remove_empty(path: &Path) -> io::Result<bool> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
        removed => was_there(removed),
    }
}

fn was_there(removed: io::Result<()>) -> io::Result<bool> {
    match removed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
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

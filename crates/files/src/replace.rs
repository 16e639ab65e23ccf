//! Replacing a file as a whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Gives a file this content and these permissions, and makes its folder if that is missing.
pub fn replace(path: &Path, content: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
    fill(path, mode, |file| file.write_all(content.as_ref()))
}

/// The same, with content that is written piece by piece. If that fails, the old file stays.
pub fn fill(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let new = beside(path);
    // One of an attempt that was cut off may have other permissions.
    remove(&new)?;
    let replaced = || {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(&new)?;
        write(&mut file)?;
        // What the process masks out of new files' permissions is asked for nevertheless.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(folder)?.sync_all()
    };
    replaced().inspect_err(|_| {
        let _ = remove(&new);
    })
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// On the same file system, hidden, and without an ending that programs look for in such folders.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn content_permissions_and_folder_are_as_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.conf");
        for (content, asked) in [("one", 0o644), ("two", 0o600), ("", 0o755)] {
            replace(&path, content, asked).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(mode(&path), asked);
        }
        assert_eq!(names(path.parent().unwrap()), ["b.conf"]);
    }

    #[test]
    fn names_that_differ_in_their_ending_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("a.b"), folder.path().join("a.c"));
        fill(&one, 0o644, |file| {
            file.write_all(b"one")?;
            replace(&other, "other", 0o644)
        })
        .unwrap();
        assert_eq!(fs::read_to_string(one).unwrap(), "one");
        assert_eq!(fs::read_to_string(other).unwrap(), "other");
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        replace(&path, "old", 0o600).unwrap();
        let failed = fill(&path, 0o644, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(names(folder.path()), ["kept"]);
    }

    #[test]
    fn what_an_earlier_attempt_left_does_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(beside(&path), "a long text that others could read").unwrap();
        replace(&path, "new", 0o600).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(mode(&path), 0o600);
    }
}

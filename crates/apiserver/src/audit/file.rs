//! A file that is replaced by another one when it is long.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// A file, and those that came before it: `NAME.1` is the newest of them.
pub(super) struct RotatedFile {
    path: PathBuf,
    max_bytes: u64,
    backups: usize,
    file: File,
    bytes: u64,
}

impl RotatedFile {
    pub(super) fn open(path: PathBuf, max_bytes: u64, backups: usize) -> io::Result<Self> {
        let file = open(&path)?;
        let bytes = file.metadata()?.len();
        Ok(Self {
            path,
            max_bytes,
            backups,
            file,
            bytes,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line, to a new file if this one is long.
    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let length = line.len() as u64;
        if self.bytes > 0 && self.bytes + length > self.max_bytes {
            self.rotate()?;
        }
        // At once: what is written in two parts may be cut between them.
        self.file.write_all(line)?;
        self.bytes += length;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        if self.backups == 0 {
            self.file.set_len(0)?;
            self.bytes = 0;
            return Ok(());
        }
        for number in (1..self.backups).rev() {
            ignore_missing(fs::rename(self.backup(number), self.backup(number + 1)))?;
        }
        ignore_missing(fs::rename(&self.path, self.backup(1)))?;
        self.file = open(&self.path)?;
        self.bytes = 0;
        Ok(())
    }

    fn backup(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// Opens a file to add to it, for its owner alone also if it was there.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

fn ignore_missing(renamed: io::Result<()>) -> io::Result<()> {
    match renamed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_gives_way_to_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(&path, "old\n").unwrap();
        let mut file = RotatedFile::open(path.clone(), 8, 2).unwrap();
        for line in [
            "one\n",
            "two\n",
            "three\n",
            "a line that is longer\n",
            "six\n",
        ] {
            file.write(line.as_bytes()).unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("audit.log"), "six\n");
        assert_eq!(read("audit.log.1"), "a line that is longer\n");
        assert_eq!(read("audit.log.2"), "three\n");
        assert!(!folder.path().join("audit.log.3").exists());
        for name in ["audit.log", "audit.log.1"] {
            let mode = fs::metadata(folder.path().join(name))
                .unwrap()
                .permissions();
            assert_eq!(mode.mode() & 0o777, 0o600, "{name}");
        }
    }
}

//! A folder for certificates and secrets.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tortie_files::{PUBLIC, SECRET};

use super::Error;

/// A folder that only its owner may enter.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder if it is not there.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(failed("make", path))?;
        let folder = Self {
            path: path.to_owned(),
        };
        // It may have been there.
        let private = fs::set_permissions(path, Permissions::from_mode(0o700));
        private.map_err(failed("make private", path))?;
        Ok(folder)
    }

    /// The folder as it is.
    pub(super) fn existing(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// The content of a file, if it is there.
    pub(super) fn read(&self, name: &str) -> Result<Option<String>, Error> {
        let path = self.path.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            // What is no text is none of ours.
            Err(error) if error.kind() == ErrorKind::InvalidData => Ok(None),
            Err(error) => Err(failed("read", &path)(error)),
        }
    }

    /// Replaces a file that everybody may read who gets here.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        self.replace(name, text, PUBLIC)
    }

    /// Replaces a file that its owner alone may read.
    pub(super) fn write_secret(&self, name: &str, text: &str) -> Result<(), Error> {
        self.replace(name, text, SECRET)
    }

    fn replace(&self, name: &str, text: &str, mode: u32) -> Result<(), Error> {
        let path = self.path.join(name);
        tortie_files::replace(&path, text, mode).map_err(failed("write", &path))
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File {
        action,
        path,
        source,
    }
}

//! Copies of the file, and whether a file is what it should be.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use redb::{Database, ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};
use serde::de::IgnoredAny;

use super::file::{LOG, META, OBJECTS, StoreFile, foreign, guarded, open_file, split};
use super::keys;
use super::room::{self, DEFAULT_QUOTA};
use crate::error::{Error, Result};
use crate::json;
use crate::store::{Compacted, Verified};

/// Checks every page and every object of a file that no process has open.
pub fn verify(path: impl AsRef<Path>) -> Result<Verified> {
    open_existing(path.as_ref())?.verify()
}

/// Gives back to the disk what a file does not use that no process has open.
pub fn compact(path: impl AsRef<Path>) -> Result<Compacted> {
    room::compact(&open_existing(path.as_ref())?)
}

fn open_existing(path: &Path) -> Result<StoreFile> {
    let shown = path.display();
    match fs::metadata(path) {
        Err(error) => return Err(Error::other(format!("cannot open {shown}"), error)),
        Ok(metadata) if metadata.len() == 0 => {
            return Err(Error::message(format!("{shown} is empty")));
        }
        Ok(_) => {}
    }
    Ok(StoreFile::open(path, DEFAULT_QUOTA)?.0)
}

/// Puts a backup in the place of a store that no process has open. The backup is checked before; what was there is kept
/// beside it, under the name that this gives. Without `replace`, a store that is there is an error.
pub fn restore(backup: &Path, store: &Path, replace: bool) -> Result<Option<PathBuf>> {
    let shown = store.display();
    let failed = |error: io::Error| Error::other(format!("cannot restore {shown}"), error);
    let is_there = fs::symlink_metadata(store).is_ok();
    if is_there && !replace {
        return Err(Error::message(format!(
            "{shown} is there; say so if it is to be replaced (it is kept under another name)"
        )));
    }
    if is_there {
        // A damaged one cannot be opened either, and is what this is for.
        match StoreFile::open(store, DEFAULT_QUOTA) {
            Err(error) if error.is_retryable() => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    let copy = beside(store, "restoring");
    let copied = || -> io::Result<()> {
        drop(open_file(&copy)?);
        fs::copy(backup, &copy)?;
        File::open(&copy)?.sync_all()
    };
    let checked = copied()
        .map_err(|error| {
            let backup = backup.display();
            Error::other(format!("cannot copy {backup} to {}", copy.display()), error)
        })
        .and_then(|()| verify(&copy));
    let problem = match checked {
        Ok(verified) if verified.problems.is_empty() => None,
        Ok(verified) => Some(Error::message(format!(
            "{} is damaged: {}",
            backup.display(),
            verified.problems.join("; ")
        ))),
        Err(error) => Some(error),
    };
    if let Some(problem) = problem {
        let _ = fs::remove_file(&copy);
        return Err(problem);
    }
    let mut kept = None;
    if is_there {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.unwrap_or_default().as_secs();
        let old = beside(store, &format!("replaced-{seconds}"));
        fs::rename(store, &old).map_err(failed)?;
        kept = Some(old);
    }
    fs::rename(&copy, store).map_err(failed)?;
    sync_folder(store).map_err(failed)?;
    Ok(kept)
}

impl StoreFile {
    /// Checks every page and every object. Nobody may write meanwhile; reads wait.
    pub(super) fn verify(&self) -> Result<Verified> {
        let is_whole = {
            let mut database = self.exclusive();
            let database = database.as_mut();
            guarded(|| {
                let database = database.ok_or(redb::Error::DatabaseClosed)?;
                Ok(database.check_integrity()?)
            })
            .map_err(|error| foreign(self.path(), Some(error)))?
        };
        let mut verified = Verified::default();
        if !is_whole {
            let problem = "some pages were damaged; the last whole state was put in their place";
            verified.problems.push(problem.to_owned());
        }
        verified.revision = self.log_state()?.revision();
        self.read(|txn| {
            for item in txn.open_table(OBJECTS)?.iter()? {
                let (key, value) = item?;
                let (revision, json) = split(value.value());
                verified.objects += 1;
                if let Some(problem) = problem_of(key.value(), revision, json) {
                    verified.problems.push(problem);
                }
            }
            Ok(())
        })?;
        Ok(verified)
    }

    /// Writes everything, as of one moment, to a new file that only its owner can read.
    pub(super) fn back_up(&self, to: &Path) -> Result<()> {
        let shown = to.display();
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::other(format!("cannot write the backup {shown}"), error)
        };
        if fs::symlink_metadata(to).is_ok() {
            return Err(Error::message(format!(
                "{shown} is there already; choose another name"
            )));
        }
        let part = beside(to, "part");
        // Of a backup that did not come to its end.
        let _ = fs::remove_file(&part);
        let file = open_file(&part).map_err(|error| failed(error.into()))?;
        let copied = self.read(|txn| Ok(copy(txn, file)))?;
        let finished = copied.map_err(Into::into).and_then(|()| {
            fs::rename(&part, to)?;
            Ok(sync_folder(to)?)
        });
        finished.map_err(|error| {
            let _ = fs::remove_file(&part);
            failed(error)
        })
    }
}

fn copy(from: &ReadTransaction, to: File) -> Result<(), redb::Error> {
    let database = Database::builder().create_file(to)?;
    let txn = database.begin_write()?;
    copy_table(from, &txn, OBJECTS)?;
    copy_table(from, &txn, LOG)?;
    copy_table(from, &txn, META)?;
    txn.commit()?;
    Ok(())
}

fn copy_table<K: redb::Key + 'static, V: redb::Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'static, K, V>,
) -> Result<(), redb::Error> {
    let mut copy = to.open_table(table)?;
    for item in from.open_table(table)?.iter()? {
        let (key, value) = item?;
        copy.insert(key.value(), value.value())?;
    }
    Ok(())
}

/// What is wrong with an object, if anything is.
fn problem_of(stored_key: &[u8], revision: u64, json: &[u8]) -> Option<String> {
    if let Some(key) = keys::decode(stored_key) {
        let decoded = json::decode(key.kind, json, revision.to_string());
        return decoded.err().map(|reason| format!("{key}: {reason}"));
    }
    let name = String::from_utf8_lossy(stored_key).replace('\0', "/");
    let parsed: Result<IgnoredAny, _> = serde_json::from_slice(json);
    parsed.err().map(|error| format!("{name}: {error}"))
}

/// The path with something added to the name.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(end);
    path.with_file_name(name)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

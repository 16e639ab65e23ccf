//! The file: tables, format, and how it is opened.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase, StorageError, TableDefinition,
    TableHandle, WriteTransaction,
};

use super::holder;
use super::log::LogState;
use super::snapshot::{Snapshot, Snapshots};
use crate::error::{Error, Result};

/// Key bytes to revision and JSON.
pub(super) const OBJECTS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("objects");
/// Revision to [`Entry`](super::log::Entry).
pub(super) const LOG: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("log");
/// Numbers by name: `format`, `revision` and `log_bytes`.
pub(super) const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");

/// Raised when older versions could not read what this one writes.
const FORMAT: u64 = 1;

/// Pages kept in memory. The objects of a middling cluster fit; the kernel caches the rest.
const CACHE_BYTES: usize = 64 << 20;

/// The open file.
#[derive(Debug)]
pub(super) struct StoreFile {
    /// There until it is closed. Whoever reads holds the lock as long.
    database: RwLock<Option<Database>>,
    path: PathBuf,
    /// How large it may become.
    quota: u64,
    snapshots: Snapshots,
}

// === impl StoreFile ===

impl StoreFile {
    pub(super) fn open(path: &Path, quota: u64) -> Result<(Self, LogState)> {
        let database = open_database(path)?;
        let store = Self {
            database: RwLock::new(Some(database)),
            path: path.to_owned(),
            quota,
            snapshots: Snapshots::default(),
        };
        let state = store.check_format()?;
        Ok((store, state))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn quota(&self) -> u64 {
        self.quota
    }

    /// Opens the file anew after an error of the disk, after which redb takes nothing more. Reads wait; they fail if the
    /// file cannot be opened.
    pub(super) fn reopen(&self) -> Result<LogState> {
        {
            let mut database = self.exclusive();
            // Closed first: it is locked.
            *database = None;
            *database = Some(open_database(&self.path)?);
        }
        self.check_format()
    }

    /// Gives back to the disk what is not used. Reads wait.
    pub(super) fn compact(&self) -> Result<(), redb::Error> {
        let mut database = self.exclusive();
        let database = database.as_mut().ok_or(redb::Error::DatabaseClosed)?;
        guarded(|| {
            while database.compact()? {}
            Ok(())
        })
    }

    /// The file for one alone: reads wait, and snapshots end.
    pub(super) fn exclusive(&self) -> RwLockWriteGuard<'_, Option<Database>> {
        let database = self.database.write();
        let database = database.unwrap_or_else(PoisonError::into_inner);
        self.snapshots.end();
        database
    }

    /// The last commit, to be read for a while.
    pub(super) fn snapshot(&self) -> Result<Snapshot> {
        let database = self.database.read();
        let database = database.unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or_else(closed)?;
        self.snapshots.begin(database, &self.path)
    }

    /// Ends snapshots that cost too much of the disk.
    pub(super) fn end_costly_snapshots(&self) {
        self.snapshots.end_costly(&self.path);
    }

    /// Closes the file, after the reads under way; later ones fail.
    pub(super) fn close(&self) {
        *self.exclusive() = None;
    }

    /// Must not be called when the file may be closed before the transaction has ended.
    pub(super) fn begin_write(&self) -> Result<WriteTransaction, redb::Error> {
        let database = self.database.read();
        let database = database.unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or(redb::Error::DatabaseClosed)?;
        Ok(database.begin_write()?)
    }

    /// Reads in one transaction. It outlives what is read in it, and keeps pages from being freed.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T> {
        let database = self.database.read();
        let database = database.unwrap_or_else(PoisonError::into_inner);
        let result = match database.as_ref() {
            Some(database) => guarded(|| read(&database.begin_read()?)),
            None => Err(redb::Error::DatabaseClosed),
        };
        result.map_err(|error| read_error(&self.path, error))
    }

    /// Makes the tables of a new file; refuses files of others and of later versions.
    fn check_format(&self) -> Result<LogState> {
        let found = self.read(read_format)?;
        let path = self.path.display();
        match found {
            Some(FORMAT) => {}
            Some(format) => {
                return Err(Error::message(format!(
                    "{path} has format {format}, and this version reads only {FORMAT}; \
                     use the version of tortie that wrote it"
                )));
            }
            None => {
                if !self.read(|txn| Ok(txn.list_tables()?.next().is_none()))? {
                    return Err(foreign(&self.path, None));
                }
                self.create_tables().map_err(|error| {
                    Error::other(format!("cannot write to the new store {path}"), error)
                })?;
            }
        }
        self.read(|txn| {
            txn.open_table(OBJECTS)?;
            LogState::load(&txn.open_table(META)?, &txn.open_table(LOG)?)
        })
    }

    fn create_tables(&self) -> Result<(), redb::Error> {
        let txn = self.begin_write()?;
        txn.open_table(OBJECTS)?;
        txn.open_table(LOG)?;
        txn.open_table(META)?.insert("format", FORMAT)?;
        txn.commit()?;
        Ok(())
    }
}

pub(super) fn read_error(path: &Path, error: redb::Error) -> Error {
    match error {
        redb::Error::DatabaseClosed => closed(),
        redb::Error::Corrupted(_) => foreign(path, Some(error)),
        redb::Error::Io(ref cause) if is_damage(cause) => foreign(path, Some(error)),
        error => Error::other(format!("cannot read the store {}", path.display()), error),
    }
}

/// Does something with redb, which panics where pages hold what cannot be.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("a page holds what cannot be").to_owned();
            Err(redb::Error::Corrupted(text))
        }
    }
}

fn open_database(path: &Path) -> Result<Database> {
    let file = open_file(path).map_err(|error| {
        Error::other(
            format!("cannot open or create the store {}", path.display()),
            error,
        )
    })?;
    let shown = path.display().to_string();
    let mut builder = Database::builder();
    builder
        .set_cache_size(CACHE_BYTES)
        .set_repair_callback(move |repair| {
            tracing::info!(
                path = shown,
                done = repair.progress(),
                "Repairing after a crash"
            );
        });
    let mut failure = None;
    let opened = guarded(|| match builder.create_file(file) {
        Ok(database) => Ok(Some(database)),
        Err(error) => {
            failure = Some(error);
            Ok(None)
        }
    });
    match (opened, failure) {
        (Ok(Some(database)), _) => Ok(database),
        (Ok(None), Some(error)) => Err(open_error(path, error)),
        (Ok(None), None) => Err(foreign(path, None)),
        (Err(error), _) => Err(foreign(path, Some(error))),
    }
}

/// Whoever reads a store that was dropped.
pub(super) fn closed() -> Error {
    Error::Unavailable {
        message: "the embedded store was closed".to_owned(),
        source: None,
    }
}

fn read_format(txn: &ReadTransaction) -> Result<Option<u64>, redb::Error> {
    if !txn.list_tables()?.any(|table| table.name() == META.name()) {
        return Ok(None);
    }
    let format = txn.open_table(META)?.get("format")?;
    Ok(format.map(|format| format.value()))
}

/// A stored object from its parts.
pub(super) fn join(revision: u64, json: &[u8]) -> Vec<u8> {
    [&revision.to_be_bytes(), json].concat()
}

/// The parts of a stored object.
pub(super) fn split(value: &[u8]) -> (u64, &[u8]) {
    match value.split_first_chunk() {
        Some((revision, json)) => (u64::from_be_bytes(*revision), json),
        // Never written; as empty JSON it is reported as unreadable.
        None => (0, &[]),
    }
}

/// Opens the file, and makes it and its folders, all for the owner only.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    // A file is safe from a power failure only when its entry in the folder is as well.
    File::open(folder)?.sync_all()?;
    Ok(file)
}

fn open_error(path: &Path, error: DatabaseError) -> Error {
    let shown = path.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            let holder = holder::of(path);
            let holder = holder.unwrap_or_else(|| "another process".to_owned());
            Error::Unavailable {
                message: format!("the store {shown} is open in {holder}"),
                source: None,
            }
        }
        DatabaseError::Storage(StorageError::Io(ref cause)) if !is_damage(cause) => {
            Error::other(format!("cannot open the store {shown}"), error)
        }
        error => foreign(path, Some(error.into())),
    }
}

/// Whether the disk did its part, and what it gave cannot be right; it is too short, for one.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

pub(super) fn foreign(path: &Path, source: Option<redb::Error>) -> Error {
    let message = format!(
        "{} is not a store of tortie, or is damaged; restore it from a backup, \
         or move it away to start with an empty store",
        path.display()
    );
    Error::Other {
        message,
        source: source.map(Into::into),
    }
}

//! The file: tables, format, and everything that reads it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use redb::{
    Database, DatabaseError, ReadableDatabase, StorageError, TableDefinition, TableHandle,
    WriteTransaction,
};

use tortie_api::{Kind, Resource};

use super::keys;
use super::log::{Entry, LogState};
use crate::error::{Error, Result};
use crate::json;
use crate::key::{Key, Query, Revision};
use crate::store::{Change, Event, Invalid, List};

/// Key bytes to revision and JSON.
pub(super) const OBJECTS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("objects");
/// Revision to [`Entry`].
pub(super) const LOG: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("log");
/// Numbers by name: `format`, `revision` and `log_bytes`.
pub(super) const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");

/// Raised when older versions could not read what this one writes.
const FORMAT: u64 = 1;

/// Pages kept in memory. The objects of a middling cluster fit; the kernel caches the rest.
const CACHE_BYTES: usize = 64 << 20;

/// Names of affinities hold the whole name of an owner up to here: 253 less the longest network and a dash.
const MAX_WHOLE_OWNER: usize = 253 - 50;

/// How much of what it selects a replay reads before it hands that over.
const REPLAY_BYTES: usize = 1 << 20;

/// The open file.
#[derive(Debug)]
pub(super) struct StoreFile {
    database: Database,
    path: PathBuf,
}

/// A part of the change log.
pub(super) struct Replay {
    /// What of it the query selects.
    pub(super) events: Vec<Event>,
    /// The revision it goes up to.
    pub(super) seen: u64,
    /// Whether that is the end of the log.
    pub(super) at_end: bool,
}

// === impl StoreFile ===

impl StoreFile {
    pub(super) fn open(path: &Path) -> Result<(Self, LogState)> {
        let file = open_file(path).map_err(|error| {
            Error::other(
                format!("cannot open or create the store {}", path.display()),
                error,
            )
        })?;
        let shown = path.display().to_string();
        let database = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .set_repair_callback(move |repair| {
                tracing::info!(
                    path = shown,
                    done = repair.progress(),
                    "repairing after a crash"
                );
            })
            .create_file(file)
            .map_err(|error| open_error(path, error))?;
        let store = Self {
            database,
            path: path.to_owned(),
        };
        let state = store.check_format()?;
        Ok((store, state))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn begin_write(&self) -> Result<WriteTransaction, redb::Error> {
        Ok(self.database.begin_write()?)
    }

    /// Reads one object.
    pub(super) fn get(&self, key: &Key) -> Result<crate::Resource> {
        let not_found = || Error::NotFound(key.clone());
        let stored_key = keys::encode(key).ok_or_else(not_found)?;
        let read = || -> Result<_, redb::Error> {
            // The transaction must outlive what is read in it: it keeps the page from being freed.
            let txn = self.database.begin_read()?;
            let value = txn.open_table(OBJECTS)?.get(stored_key.as_slice())?;
            Ok(value.map(|value| value.value().to_vec()))
        };
        let value = read()
            .map_err(|error| self.read_error(error))?
            .ok_or_else(not_found)?;
        let (revision, json) = split(&value);
        json::decode(key.kind, json, revision.to_string())
            .map_err(|reason| Error::message(format!("{key} cannot be read: {reason}")))
    }

    /// At which revisions objects are; none where there is no such object.
    pub(super) fn revisions(&self, keys: &[Key]) -> Result<Vec<Option<Revision>>> {
        let read = || -> Result<_, redb::Error> {
            let txn = self.database.begin_read()?;
            let objects = txn.open_table(OBJECTS)?;
            let mut all = Vec::with_capacity(keys.len());
            for key in keys {
                let stored_key = keys::encode(key).unwrap_or_default();
                let value = objects.get(stored_key.as_slice())?;
                all.push(value.map(|value| Revision(split(value.value()).0.to_string())));
            }
            Ok(all)
        };
        read().map_err(|error| self.read_error(error))
    }

    /// Reads all objects that a query selects, with the revision of the state they are of.
    pub(super) fn list(&self, query: &Query) -> Result<List> {
        self.read_list(query, &keys::prefix(query))
            .map_err(|error| self.read_error(error))
    }

    /// Reads the affinities of one owner, whose names start with its own unless that is too long to be part of a name.
    pub(super) fn list_affinities(&self, owner: &str) -> Result<List> {
        let query = Query::all(Kind::BlockAffinity);
        let mut prefix = keys::prefix(&query);
        if owner.len() < MAX_WHOLE_OWNER {
            prefix.extend_from_slice(owner.as_bytes());
            prefix.push(b'-');
        }
        let mut list = self
            .read_list(&query, &prefix)
            .map_err(|error| self.read_error(error))?;
        list.items.retain(|item| match item {
            Resource::BlockAffinity(affinity) => affinity.spec.node == owner,
            _ => false,
        });
        Ok(list)
    }

    fn read_list(&self, query: &Query, prefix: &[u8]) -> Result<List, redb::Error> {
        let txn = self.database.begin_read()?;
        let at = LogState::load(&txn.open_table(META)?, &txn.open_table(LOG)?)?.revision();
        let revision = Revision(at.to_string());
        let mut list = List {
            items: Vec::new(),
            invalid: Vec::new(),
            revision,
        };
        for item in txn.open_table(OBJECTS)?.range(prefix..)? {
            let (stored_key, value) = item?;
            if !stored_key.value().starts_with(prefix) {
                break;
            }
            let Some(key) = keys::decode(stored_key.value()) else {
                continue;
            };
            if !query.selects(&key) {
                continue;
            }
            let (revision, json) = split(value.value());
            match json::decode(key.kind, json, revision.to_string()) {
                Ok(resource) => list.items.push(resource),
                Err(reason) => list.invalid.push(Invalid { key, reason }),
            }
        }
        Ok(list)
    }

    /// Fails if the log does not hold every change after this revision.
    pub(super) fn check_watchable(&self, after: u64) -> Result<()> {
        let read = || -> Result<LogState, redb::Error> {
            let txn = self.database.begin_read()?;
            LogState::load(&txn.open_table(META)?, &txn.open_table(LOG)?)
        };
        let state = read().map_err(|error| self.read_error(error))?;
        if state.covers(after) {
            Ok(())
        } else {
            Err(Error::Gone(after.to_string()))
        }
    }

    /// Reads a part of the log after a revision.
    pub(super) fn replay(&self, query: &Query, after: u64) -> Result<Replay> {
        match self
            .read_log(query, after)
            .map_err(|error| self.read_error(error))?
        {
            Some(replay) => Ok(replay),
            None => Err(Error::Gone(after.to_string())),
        }
    }

    /// None if the log no longer holds what comes after the revision.
    fn read_log(&self, query: &Query, after: u64) -> Result<Option<Replay>, redb::Error> {
        let txn = self.database.begin_read()?;
        let log = txn.open_table(LOG)?;
        let state = LogState::load(&txn.open_table(META)?, &log)?;
        if !state.covers(after) {
            return Ok(None);
        }
        let mut replay = Replay {
            events: Vec::new(),
            seen: after,
            at_end: true,
        };
        let mut bytes = 0;
        for item in log.range(after + 1..)? {
            if bytes > REPLAY_BYTES {
                replay.at_end = false;
                break;
            }
            let (revision, entry) = item?;
            replay.seen = revision.value();
            if let Some(event) = event(query, revision.value(), entry.value()) {
                bytes += entry.value().len();
                replay.events.push(event);
            }
        }
        Ok(Some(replay))
    }

    /// Makes the tables of a new file; refuses files of others and of later versions.
    fn check_format(&self) -> Result<LogState> {
        let found = self.read_format().map_err(|error| self.read_error(error))?;
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
                let is_empty = || -> Result<bool, redb::Error> {
                    Ok(self.database.begin_read()?.list_tables()?.next().is_none())
                };
                if !is_empty().map_err(|error| self.read_error(error))? {
                    return Err(foreign(&self.path, None));
                }
                self.create_tables().map_err(|error| {
                    Error::other(format!("cannot write to the new store {path}"), error)
                })?;
            }
        }
        let load = || -> Result<LogState, redb::Error> {
            let txn = self.database.begin_read()?;
            txn.open_table(OBJECTS)?;
            LogState::load(&txn.open_table(META)?, &txn.open_table(LOG)?)
        };
        load().map_err(|error| self.read_error(error))
    }

    fn read_format(&self) -> Result<Option<u64>, redb::Error> {
        let txn = self.database.begin_read()?;
        if !txn.list_tables()?.any(|table| table.name() == META.name()) {
            return Ok(None);
        }
        Ok(txn
            .open_table(META)?
            .get("format")?
            .map(|format| format.value()))
    }

    fn create_tables(&self) -> Result<(), redb::Error> {
        let txn = self.database.begin_write()?;
        txn.open_table(OBJECTS)?;
        txn.open_table(LOG)?;
        txn.open_table(META)?.insert("format", FORMAT)?;
        txn.commit()?;
        Ok(())
    }

    fn read_error(&self, error: redb::Error) -> Error {
        match error {
            redb::Error::Corrupted(_) => foreign(&self.path, Some(error)),
            error => Error::other(
                format!("cannot read the store {}", self.path.display()),
                error,
            ),
        }
    }
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

/// The event of a log entry, if the query selects it.
fn event(query: &Query, revision: u64, entry: &[u8]) -> Option<Event> {
    let entry = Entry::from_bytes(entry)?;
    let key = keys::decode(entry.key)?;
    if !query.selects(&key) {
        return None;
    }
    let change = match entry.json {
        None => Change::Delete(key),
        Some(json) => match json::decode(key.kind, json, revision.to_string()) {
            Ok(resource) => Change::Put(resource),
            Err(reason) => Change::Invalid(Invalid { key, reason }),
        },
    };
    Some(Event {
        revision: Revision(revision.to_string()),
        change,
    })
}

/// Opens the file, and makes it and its folders, all for the owner only.
fn open_file(path: &Path) -> io::Result<File> {
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
        DatabaseError::DatabaseAlreadyOpen => Error::Unavailable {
            message: format!(
                "the store {shown} is open in another tortie process; stop that one first"
            ),
            source: None,
        },
        DatabaseError::Storage(StorageError::Io(ref cause))
            if cause.kind() != io::ErrorKind::InvalidData =>
        {
            Error::other(format!("cannot open the store {shown}"), error)
        }
        error => foreign(path, Some(error.into())),
    }
}

fn foreign(path: &Path, source: Option<redb::Error>) -> Error {
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

//! One state of the file, for those who read more of it than one read should hold.
//!
//! A snapshot keeps pages from being used again, so it does not last: it ends when the file has grown by a bound since it
//! was taken, and before whatever needs the file alone. Reads of one that has ended are [`Error::Gone`].

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use redb::{Database, ReadTransaction, ReadableDatabase};
use tortie_api::{Kind, Resource};

use super::documents::{Document, DocumentError, DocumentKey};
use super::file::{LOG, META, OBJECTS, guarded, read_error, split};
use super::log::LogState;
use super::{keys, reads, room, views};
use crate::default_profile;
use crate::error::{Error, Result};
use crate::key::{Key, Query};

/// How much the file may grow while a snapshot is kept.
const MAX_GROWTH: u64 = 64 << 20;

/// One state of the file. Copies are of the same state.
#[derive(Debug, Clone)]
pub struct Snapshot(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    /// There until the end.
    txn: RwLock<Option<ReadTransaction>>,
    revision: u64,
    path: PathBuf,
    /// What the file took of the disk at the beginning.
    used: u64,
}

/// What is known of a stored object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its namespace, or nothing.
    pub namespace: String,
    pub name: String,
    /// The revision of its last change.
    pub revision: u64,
    /// How many bytes of JSON it is.
    pub bytes: usize,
}

/// How much is looked at: objects up to a number of them, and up to so many bytes of JSON or the first that has more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// How many objects.
    pub objects: usize,
    /// How many bytes.
    pub bytes: usize,
}

/// The snapshots of a file that have not ended.
#[derive(Debug, Default)]
pub(super) struct Snapshots(Mutex<Vec<Weak<Kept>>>);

// === impl Snapshots ===

impl Snapshots {
    pub(super) fn begin(&self, database: &Database, path: &Path) -> Result<Snapshot> {
        let begun = guarded(|| {
            let txn = database.begin_read()?;
            let state = LogState::load(&txn.open_table(META)?, &txn.open_table(LOG)?)?;
            Ok((txn, state.revision()))
        });
        let (txn, revision) = begun.map_err(|error| read_error(path, error))?;
        let kept = Arc::new(Kept {
            txn: RwLock::new(Some(txn)),
            revision,
            path: path.to_owned(),
            used: room::used(path)?,
        });
        let mut all = self.all();
        all.retain(|kept| kept.strong_count() > 0);
        all.push(Arc::downgrade(&kept));
        Ok(Snapshot(kept))
    }

    /// Ends all, after the reads under way.
    pub(super) fn end(&self) {
        for kept in self.all().drain(..) {
            end(&kept);
        }
    }

    /// Ends those since which the file has grown too much.
    pub(super) fn end_costly(&self, path: &Path) {
        let mut all = self.all();
        all.retain(|kept| kept.strong_count() > 0);
        if all.is_empty() {
            return;
        }
        // What cannot be told is told to those who write.
        let Ok(used) = room::used(path) else { return };
        for kept in all.extract_if(.., |kept| {
            let kept = kept.upgrade();
            kept.is_some_and(|kept| used > kept.used + MAX_GROWTH)
        }) {
            end(&kept);
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Weak<Kept>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end(kept: &Weak<Kept>) {
    if let Some(kept) = kept.upgrade() {
        *kept.txn.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

// === impl Snapshot ===

impl Snapshot {
    /// The revision of the last change before it.
    pub fn revision(&self) -> u64 {
        self.0.revision
    }

    /// Whether it can no longer be read.
    pub fn has_ended(&self) -> bool {
        let txn = self.0.txn.read().unwrap_or_else(PoisonError::into_inner);
        txn.is_none()
    }

    /// What there is of the objects that a query selects, in order, after a namespace and name. Blocks.
    pub fn objects(
        &self,
        query: &Query,
        after: Option<(&str, &str)>,
        most: Most,
    ) -> Result<Vec<Stored>> {
        let after_key = match after {
            None => None,
            Some((namespace, name)) => {
                let key = Key::namespaced(query.kind, namespace, name);
                Some(keys::encode(&key).ok_or_else(|| Error::NotFound(key))?)
            }
        };
        let parse = |key: &[u8]| {
            let key = keys::decode(key).filter(|key| query.selects(key))?;
            Some((key.namespace, key.name))
        };
        let mut found = self.scan(&keys::prefix(query), after_key.as_deref(), most, parse)?;
        for shown in views::of_kind(query.kind) {
            let start = after.map(|(namespace, _)| shown.start(query, namespace));
            let parse = |key: &[u8]| {
                let key = shown.parse(key).filter(|key| query.selects(key))?;
                let is_after = Some((&*key.namespace, &*key.name)) > after;
                is_after.then_some((key.namespace, key.name))
            };
            let most = if shown.is_in_order() { most } else { Most::ALL };
            let documents = self.scan(&shown.prefix(query), start.as_deref(), most, parse)?;
            // A document hides what is stored under its name.
            found.splice(..0, documents);
        }
        let own = Key::global(Kind::Profile, default_profile::NAME);
        if query.selects(&own) && Some(("", &*own.name)) > after {
            found.insert(0, default_profile::stored());
        }
        found.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        found.dedup_by(|later, first| {
            later.namespace == first.namespace && later.name == first.name
        });
        most.truncate(&mut found);
        Ok(found)
    }

    /// Reads one object; the inner error says why it cannot be read as one. Blocks.
    pub fn get(&self, key: &Key) -> Result<Result<Resource, String>> {
        if default_profile::is(key) {
            return Ok(Ok(default_profile::resource()));
        }
        let found = self.read(|txn| reads::get_in(&txn.open_table(OBJECTS)?, key))?;
        let found = found.ok_or_else(|| Error::NotFound(key.clone()))?;
        Ok(found.map_err(|invalid| invalid.reason))
    }

    /// How many bytes of JSON an object is; nothing if there is none. Blocks.
    pub fn size(&self, key: &Key) -> Result<usize> {
        self.read(|txn| {
            let found = reads::find(&txn.open_table(OBJECTS)?, key)?;
            Ok(found.map_or(0, |(_, value)| split(value.value()).1.len()))
        })
    }

    /// What there is of a collection's documents, as [`Snapshot::objects`] tells it of resources. Blocks.
    pub fn documents(
        &self,
        collection: &Arc<str>,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        most: Most,
    ) -> Result<Vec<Stored>, DocumentError> {
        let key = |namespace: &str, name: &str| {
            DocumentKey::new(Arc::clone(collection), namespace, name).encode()
        };
        // Checked as that of a document, because a NUL would select others.
        key(namespace.unwrap_or_default(), "")?;
        let after = match after {
            None => None,
            Some((namespace, name)) => Some(key(namespace, name)?),
        };
        let prefix = keys::document_prefix(collection, namespace);
        let parse = |key: &[u8]| {
            let key = keys::decode_document(collection, key)?;
            Some((key.namespace, key.name))
        };
        Ok(self.scan(&prefix, after.as_deref(), most, parse)?)
    }

    /// Reads one document. Blocks.
    pub fn document(&self, key: &DocumentKey) -> Result<Document, DocumentError> {
        let stored_key = key.encode()?;
        let found = self.read(|txn| {
            let value = txn.open_table(OBJECTS)?.get(stored_key.as_slice())?;
            Ok(value.map(|value| {
                let (revision, json) = split(value.value());
                Document {
                    key: key.clone(),
                    revision,
                    json: json.into(),
                }
            }))
        })?;
        found.ok_or_else(|| DocumentError::NotFound(key.clone()))
    }

    /// How many bytes a document is; nothing if there is none. Blocks.
    pub fn document_size(&self, key: &DocumentKey) -> Result<usize, DocumentError> {
        Ok(self.stored_size(&key.encode()?)?)
    }

    fn stored_size(&self, stored_key: &[u8]) -> Result<usize> {
        self.read(|txn| {
            let value = txn.open_table(OBJECTS)?.get(stored_key)?;
            Ok(value.map_or(0, |value| split(value.value()).1.len()))
        })
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        most: Most,
        parse: impl Fn(&[u8]) -> Option<(String, String)>,
    ) -> Result<Vec<Stored>> {
        let first = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        self.read(|txn| {
            let (mut found, mut bytes) = (Vec::new(), 0);
            let objects = txn.open_table(OBJECTS)?;
            let mut range = objects.range::<&[u8]>((first, Bound::Unbounded))?;
            // The next one is not touched when there are enough: it may be large.
            while found.len() < most.objects && bytes < most.bytes {
                let Some(item) = range.next() else { break };
                let (key, value) = item?;
                if !key.value().starts_with(prefix) {
                    break;
                }
                let Some((namespace, name)) = parse(key.value()) else {
                    continue;
                };
                let (revision, json) = split(value.value());
                bytes += json.len();
                found.push(Stored {
                    namespace,
                    name,
                    revision,
                    bytes: json.len(),
                });
            }
            Ok(found)
        })
    }

    fn read<T>(&self, read: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>) -> Result<T> {
        let txn = self.0.txn.read().unwrap_or_else(PoisonError::into_inner);
        let Some(txn) = txn.as_ref() else {
            return Err(Error::Gone(self.0.revision.to_string()));
        };
        guarded(|| read(txn)).map_err(|error| read_error(&self.0.path, error))
    }
}

// === impl Most ===

impl Most {
    /// No bound.
    const ALL: Self = Self {
        objects: usize::MAX,
        bytes: usize::MAX,
    };

    /// Leaves as many as this allows.
    fn truncate(self, found: &mut Vec<Stored>) {
        let mut bytes: usize = 0;
        let is_enough = found.iter().position(|stored| {
            let is_enough = bytes >= self.bytes;
            bytes = bytes.saturating_add(stored.bytes);
            is_enough
        });
        found.truncate(is_enough.unwrap_or(usize::MAX).min(self.objects));
    }
}

#[cfg(test)]
mod tests;

//! Everything that reads the file.

use std::collections::HashSet;
use std::sync::Arc;

use redb::{AccessGuard, ReadOnlyTable, ReadTransaction};
use tortie_api::{Kind, Resource};

use super::documents::{Document, DocumentKey};
use super::file::{LOG, META, OBJECTS, StoreFile, split};
use super::keys;
use super::log::{Entry, LogState};
use super::views::{self, Shown};
use super::watch::Selection;
use crate::error::{Error, Result};
use crate::json;
use crate::key::{Key, Query, Revision};
use crate::store::{Invalid, List};

/// Names of affinities hold the whole name of an owner up to here: 253 less the longest network and a dash.
const MAX_WHOLE_OWNER: usize = 253 - 50;

/// How much of what it selects a replay reads before it hands that over.
const REPLAY_BYTES: usize = 1 << 20;

/// A part of the change log.
pub(super) struct Replay<E> {
    /// What of it is selected.
    pub(super) events: Vec<E>,
    /// The revision it goes up to.
    pub(super) seen: u64,
    /// Whether that is the end of the log.
    pub(super) at_end: bool,
}

// === impl StoreFile ===

impl StoreFile {
    /// Reads one object.
    pub(super) fn get(&self, key: &Key) -> Result<Resource> {
        self.read(|txn| {
            let objects = txn.open_table(OBJECTS)?;
            let Some((shown, value)) = find(&objects, key)? else {
                return Ok(Err(Error::NotFound(key.clone())));
            };
            let (revision, json) = split(value.value());
            let found = views::decode(shown, key, revision, json);
            Ok(found.map_err(|invalid| Error::Unreadable {
                key: key.clone(),
                reason: invalid.reason,
                revision: Revision(revision.to_string()),
            }))
        })?
    }

    /// Whether the resource of this key comes from a document.
    pub(super) fn is_document(&self, key: &Key) -> Result<bool> {
        if views::of_kind(key.kind).next().is_none() {
            return Ok(false);
        }
        self.read(|txn| {
            let found = find(&txn.open_table(OBJECTS)?, key)?;
            Ok(found.is_some_and(|(shown, _)| shown.is_some()))
        })
    }

    /// The keys of resources in the file that are named like those that come from documents.
    pub(super) fn copies(&self) -> Result<Vec<Key>> {
        let mut copies = Vec::new();
        for &kind in Kind::ALL {
            if views::of_kind(kind).next().is_none() {
                continue;
            }
            self.scan(&keys::prefix(&Query::all(kind)), |stored_key, _, _| {
                let key = keys::decode(stored_key);
                // One is its own.
                copies.extend(key.filter(|key| views::stored_keys(key).count() > 1));
            })?;
        }
        Ok(copies)
    }

    /// The revision and the JSON under a key.
    pub(super) fn value(&self, stored_key: &[u8]) -> Result<Option<(u64, Arc<[u8]>)>> {
        self.read(|txn| {
            let value = txn.open_table(OBJECTS)?.get(stored_key)?;
            Ok(value.map(|value| {
                let (revision, json) = split(value.value());
                (revision, json.into())
            }))
        })
    }

    /// At which revisions objects are; none where there is no such object.
    pub(super) fn revisions(&self, keys: &[Key]) -> Result<Vec<Option<Revision>>> {
        self.read(|txn| {
            let objects = txn.open_table(OBJECTS)?;
            let mut all = Vec::with_capacity(keys.len());
            for key in keys {
                let found = find(&objects, key)?;
                all.push(found.map(|(_, value)| Revision(split(value.value()).0.to_string())));
            }
            Ok(all)
        })
    }

    /// Reads all objects that a query selects, with the revision of the state they are of.
    pub(super) fn list(&self, query: &Query) -> Result<List> {
        self.list_under(query, &keys::prefix(query))
    }

    /// Reads the affinities of one owner, whose names start with its own unless that is too long to be part of a name.
    pub(super) fn list_affinities(&self, owner: &str) -> Result<List> {
        let query = Query::all(Kind::BlockAffinity);
        let mut prefix = keys::prefix(&query);
        if owner.len() < MAX_WHOLE_OWNER {
            prefix.extend_from_slice(owner.as_bytes());
            prefix.push(b'-');
        }
        let mut list = self.list_under(&query, &prefix)?;
        list.items.retain(|item| match item {
            Resource::BlockAffinity(affinity) => affinity.spec.node == owner,
            _ => false,
        });
        Ok(list)
    }

    fn list_under(&self, query: &Query, prefix: &[u8]) -> Result<List> {
        let (mut items, mut invalid) = (Vec::new(), Vec::new());
        let mut from_documents = HashSet::new();
        let at = self.read(|txn| {
            let objects = txn.open_table(OBJECTS)?;
            let mut take =
                |shown: Option<Shown>, key: Key, revision, json: &[u8]| match views::decode(
                    shown, &key, revision, json,
                ) {
                    Ok(resource) => items.push(resource),
                    Err(unreadable) => invalid.push(unreadable),
                };
            for shown in views::of_kind(query.kind) {
                scan_in(
                    &objects,
                    &shown.prefix(query),
                    |stored_key, revision, json| {
                        let key = shown.parse(stored_key).filter(|key| query.selects(key));
                        if let Some(key) = key {
                            from_documents.insert(key.clone());
                            take(Some(shown), key, revision, json);
                        }
                    },
                )?;
            }
            scan_in(&objects, prefix, |stored_key, revision, json| {
                let key = keys::decode(stored_key).filter(|key| query.selects(key));
                if let Some(key) = key.filter(|key| !from_documents.contains(key)) {
                    take(None, key, revision, json);
                }
            })?;
            revision_in(txn)
        })?;
        if !from_documents.is_empty() {
            items.sort_by_cached_key(|item| {
                let key = Key::of(item);
                (key.namespace, key.name)
            });
        }
        Ok(List {
            items,
            invalid,
            revision: Revision(at.to_string()),
        })
    }

    /// Reads the same in parts of about as many bytes, until one is not taken. All are of one revision, and there is at
    /// least one.
    pub(super) fn list_in_parts(
        &self,
        query: &Query,
        bytes: usize,
        mut take: impl FnMut(List) -> bool,
    ) -> Result<()> {
        let prefix = keys::prefix(query);
        self.read(|txn| {
            let at = revision_in(txn)?;
            let empty = || List {
                items: Vec::new(),
                invalid: Vec::new(),
                revision: Revision(at.to_string()),
            };
            let (mut part, mut size) = (empty(), 0);
            for item in txn.open_table(OBJECTS)?.range(prefix.as_slice()..)? {
                let (stored_key, value) = item?;
                if !stored_key.value().starts_with(&prefix) {
                    break;
                }
                let key = keys::decode(stored_key.value()).filter(|key| query.selects(key));
                let Some(key) = key else { continue };
                let (revision, json) = split(value.value());
                if size > 0 && size + json.len() > bytes {
                    if !take(std::mem::replace(&mut part, empty())) {
                        return Ok(());
                    }
                    size = 0;
                }
                size += json.len();
                match json::decode(key.kind, json, revision.to_string()) {
                    Ok(resource) => part.items.push(resource),
                    Err(reason) => part.invalid.push(Invalid::of_bytes(key, reason, json)),
                }
            }
            take(part);
            Ok(())
        })
    }

    /// Reads all documents of a collection, perhaps of one namespace only, with the revision of the state they are of.
    pub(super) fn list_documents(
        &self,
        collection: &Arc<str>,
        namespace: Option<&str>,
    ) -> Result<(Vec<Document>, u64)> {
        let prefix = keys::document_prefix(collection, namespace);
        let mut documents = Vec::new();
        let at = self.scan(&prefix, |stored_key, revision, json| {
            if let Some(key) = keys::decode_document(collection, stored_key) {
                documents.push(Document {
                    key,
                    revision,
                    json: json.into(),
                });
            }
        })?;
        Ok((documents, at))
    }

    /// Reads one document.
    pub(super) fn document(
        &self,
        key: &DocumentKey,
        stored_key: &[u8],
    ) -> Result<Option<Document>> {
        let value = self.value(stored_key)?;
        Ok(value.map(|(revision, json)| Document {
            key: key.clone(),
            revision,
            json,
        }))
    }

    /// Shows key, revision and JSON of everything under a prefix, in order, and gives the revision of that state.
    fn scan(&self, prefix: &[u8], show: impl FnMut(&[u8], u64, &[u8])) -> Result<u64> {
        self.read(|txn| {
            scan_in(&txn.open_table(OBJECTS)?, prefix, show)?;
            revision_in(txn)
        })
    }

    /// The extent of the change log, and with it the last revision.
    pub(super) fn log_state(&self) -> Result<LogState> {
        self.read(|txn| LogState::load(&txn.open_table(META)?, &txn.open_table(LOG)?))
    }

    /// Fails if the log does not hold every change after this revision.
    pub(super) fn check_watchable(&self, after: u64) -> Result<()> {
        if self.log_state()?.covers(after) {
            Ok(())
        } else {
            Err(Error::Gone(after.to_string()))
        }
    }

    /// Reads a part of the log after a revision.
    pub(super) fn replay<S: Selection>(
        &self,
        selection: &S,
        after: u64,
    ) -> Result<Replay<S::Event>> {
        let replay = self.read(|txn| read_log(txn, selection, after))?;
        replay.ok_or_else(|| Error::Gone(after.to_string()))
    }
}

type Objects = ReadOnlyTable<&'static [u8], &'static [u8]>;
type Value = AccessGuard<'static, &'static [u8]>;

/// What there is of a resource, and the collection if it comes from a document.
pub(super) fn find(
    objects: &Objects,
    key: &Key,
) -> Result<Option<(Option<Shown>, Value)>, redb::Error> {
    for (shown, stored_key) in views::stored_keys(key) {
        if let Some(value) = objects.get(stored_key.as_slice())? {
            return Ok(Some((shown, value)));
        }
    }
    Ok(None)
}

/// Reads one resource.
pub(super) fn get_in(
    objects: &Objects,
    key: &Key,
) -> Result<Option<Result<Resource, Invalid>>, redb::Error> {
    Ok(find(objects, key)?.map(|(shown, value)| {
        let (revision, json) = split(value.value());
        views::decode(shown, key, revision, json)
    }))
}

fn scan_in(
    objects: &Objects,
    prefix: &[u8],
    mut show: impl FnMut(&[u8], u64, &[u8]),
) -> Result<(), redb::Error> {
    for item in objects.range(prefix..)? {
        let (stored_key, value) = item?;
        if !stored_key.value().starts_with(prefix) {
            break;
        }
        let (revision, json) = split(value.value());
        show(stored_key.value(), revision, json);
    }
    Ok(())
}

fn revision_in(txn: &ReadTransaction) -> Result<u64, redb::Error> {
    Ok(LogState::load(&txn.open_table(META)?, &txn.open_table(LOG)?)?.revision())
}

/// None if the log no longer holds what comes after the revision.
fn read_log<S: Selection>(
    txn: &ReadTransaction,
    selection: &S,
    after: u64,
) -> Result<Option<Replay<S::Event>>, redb::Error> {
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
        let Some(Entry { key, json }) = Entry::from_bytes(entry.value()) else {
            continue;
        };
        if let Some(event) = selection.logged(revision.value(), key, json) {
            bytes += entry.value().len();
            replay.events.push(event);
        }
    }
    Ok(Some(replay))
}

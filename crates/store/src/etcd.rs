//! The datastore of a Calico cluster that keeps its state in etcd; keys and values are Calico's own,
//! so that both can work on one cluster.
//!
//! # Invariants
//! - A create is a transaction on the absence of the key, an update one on its revision. Nothing is
//!   ever written without a condition.
//! - What is in etcd was written by others and may be anything: what cannot be read is reported as
//!   invalid or, under keys that are not those of objects, passed over.
//! - A list is of one revision, however many requests it takes.
//!
//! # Names
//! The IPAM kinds are stored without metadata, under paths that say more than their names; see
//! [`ipam_names`](crate::ipam_names). On a write their path comes from the spec, and the resource returned has the
//! name that belongs to it. Of two affinities whose names are equal (such as that of a host and that
//! of a virtual owner of the same name to the same block) only the first is found by name.

mod client;
mod combine;
mod config;
mod found;
mod housekeeping;
mod messages;
mod parts;
mod paths;
mod several;
mod together;
mod value;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tonic::{Code, Status};
use tortie_api::{Kind, Resource};

use self::client::Client;
use self::combine::Combiner;
pub use self::config::{EtcdConfig, Pem};
use self::found::{Found, list_of};
use self::messages::{Compare, KeyValue, RangeRequest, RequestOp, TxnRequest};
use self::paths::{Location, Range};
use self::value::Stored;
use crate::default_profile;
use crate::error::{Error, Result};
use crate::key::{Key, Query, Revision};
use crate::store::{List, Precondition, Store, Watch, Write, expected_revision};

/// How long etcd may take to answer for the first time.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// Keys per request of a list. Calico's largest objects are some 10 kB, so a page is a few MB; where
/// it is larger than an answer may be, it is halved.
const PAGE: i64 = 500;

/// etcd's default limit of operations in a transaction.
const MAX_TXN_OPS: usize = 128;

/// How often an operation that needs several requests starts over because others changed the data
/// between them.
const MAX_ATTEMPTS: usize = 10;

/// Calico's state in etcd.
#[derive(Debug, Clone)]
pub struct EtcdStore {
    client: Arc<Client>,
    combiner: Arc<Combiner>,
}

// === impl EtcdStore ===

impl EtcdStore {
    /// Prepares connections; the first operation makes them, and fails if etcd does not answer. Needs a tokio runtime.
    pub fn new(config: &EtcdConfig) -> Result<Self> {
        Ok(Self {
            client: Arc::new(Client::new(config)?),
            combiner: Arc::default(),
        })
    }

    /// Connects to etcd and checks that it answers.
    pub async fn connect(config: &EtcdConfig) -> Result<Self> {
        let store = Self::new(config)?;
        let request = RangeRequest {
            key: b"/calico/".to_vec(),
            keys_only: true,
            ..Default::default()
        };
        let answer = tokio::time::timeout(FIRST_ANSWER, store.client.range(request)).await;
        let Ok(answer) = answer else {
            let (members, seconds) = (config.endpoints.join(", "), FIRST_ANSWER.as_secs());
            return Err(Error::Unavailable {
                message: format!(
                    "etcd at {members} has not answered within {seconds} s; is it etcd that listens there?"
                ),
                source: None,
            });
        };
        answer.map_err(|status| store.client.error(status))?;
        Ok(store)
    }

    /// Finds the object of a key under any of the paths where it may be.
    async fn find(&self, key: &Key) -> Result<Option<Found>> {
        let candidates = paths::candidates(key);
        let gets: Vec<RequestOp> = candidates.iter().map(|path| RequestOp::get(path)).collect();
        if let Some(found) = self.find_among(gets, key).await? {
            return Ok(Some(found));
        }
        if key.kind == Kind::BlockAffinity && candidates.is_empty() {
            return self.find_in_list(key).await;
        }
        Ok(None)
    }

    /// The first object with this key among those that the operations read.
    async fn find_among(&self, operations: Vec<RequestOp>, key: &Key) -> Result<Option<Found>> {
        for chunk in operations.chunks(MAX_TXN_OPS) {
            let request = TxnRequest {
                success: chunk.to_vec(),
                ..Default::default()
            };
            let response = self
                .client
                .read_txn(request)
                .await
                .map_err(|status| self.client.error(status))?;
            let found = response
                .into_kvs()
                .filter_map(Found::new)
                .find(|found| found.key() == *key);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Finds an object by reading all of its kind.
    async fn find_in_list(&self, key: &Key) -> Result<Option<Found>> {
        let (found, _) = self.read_range(&Range::of(&Query::from(key))).await?;
        Ok(found.into_iter().find(|found| found.key() == *key))
    }

    /// Reads a range in pages, all of one revision.
    async fn read_range(&self, range: &Range) -> Result<(Vec<Found>, i64)> {
        let mut attempts = MAX_ATTEMPTS;
        loop {
            attempts -= 1;
            match self.read_pages(range).await {
                // Compacted since the first page was read.
                Err(status) if is_compacted(&status) && attempts > 0 => {}
                result => return result.map_err(|status| self.client.error(status)),
            }
        }
    }

    async fn read_pages(&self, range: &Range) -> Result<(Vec<Found>, i64), Status> {
        let mut request = RangeRequest {
            key: range.start.clone(),
            range_end: range.end.clone(),
            limit: PAGE,
            ..Default::default()
        };
        let mut all = Vec::new();
        loop {
            let response = match self.client.range(request.clone()).await {
                Err(status) if is_too_large(&status) && request.limit > 1 => {
                    request.limit /= 2;
                    continue;
                }
                result => result?,
            };
            if request.revision == 0 {
                request.revision = response.header.map_or(0, |header| header.revision);
            }
            if let Some(last) = response.kvs.last() {
                request.key = [last.key.as_slice(), b"\0"].concat();
            }
            let is_end = !response.more || response.kvs.is_empty();
            all.extend(response.kvs.into_iter().filter_map(Found::new));
            if is_end {
                return Ok((all, request.revision));
            }
        }
    }

    /// Replaces the value of a path, if it is at the revision. None if there is no such path.
    async fn replace(&self, path: &str, value: Vec<u8>, revision: i64) -> Result<Option<Replaced>> {
        let request = TxnRequest {
            compare: vec![Compare::unchanged(path, revision)],
            success: vec![RequestOp::put(path, value)],
            failure: vec![RequestOp::get(path)],
        };
        let response = self
            .client
            .txn(request)
            .await
            .map_err(|status| self.client.error(status))?;
        let (succeeded, revision) = (response.succeeded, response.revision());
        Ok(response.into_first().map(|kv| {
            if succeeded {
                let create_revision = kv.create_revision;
                Replaced::At {
                    revision,
                    create_revision,
                }
            } else {
                Replaced::Conflict
            }
        }))
    }

    /// Removes a path, if it is at the revision; at any if there is none. Gives what it was.
    async fn remove(&self, path: &str, revision: Option<i64>) -> Result<Removed> {
        let compare = revision.map(|revision| Compare::unchanged(path, revision));
        let request = TxnRequest {
            compare: compare.into_iter().collect(),
            success: vec![RequestOp::delete(path)],
            failure: vec![RequestOp::get(path)],
        };
        let response = self
            .client
            .txn(request)
            .await
            .map_err(|status| self.client.error(status))?;
        Ok(match (response.succeeded, response.into_first()) {
            (_, None) => Removed::NotThere,
            (false, Some(_)) => Removed::Conflict,
            (true, Some(kv)) => Removed::Was(kv),
        })
    }

    /// Finds the object first and then removes what was found.
    async fn find_and_remove(&self, key: &Key, precondition: &Precondition) -> Result<KeyValue> {
        let Precondition { revision, uid } = precondition;
        for _ in 0..MAX_ATTEMPTS {
            let found = self
                .find(key)
                .await?
                .ok_or_else(|| Error::NotFound(key.clone()))?;
            let at = found.kv.mod_revision;
            if revision
                .as_ref()
                .is_some_and(|revision| revision.0 != at.to_string())
            {
                return Err(Error::Conflict(key.clone()));
            }
            if let Some(uid) = uid
                && found
                    .stored()
                    .decode()
                    .map_or(true, |found| found.metadata().uid != *uid)
            {
                return Err(Error::Conflict(key.clone()));
            }
            let path = String::from_utf8_lossy(&found.kv.key).into_owned();
            // Whatever happened in between, the next look tells.
            if let Removed::Was(kv) = self.remove(&path, Some(at)).await? {
                return Ok(kv);
            }
        }
        Err(Error::Conflict(key.clone()))
    }
}

enum Replaced {
    At { revision: i64, create_revision: i64 },
    Conflict,
}

enum Removed {
    Was(KeyValue),
    Conflict,
    NotThere,
}

#[async_trait]
impl Store for EtcdStore {
    async fn get(&self, key: &Key) -> Result<Resource> {
        if default_profile::is(key) {
            return Ok(default_profile::resource());
        }
        let found = self
            .find(key)
            .await?
            .ok_or_else(|| Error::NotFound(key.clone()))?;
        found.decode(key)
    }

    fn reads_many_at_once(&self) -> bool {
        true
    }

    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Result<Resource>>> {
        self.read_several(keys).await
    }

    async fn revisions(&self, keys: &[Key]) -> Result<Vec<Option<Revision>>> {
        self.read_revisions(keys).await
    }

    async fn list(&self, query: &Query) -> Result<List> {
        let (found, revision) = self.read_range(&Range::of(query)).await?;
        Ok(list_of(&found, query, revision))
    }

    async fn list_affinities(&self, owner: &str) -> Result<List> {
        let [hosts, others] = Range::affinities_of(owner);
        let (hosts, others) =
            futures::try_join!(self.read_range(&hosts), self.read_range(&others))?;
        let (mut found, revision) = hosts;
        found.extend(others.0);
        Ok(list_of(&found, &Query::all(Kind::BlockAffinity), revision))
    }

    fn list_in_parts(&self, query: &Query) -> BoxStream<'_, Result<List>> {
        self.parts(query)
    }

    async fn create(&self, mut resource: Resource) -> Result<Resource> {
        let key = Key::of(&resource);
        default_profile::check_writable("create", &key)?;
        let path = paths::of_resource(&resource)?;
        let value = value::encode(&mut resource);
        let request = TxnRequest {
            compare: vec![Compare::absent(&path)],
            success: vec![RequestOp::put(&path, value)],
            failure: Vec::new(),
        };
        let response = self
            .client
            .txn(request)
            .await
            .map_err(|status| self.client.error(status))?;
        if !response.succeeded {
            return Err(Error::AlreadyExists(key));
        }
        let revision = response.revision();
        Ok(written(resource, &path, revision, revision))
    }

    async fn update(&self, mut resource: Resource) -> Result<Resource> {
        let key = Key::of(&resource);
        default_profile::check_writable("update", &key)?;
        let path = paths::of_resource(&resource)?;
        // Not a revision of etcd, so not that of the object either.
        let revision = expected_revision(&resource)?.parse().unwrap_or(-1);
        let value = value::encode(&mut resource);
        let mut replaced = self.replace(&path, value.clone(), revision).await?;
        if replaced.is_none()
            && let Some(legacy) = paths::legacy(&key)
        {
            replaced = self.replace(&legacy, value, revision).await?;
        }
        match replaced {
            Some(Replaced::At {
                revision,
                create_revision,
            }) => Ok(written(resource, &path, revision, create_revision)),
            Some(Replaced::Conflict) => Err(Error::Conflict(key)),
            None => Err(Error::NotFound(key)),
        }
    }

    async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        default_profile::check_writable("delete", key)?;
        let removed = match paths::candidates(key).as_slice() {
            [path] if precondition.uid.is_none() => {
                let revision = precondition.revision.as_ref();
                let revision = revision.map(|revision| revision.0.parse().unwrap_or(-1));
                match self.remove(path, revision).await? {
                    Removed::Was(kv) => kv,
                    Removed::Conflict => return Err(Error::Conflict(key.clone())),
                    Removed::NotThere => return Err(Error::NotFound(key.clone())),
                }
            }
            _ => self.find_and_remove(key, precondition).await?,
        };
        match Found::new(removed) {
            Some(found) => found.decode(key),
            None => Err(Error::message(format!(
                "etcd answered with another key than that of {key}"
            ))),
        }
    }

    async fn write_together(&self, writes: Vec<Write>) -> Result<Vec<Resource>> {
        self.write_all(writes).await
    }

    async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch> {
        let after = from.0.parse().map_err(|_| Error::Gone(from.0.clone()))?;
        watch::start(Arc::clone(&self.client), query.clone(), after).await
    }
}

/// Reads any key and value as [`EtcdStore`] does; for tests with arbitrary bytes.
#[doc(hidden)]
pub fn decode(key: &[u8], value: &[u8]) -> Option<(Key, Result<Resource, String>)> {
    let kv = KeyValue {
        key: key.into(),
        value: value.into(),
        create_revision: 1,
        mod_revision: 1,
    };
    let found = Found::new(kv)?;
    Some((found.key(), found.stored().decode()))
}

/// A resource as it is after it was written.
fn written(mut resource: Resource, path: &str, revision: i64, create_revision: i64) -> Resource {
    if value::is_bare(resource.kind())
        && let Some(location) = Location::parse(path)
    {
        let stored = Stored {
            location: &location,
            value: b"",
            create_revision,
            mod_revision: revision,
        };
        *resource.metadata_mut() = stored.bare_metadata();
    }
    resource.metadata_mut().resource_version = revision.to_string();
    resource
}

fn is_compacted(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.message().contains("compacted")
}

/// Whether our side refused the answer for its size.
fn is_too_large(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.message().contains("message length too large")
}

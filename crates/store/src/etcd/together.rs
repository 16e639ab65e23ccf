//! Several writes as one transaction of etcd.

use std::collections::{HashMap, HashSet};

use tortie_api::Resource;

use super::messages::{Compare, DeleteRangeRequest, PutRequest, RangeRequest, Request, TxnRequest};
use super::{EtcdStore, MAX_TXN_OPS, paths, value};
use crate::default_profile;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::store::{Write, check_distinct, expected_revision};

/// A write as etcd sees it.
pub(super) struct Step {
    key: Key,
    pub(super) path: String,
    /// The revision that the path must be at; 0 for none.
    pub(super) expected: i64,
    operation: Option<Request>,
    written: Option<Resource>,
    pub(super) is_check: bool,
}

/// Writes that are made together, all or none of them.
pub(super) struct Together {
    steps: Vec<Step>,
}

/// What became of several requests that were sent as one transaction.
pub(super) enum Sent {
    /// All were carried out, at this revision.
    Done(i64),
    /// None was, because of those that object.
    Refused(Vec<Option<Error>>),
}

// === impl Together ===

impl Together {
    pub(super) fn new(writes: Vec<Write>) -> Result<Self> {
        if writes.len() > MAX_TXN_OPS {
            return Err(Error::message(format!(
                "{} writes are more than etcd makes together, which is {MAX_TXN_OPS}",
                writes.len()
            )));
        }
        let mut steps = Vec::with_capacity(writes.len());
        for write in writes {
            steps.push(Step::new(write)?);
        }
        check_distinct(steps.iter().map(|step| step.path.as_str()))?;
        Ok(Self { steps })
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What was written, as it is at the revision of the transaction.
    pub(super) fn done(self, revision: i64) -> Vec<Resource> {
        let steps = self.steps.into_iter();
        steps.filter_map(|step| step.done(revision)).collect()
    }
}

impl EtcdStore {
    /// Sends several requests as one transaction. They agree on what they expect of objects that more than one names.
    pub(super) async fn send(&self, requests: &[&Together]) -> Result<Sent> {
        let mut seen = HashSet::new();
        let steps: Vec<&Step> = requests
            .iter()
            .flat_map(|request| &request.steps)
            .filter(|step| seen.insert(step.path.as_str()))
            .collect();
        let request = TxnRequest {
            compare: steps.iter().map(|step| step.condition()).collect(),
            success: steps
                .iter()
                .filter_map(|step| step.operation.clone())
                .map(Into::into)
                .collect(),
            failure: steps
                .iter()
                .map(|step| look_at(&step.path).into())
                .collect(),
        };
        let response = self
            .client
            .txn(request)
            .await
            .map_err(|status| self.client.error(status))?;
        if response.succeeded {
            return Ok(Sent::Done(response.revision()));
        }
        // One of the conditions did not hold, and the answer shows the state in which it did not.
        let found: HashMap<Vec<u8>, i64> = response
            .into_kvs()
            .map(|kv| (kv.key, kv.mod_revision))
            .collect();
        let objection = |request: &&Together| {
            request.steps.iter().find_map(|step| {
                let revision = found.get(step.path.as_bytes()).copied();
                step.objection(revision)
            })
        };
        let objections: Vec<Option<Error>> = requests.iter().map(objection).collect();
        if objections.iter().all(Option::is_none) {
            return Err(Error::message("etcd refused writes without a reason"));
        }
        Ok(Sent::Refused(objections))
    }
}

// === impl Step ===

impl Step {
    fn new(write: Write) -> Result<Self> {
        let key = write.key();
        let put = |path: &str, value: Vec<u8>| {
            Some(Request::Put(PutRequest {
                key: path.into(),
                value,
                prev_kv: false,
            }))
        };
        match write {
            Write::Create(mut resource) => {
                default_profile::check_writable("create", &key)?;
                let path = paths::of_resource(&resource)?;
                let value = value::encode(&mut resource);
                resource.metadata_mut().resource_version.clear();
                let operation = put(&path, value);
                let written = Some(resource);
                Ok(Self {
                    key,
                    path,
                    expected: 0,
                    operation,
                    written,
                    is_check: false,
                })
            }
            Write::Update(mut resource) => {
                default_profile::check_writable("update", &key)?;
                let path = paths::of_resource(&resource)?;
                let expected = revision_of(&resource)?;
                let value = value::encode(&mut resource);
                let operation = put(&path, value);
                resource.metadata_mut().resource_version = expected.to_string();
                let written = Some(resource);
                Ok(Self {
                    key,
                    path,
                    expected,
                    operation,
                    written,
                    is_check: false,
                })
            }
            Write::Delete(resource) => {
                default_profile::check_writable("delete", &key)?;
                let path = paths::of_resource(&resource)?;
                let operation = Some(Request::DeleteRange(DeleteRangeRequest {
                    key: path.clone().into_bytes(),
                    prev_kv: false,
                }));
                Ok(Self {
                    key,
                    path,
                    expected: revision_of(&resource)?,
                    operation,
                    written: None,
                    is_check: false,
                })
            }
            Write::Unchanged(key, revision) => match paths::candidates(&key).as_slice() {
                [path] => Ok(Self {
                    path: path.clone(),
                    expected: revision.map_or(0, |revision| revision.0.parse().unwrap_or(-1)),
                    operation: None,
                    written: None,
                    is_check: true,
                    key,
                }),
                _ => Err(Error::Unsupported {
                    operation: "write together",
                    key,
                    reason: "its name does not tell its path".to_owned(),
                }),
            },
        }
    }

    /// How much it adds to a request.
    pub(super) fn bytes(&self) -> usize {
        let value = match &self.operation {
            Some(Request::Put(put)) => put.value.len(),
            _ => 0,
        };
        // The path is in the condition, the operation and the look at it.
        value + 3 * self.path.len()
    }

    fn condition(&self) -> Compare {
        if self.expected == 0 {
            Compare::absent(&self.path)
        } else {
            Compare::unchanged(&self.path, self.expected)
        }
    }

    /// What the step finds wrong with the revision of its path.
    fn objection(&self, found: Option<i64>) -> Option<Error> {
        let is_create = self.written.is_some() && self.expected == 0;
        match found {
            None if self.expected == 0 => None,
            Some(found) if found == self.expected => None,
            Some(_) if is_create => Some(Error::AlreadyExists(self.key.clone())),
            None if !self.is_check => Some(Error::NotFound(self.key.clone())),
            _ => Some(Error::Conflict(self.key.clone())),
        }
    }

    /// What was written, as it is at the revision of the transaction.
    fn done(self, revision: i64) -> Option<Resource> {
        let mut resource = self.written?;
        if self.expected == 0 {
            return Some(super::written(resource, &self.path, revision, revision));
        }
        resource.metadata_mut().resource_version = revision.to_string();
        Some(resource)
    }
}

/// Not a revision of etcd, so not that of the object either.
fn revision_of(resource: &Resource) -> Result<i64> {
    Ok(expected_revision(resource)?.parse().unwrap_or(-1))
}

/// Reads where the path is, without what it holds.
fn look_at(path: &str) -> Request {
    Request::Range(RangeRequest {
        key: path.into(),
        keys_only: true,
        ..Default::default()
    })
}

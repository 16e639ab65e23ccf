//! Several writes as one transaction of etcd.

use tortie_api::Resource;

use super::messages::{Compare, DeleteRangeRequest, PutRequest, RangeRequest, Request, TxnRequest};
use super::{EtcdStore, MAX_TXN_OPS, paths, value};
use crate::default_profile;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::store::{Write, check_distinct, expected_revision};

/// A write as etcd sees it.
struct Step {
    key: Key,
    path: String,
    /// The revision that the path must be at; 0 for none.
    expected: i64,
    operation: Option<Request>,
    written: Option<Resource>,
    is_check: bool,
}

impl EtcdStore {
    pub(super) async fn write_all(&self, writes: Vec<Write>) -> Result<Vec<Resource>> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
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
        let request = TxnRequest {
            compare: steps.iter().map(Step::condition).collect(),
            success: steps
                .iter_mut()
                .filter_map(|step| step.operation.take())
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
            let revision = response.revision();
            return Ok(steps
                .into_iter()
                .filter_map(|step| step.done(revision))
                .collect());
        }
        let found: Vec<(Vec<u8>, i64)> = response
            .into_kvs()
            .map(|kv| (kv.key, kv.mod_revision))
            .collect();
        let objection = steps.iter().find_map(|step| {
            let found = found.iter().find(|(path, _)| path == step.path.as_bytes());
            step.objection(found.map(|(_, revision)| *revision))
        });
        // One of the conditions did not hold, and the answer shows the state in which it did not.
        Err(objection.unwrap_or_else(|| Error::message("etcd refused writes without a reason")))
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

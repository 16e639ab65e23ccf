//! Several objects read with one request.

use std::collections::HashMap;

use super::found::Found;
use super::messages::{KeyValue, RangeRequest, Request, RequestOp, TxnRequest, TxnResponse};
use super::{EtcdStore, MAX_TXN_OPS, paths};
use crate::default_profile;
use crate::error::{Error, Result};
use crate::key::{Key, Revision};
use crate::store::Store as _;
use tortie_api::Resource;

/// What is read of each path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    WithoutValue,
}

/// Paths and what was found there.
type ByPath = HashMap<Vec<u8>, KeyValue>;

impl EtcdStore {
    pub(super) async fn read_several(&self, keys: &[Key]) -> Result<Vec<Result<Resource>>> {
        let candidates: Vec<Vec<String>> = keys.iter().map(paths::candidates).collect();
        let mut by_path = self.read_paths(&candidates, Part::Whole).await?;
        let mut all = Vec::with_capacity(keys.len());
        for (key, paths) in keys.iter().zip(&candidates) {
            all.push(if paths.is_empty() || default_profile::is(key) {
                self.get(key).await
            } else {
                paths
                    .iter()
                    .filter_map(|path| by_path.remove(path.as_bytes()))
                    .filter_map(Found::new)
                    .find(|found| found.key() == *key)
                    .ok_or_else(|| Error::NotFound(key.clone()))
                    .and_then(|found| found.decode(key))
            });
        }
        Ok(all)
    }

    pub(super) async fn read_revisions(&self, keys: &[Key]) -> Result<Vec<Option<Revision>>> {
        let candidates: Vec<Vec<String>> = keys.iter().map(paths::candidates).collect();
        let by_path = self.read_paths(&candidates, Part::WithoutValue).await?;
        let mut all = Vec::with_capacity(keys.len());
        for (key, paths) in keys.iter().zip(&candidates) {
            let revision = match paths.as_slice() {
                [path] => by_path
                    .get(path.as_bytes())
                    .map(|kv| Revision(kv.mod_revision.to_string())),
                // The value has to tell which of the paths it is.
                _ => match self.get(key).await {
                    Ok(found) => Some(Revision(found.metadata().resource_version.clone())),
                    Err(Error::NotFound(_)) => None,
                    Err(error) => return Err(error),
                },
            };
            all.push(revision);
        }
        Ok(all)
    }

    async fn read_paths(&self, candidates: &[Vec<String>], part: Part) -> Result<ByPath> {
        let paths = candidates
            .iter()
            .filter(|paths| part == Part::Whole || paths.len() == 1);
        let operations: Vec<RequestOp> = paths
            .flatten()
            .map(|path| {
                let range = RangeRequest {
                    key: path.clone().into_bytes(),
                    keys_only: part == Part::WithoutValue,
                    ..Default::default()
                };
                Request::Range(range).into()
            })
            .collect();
        let requests = operations.chunks(MAX_TXN_OPS).map(async |chunk| {
            let request = TxnRequest {
                success: chunk.to_vec(),
                ..Default::default()
            };
            let response = self.client.read_txn(request).await;
            response.map_err(|status| self.client.error(status))
        });
        let responses = futures::future::try_join_all(requests).await?;
        let found = responses.into_iter().flat_map(TxnResponse::into_kvs);
        Ok(found.map(|kv| (kv.key.clone(), kv)).collect())
    }
}

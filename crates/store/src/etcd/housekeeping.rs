//! What is done to etcd as a whole: its history is forgotten, and policies are given their newer names.

use tortie_api::Kind;

use super::messages::{CompactionRequest, Compare, RangeRequest, RequestOp, TxnRequest};
use super::paths::Range;
use super::{EtcdStore, is_compacted, paths, value};
use crate::error::Result;
use crate::key::{Key, Query};

/// The kinds whose objects were once stored under other names.
const TIERED_POLICIES: [Kind; 4] = [
    Kind::NetworkPolicy,
    Kind::GlobalNetworkPolicy,
    Kind::StagedNetworkPolicy,
    Kind::StagedGlobalNetworkPolicy,
];

impl EtcdStore {
    /// The state that etcd is in now.
    pub async fn current_revision(&self) -> Result<i64> {
        let request = RangeRequest {
            key: b"/calico/".to_vec(),
            keys_only: true,
            ..Default::default()
        };
        let response = self.client.range(request).await;
        let response = response.map_err(|status| self.client.error(status))?;
        Ok(response.header.map_or(0, |header| header.revision))
    }

    /// Forgets the history before a state. It is no error if that was forgotten already.
    pub async fn compact(&self, revision: i64) -> Result<()> {
        let request = CompactionRequest {
            revision,
            physical: false,
        };
        match self.client.compact(request).await {
            Ok(_) => Ok(()),
            Err(status) if is_compacted(&status) => Ok(()),
            Err(status) => Err(self.client.error(status)),
        }
    }

    /// Stores policies of the default tier under their own names where an older version put `default.` before them.
    /// Gives those that were moved.
    pub async fn migrate_policy_names(&self) -> Result<Vec<Key>> {
        let mut moved = Vec::new();
        for kind in TIERED_POLICIES {
            let (found, _) = self.read_range(&Range::of(&Query::all(kind))).await?;
            for found in found {
                let key = found.key();
                let Some(old) = found.kv.path().map(str::to_owned) else {
                    continue;
                };
                if found.location.key() == key || paths::legacy(&key).as_deref() != Some(&*old) {
                    continue;
                }
                // One that cannot be read is nobody's policy, and stays where it is.
                let Ok(mut policy) = found.stored().decode() else {
                    continue;
                };
                let value = value::encode(&mut policy);
                let revision = found.kv.mod_revision;
                if self.move_policy(&key, &old, revision, value).await? {
                    moved.push(key);
                }
            }
        }
        Ok(moved)
    }

    /// Moves a policy in one transaction; one that is under both names already is removed under the older. Tells whether
    /// it was still there as it was read.
    async fn move_policy(
        &self,
        key: &Key,
        old: &str,
        revision: i64,
        value: Vec<u8>,
    ) -> Result<bool> {
        let Some(new) = paths::candidates(key).into_iter().next() else {
            return Ok(false);
        };
        let unchanged = Compare::unchanged(old, revision);
        let requests = [
            TxnRequest {
                compare: vec![unchanged.clone(), Compare::absent(&new)],
                success: vec![RequestOp::put(&new, value), RequestOp::delete(old)],
                failure: Vec::new(),
            },
            TxnRequest {
                compare: vec![unchanged],
                success: vec![RequestOp::delete(old)],
                failure: Vec::new(),
            },
        ];
        for request in requests {
            let response = self.client.txn(request).await;
            let response = response.map_err(|status| self.client.error(status))?;
            if response.succeeded {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

//! Copies resources from one group to the other.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tortie_api::{Kind, Resource};
use tortie_backoff::{Backoff, Retries};
use tortie_error::Causes;
use tortie_store::{Error, Key, Precondition, Query, Result, Store};

use super::metrics::Metrics;
use super::object::MIGRATED_BY;
use super::phase::{KINDS, copy_of, is_own, is_same, remap_owners};

/// How many resources are written at once.
const IN_FLIGHT: usize = 10;

/// How often a request is made that the API server does not answer, and the pauses in between.
const ATTEMPTS: u32 = 5;
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(200),
    most: Duration::from_secs(10),
    jitter: 0.1,
};

/// The two groups.
#[derive(Clone, Copy)]
pub(super) struct Groups<'a> {
    pub(super) v1: &'a dyn Store,
    pub(super) v3: &'a dyn Store,
    pub(super) metrics: &'a Metrics,
}

/// What became of the resources of a kind.
#[derive(Debug, Default)]
pub(super) struct Copied {
    pub(super) migrated: usize,
    pub(super) skipped: usize,
    pub(super) conflicts: Vec<Key>,
}

/// What is remembered for owner references, over all kinds.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Uids in the newer group, by those in the older.
    uids: BTreeMap<String, String>,
    owned: Vec<Resource>,
}

enum Outcome {
    Migrated(Resource),
    Skipped(Resource),
    Conflict(Key),
}

impl Groups<'_> {
    /// Copies all resources of a kind.
    pub(super) async fn copy(
        &self,
        kind: Kind,
        migration: &str,
        owners: &mut Owners,
    ) -> Result<Copied> {
        let resources = list(self.v1, kind).await?;
        let writes = resources.into_iter().map(|resource| async {
            let old_uid = resource.metadata().uid.clone();
            (old_uid, self.copy_one(resource, migration).await)
        });
        let mut writes = stream::iter(writes).buffer_unordered(IN_FLIGHT);
        let mut copied = Copied::default();
        while let Some((old_uid, outcome)) = writes.next().await {
            let resource = match outcome? {
                Outcome::Migrated(resource) => {
                    copied.migrated += 1;
                    resource
                }
                Outcome::Skipped(resource) => {
                    copied.skipped += 1;
                    resource
                }
                Outcome::Conflict(key) => {
                    copied.conflicts.push(key);
                    continue;
                }
            };
            let metadata = resource.metadata();
            if !old_uid.is_empty() && !metadata.uid.is_empty() {
                owners.uids.insert(old_uid, metadata.uid.clone());
            }
            if !metadata.owner_references.is_empty() {
                owners.owned.push(resource);
            }
        }
        copied.conflicts.sort();
        Ok(copied)
    }

    /// Lets copies refer to the copies of their owners.
    pub(super) async fn remap(&self, owners: Owners) -> Result<()> {
        for mut resource in owners.owned {
            if remap_owners(resource.metadata_mut(), &owners.uids) {
                self.v3.update(resource).await?;
            }
        }
        Ok(())
    }

    /// Resources that are in both groups and differ.
    pub(super) async fn conflicts(&self) -> Result<Vec<Key>> {
        let mut conflicts = Vec::new();
        for kind in KINDS {
            let new: BTreeMap<Key, Resource> = list(self.v3, kind)
                .await?
                .into_iter()
                .map(|resource| (Key::of(&resource), resource))
                .collect();
            for old in list(self.v1, kind).await? {
                let key = Key::of(&old);
                if new.get(&key).is_some_and(|new| !is_same(&old, new)) {
                    conflicts.push(key);
                }
            }
        }
        Ok(conflicts)
    }

    /// Removes what a migration has copied. Goes on after failures, which are logged: without the definitions in force, what
    /// is left does nothing.
    pub(super) async fn remove_copies(&self, migration: &str) {
        for kind in KINDS.into_iter().rev() {
            let resources = match list(self.v3, kind).await {
                Ok(resources) => resources,
                Err(error) => {
                    tracing::warn!(%kind, error = %Causes(&error), "Copies cannot be listed");
                    continue;
                }
            };
            for resource in resources {
                let by = resource.metadata().annotations.get(MIGRATED_BY);
                if by.is_none_or(|by| by != migration) {
                    continue;
                }
                let key = Key::of(&resource);
                match self.v3.delete(&key, &Precondition::default()).await {
                    Ok(_) | Err(Error::NotFound(_)) => {}
                    Err(error) => {
                        tracing::warn!(%key, error = %Causes(&error), "A copy could not be removed");
                    }
                }
            }
        }
    }

    async fn copy_one(&self, resource: Resource, migration: &str) -> Result<Outcome> {
        let key = Key::of(&resource);
        let copy = copy_of(resource, MIGRATED_BY, migration);
        let existing = self.retried(key.kind, "get", || async {
            match self.v3.get(&key).await {
                Ok(found) => Ok(Some(found)),
                Err(Error::NotFound(_)) => Ok(None),
                Err(error) => Err(error),
            }
        });
        let existing = if let Some(existing) = existing.await? {
            existing
        } else {
            let created = self.retried(key.kind, "create", || self.v3.create(copy.clone()));
            match created.await {
                Ok(created) => return Ok(Outcome::Migrated(created)),
                Err(Error::AlreadyExists(_)) => self.v3.get(&key).await?,
                Err(error) => return Err(error),
            }
        };
        Ok(if is_same(&copy, &existing) {
            Outcome::Skipped(existing)
        } else {
            Outcome::Conflict(key)
        })
    }

    async fn retried<T, F>(&self, kind: Kind, operation: &str, request: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut pauses = Retries::new(BACKOFF);
        for _ in 1..ATTEMPTS {
            match request().await {
                Err(error) if error.is_retryable() => {}
                answer => return answer,
            }
            self.metrics.retried(kind.as_str(), operation);
            tokio::time::sleep(pauses.failed()).await;
        }
        request().await
    }
}

/// All of a kind that are kept in the group. What cannot be read would be lost, so it is not passed over.
async fn list(store: &dyn Store, kind: Kind) -> Result<Vec<Resource>> {
    let list = store.list(&Query::all(kind)).await?;
    if let Some(invalid) = list.invalid.iter().find(|invalid| is_own(&invalid.key)) {
        let (key, reason) = (&invalid.key, &invalid.reason);
        return Err(Error::message(format!("{key} cannot be read: {reason}")));
    }
    let mut resources = list.items;
    resources.retain(|resource| is_own(&Key::of(resource)));
    Ok(resources)
}

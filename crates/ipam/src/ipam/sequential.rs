//! Writes for datastores that change one object at a time.
//!
//! Handles count an address before its block gives it out, and until after the block has it back. So a handle may count
//! too many addresses, but never too few. It may forget a block only if it did not change since before the block was
//! written: whoever counted an address before that write then finds the block changed and starts over.

use std::collections::BTreeMap;

use ipnet::IpNet;
use tortie_api::IpamHandle;
use tortie_error::Causes;
use tortie_store::{Error as StoreError, Key, Precondition, Resource, Revision};

use super::commit::{Written, lost_race};
use super::copies::BlockObject;
use super::jobs::{Operation, Plan};
use super::slots::Queued;
use super::{Ipam, MAX_TRIES, is_lost_race};
use crate::error::{Error, Result};
use crate::{handle, nets};

impl Ipam {
    pub(super) async fn write_in_sequence(
        &self,
        object: BlockObject,
        plan: &Plan,
        batch: &[Queued],
    ) -> Result<Written> {
        let net = plan.block.net();
        let mut counted = Vec::new();
        for (id, change) in plan.counts.iter().filter(|(_, change)| **change > 0) {
            match self.count_more(id, net, *change, max_of(batch, id)).await {
                Ok(None) => counted.push((id, *change)),
                Ok(Some(current)) => {
                    self.undo(&counted, net).await;
                    return Ok(Written::Excess([(id.clone(), current)].into()));
                }
                Err(error) => {
                    self.undo(&counted, net).await;
                    return Err(error);
                }
            }
        }
        // As they are before the block is written.
        let mut before: BTreeMap<&str, Option<IpamHandle>> = BTreeMap::new();
        for id in plan.handles() {
            let is_counted = plan.counts.get(id).is_some_and(|change| *change > 0);
            if !is_counted {
                before.insert(id, self.read_handle(id).await?);
            }
        }
        let block = match self.write_block(object, plan).await {
            Ok(block) => block,
            Err(error) => {
                self.undo(&counted, net).await;
                return match error {
                    StoreError::Conflict(key)
                    | StoreError::NotFound(key)
                    | StoreError::AlreadyExists(key) => Ok(Written::Outdated(key)),
                    error => Err(error.into()),
                };
            }
        };
        for (id, handle) in before {
            let change = plan.counts.get(id).copied().unwrap_or(0);
            if let Err(error) = self.count_less(id, handle, plan, change).await {
                // The handle counts too many addresses now, until it is released again.
                tracing::warn!(handle = id, error = %Causes(&error), "A handle could not be reduced");
            }
        }
        Ok(Written::All(block.map(Box::new)))
    }

    /// Counts addresses of a handle before they are given out. Tells how many it has if they would be too many.
    async fn count_more(
        &self,
        id: &str,
        net: IpNet,
        change: i64,
        max: Option<u32>,
    ) -> Result<Option<u32>> {
        for _ in 0..MAX_TRIES {
            let found = self.read_handle(id).await?;
            let is_new = found.is_none();
            let mut handle = found.unwrap_or_else(|| handle::new_handle(id));
            let current = handle::count_of_version(&handle, nets::version(net));
            let more = u32::try_from(change).unwrap_or(0);
            if max.is_some_and(|max| current.saturating_add(more) > max) {
                return Ok(Some(current));
            }
            handle::count(&mut handle, net, change);
            let written = if is_new {
                self.store().create(handle.into()).await
            } else {
                self.store().update(handle.into()).await
            };
            match written {
                Ok(_) => return Ok(None),
                Err(error) if is_lost_race(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::TooMuchContention)
    }

    /// Counts addresses no longer, now that their block has them back.
    async fn count_less(
        &self,
        id: &str,
        before: Option<IpamHandle>,
        plan: &Plan,
        change: i64,
    ) -> Result<()> {
        let Some(mut handle) = before else {
            return Ok(());
        };
        plan.apply_to(&mut handle);
        match self.write_handle(handle).await {
            Err(error) if lost_race(&error) => {}
            result => return result,
        }
        for _ in 0..MAX_TRIES {
            let Some(mut handle) = self.read_handle(id).await? else {
                return Ok(());
            };
            handle::count(&mut handle, plan.block.net(), change);
            match self.write_handle(handle).await {
                Err(error) if lost_race(&error) => {}
                result => return result,
            }
        }
        Err(Error::TooMuchContention)
    }

    async fn undo(&self, counted: &[(&String, i64)], net: IpNet) {
        for (id, change) in counted {
            for _ in 0..MAX_TRIES {
                let done = match self.read_handle(id).await {
                    Ok(Some(mut handle)) => {
                        handle::count(&mut handle, net, -change);
                        self.write_handle(handle).await
                    }
                    Ok(None) => Ok(()),
                    Err(error) => Err(error),
                };
                match done {
                    Err(error) if lost_race(&error) => {}
                    Err(error) => {
                        tracing::warn!(handle = *id, error = %Causes(&error), "A handle could not be put back");
                        break;
                    }
                    Ok(()) => break,
                }
            }
        }
    }

    /// Updates a handle, or deletes it if it has no addresses.
    pub(super) async fn write_handle(&self, handle: IpamHandle) -> Result<()> {
        if handle::is_empty(&handle) {
            self.delete_object(&handle.into()).await?;
        } else {
            self.store().update(handle.into()).await?;
        }
        Ok(())
    }

    /// Deletes an object that is at the revision in the resource.
    pub(super) async fn delete_object(&self, resource: &Resource) -> Result<(), StoreError> {
        let precondition = Precondition {
            revision: Some(Revision(resource.metadata().resource_version.clone())),
            uid: None,
        };
        self.store()
            .delete(&Key::of(resource), &precondition)
            .await
            .map(drop)
    }
}

/// How many addresses a handle may have, according to the strictest of the jobs.
fn max_of(batch: &[Queued], id: &str) -> Option<u32> {
    let limits = batch
        .iter()
        .filter_map(|queued| match &queued.job.operation {
            Operation::Assign {
                holder,
                max_per_handle,
                ..
            }
            | Operation::AssignOne {
                holder,
                max_per_handle,
                ..
            } if holder.handle.as_deref() == Some(id) => *max_per_handle,
            _ => None,
        });
    limits.min()
}

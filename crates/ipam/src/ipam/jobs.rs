//! What callers want of one block, and what comes of it, before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use jiff::Timestamp;
use tortie_api::IpamHandle;

use super::Tick;
use super::world::{Guard, World};
use crate::block::{Block, BlockRelease};
use crate::error::{Error, Result};
use crate::request::{Holder, HostReserved, Owner, ReleaseIp};
use crate::{handle, nets};

/// Something wanted of a block.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) operation: Operation,
    /// What the caller decided by.
    pub(super) world: Arc<World>,
    /// When the call began: an answer that no write confirms must rest on what was read later.
    pub(super) since: Tick,
    /// Makes the block, if it is not there.
    pub(super) claim: Option<Claim>,
}

/// What a block is made with.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) owner: Owner,
    pub(super) reserved: Option<HostReserved>,
}

#[derive(Debug, Clone)]
pub(super) enum Operation {
    /// Addresses, whichever are free.
    Assign {
        count: u32,
        holder: Holder,
        /// Only if this owner has the block.
        owner: Option<Owner>,
        max_per_handle: Option<u32>,
    },
    /// One particular address.
    AssignOne {
        address: IpAddr,
        holder: Holder,
        owner: Option<Owner>,
        max_per_handle: Option<u32>,
    },
    /// These addresses back.
    Release(Vec<ReleaseIp>),
    /// All addresses of a handle back, and the handle's mention of the block away.
    ReleaseHandle(String),
}

/// What came of it.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Assigned(Vec<IpNet>),
    /// The handle may not have more; it has so many.
    MaxReached(u32),
    Released {
        release: BlockRelease,
        /// Who owns the block, if it is empty now.
        emptied: Option<Owner>,
    },
    /// There is no such block.
    Missing,
    /// Pools or settings changed since the caller looked: nothing was done.
    WorldChanged,
}

/// All jobs of a batch, done to the block.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) block: Block,
    pub(super) outcomes: Vec<Result<Outcome>>,
    /// Whether the block has to be written.
    pub(super) is_changed: bool,
    /// Whether what is written differs from what was read, even if no job changed anything.
    pub(super) is_collected: bool,
    /// Whether something was released, so that an empty block that nobody owns can go.
    has_releases: bool,
    /// With which cooldown addresses were collected since the last release.
    collected: Option<i32>,
    /// By how much the numbers of addresses of handles change.
    pub(super) counts: BTreeMap<String, i64>,
    /// Handles that are to forget the block.
    forgotten: BTreeSet<String>,
}

impl Job {
    /// The handle that has to be known beforehand.
    pub(super) fn needs_handle(&self) -> Option<&str> {
        match &self.operation {
            Operation::Assign {
                holder,
                max_per_handle: Some(_),
                ..
            }
            | Operation::AssignOne {
                holder,
                max_per_handle: Some(_),
                ..
            } => holder.handle.as_deref(),
            Operation::ReleaseHandle(handle) => Some(handle),
            _ => None,
        }
    }

    /// What must be unchanged when it is written.
    pub(super) fn guards(&self, net: IpNet) -> Vec<Guard> {
        match self.operation {
            Operation::Assign { .. } | Operation::AssignOne { .. } => self.world.guards(net.addr()),
            Operation::Release(_) | Operation::ReleaseHandle(_) => Vec::new(),
        }
    }
}

impl Plan {
    /// Does the jobs one after the other. Each change counts as one write of the block.
    pub(super) fn new<'a>(
        block: Block,
        jobs: impl Iterator<Item = &'a Job>,
        known: &BTreeMap<String, Option<IpamHandle>>,
        now: Timestamp,
    ) -> Self {
        let mut plan = Self {
            block,
            outcomes: Vec::new(),
            is_changed: false,
            is_collected: false,
            has_releases: false,
            collected: None,
            counts: BTreeMap::new(),
            forgotten: BTreeSet::new(),
        };
        for job in jobs {
            let cooldown = job.world.config.ip_cooldown_seconds;
            if plan.collected != Some(cooldown) {
                plan.is_collected |= plan.block.collect(cooldown, now);
                plan.collected = Some(cooldown);
            }
            let outcome = plan.apply(job, known, cooldown, now);
            plan.outcomes.push(outcome);
        }
        plan
    }

    /// Whether the block can be deleted instead of written.
    pub(super) fn deletes_block(&self) -> bool {
        self.has_releases && self.block.is_empty() && !self.block.has_affinity()
    }

    /// Changes a handle as the block was changed.
    pub(super) fn apply_to(&self, handle: &mut IpamHandle) {
        let id = handle.spec.handle_id.clone();
        let net = self.block.net();
        let change = self.counts.get(&id).copied().unwrap_or(0);
        if change <= 0 && self.has_none_left(&id) {
            handle::forget(handle, net);
        } else {
            handle::count(handle, net, change);
        }
    }

    /// Whether the handle has nothing in the block any more.
    pub(super) fn has_none_left(&self, handle: &str) -> bool {
        !self.block.has_any_of(handle)
    }

    /// All handles that change.
    pub(super) fn handles(&self) -> BTreeSet<&str> {
        let counted = self.counts.keys().chain(&self.forgotten);
        counted.map(String::as_str).collect()
    }

    fn apply(
        &mut self,
        job: &Job,
        known: &BTreeMap<String, Option<IpamHandle>>,
        cooldown: i32,
        now: Timestamp,
    ) -> Result<Outcome> {
        match &job.operation {
            Operation::Assign {
                count,
                holder,
                owner,
                max_per_handle,
            } => {
                if let Some(owner) = owner {
                    self.block.require_owner(owner)?;
                }
                if self.block.free(&job.world.reservations) == 0 {
                    return Ok(Outcome::Assigned(Vec::new()));
                }
                if let Some(current) = self.excess(holder, *max_per_handle, *count, known) {
                    return Ok(Outcome::MaxReached(current));
                }
                let addresses = self
                    .block
                    .assign_next(*count, holder, &job.world.reservations);
                self.assigned(holder, addresses.len());
                Ok(Outcome::Assigned(addresses))
            }
            Operation::AssignOne {
                address,
                holder,
                owner,
                max_per_handle,
            } => {
                if let Some(owner) = owner {
                    self.block.require_owner(owner)?;
                }
                let assigned = Outcome::Assigned(vec![nets::in_block(*address, self.block.net())]);
                let is_held_by_same = || {
                    let found = self.block.holder(*address).ok();
                    found.is_some_and(|found| found.handle == holder.handle)
                };
                if max_per_handle.is_some() && holder.handle.is_some() && is_held_by_same() {
                    return Ok(assigned);
                }
                if !matches!(self.block.holder(*address), Err(Error::Unassigned(_))) {
                    return Err(Error::AlreadyAssigned(*address));
                }
                if let Some(current) = self.excess(holder, *max_per_handle, 1, known) {
                    return Ok(Outcome::MaxReached(current));
                }
                self.block.assign(*address, holder)?;
                self.assigned(holder, 1);
                Ok(assigned)
            }
            Operation::Release(requests) => {
                let release = self.block.release(requests, cooldown, now)?;
                if !release.released.is_empty() {
                    self.released(&release.by_handle);
                }
                Ok(self.done(release))
            }
            Operation::ReleaseHandle(handle) => {
                let released = self.block.release_handle(handle, cooldown, now);
                let key = self.block.net().to_string();
                let is_mentioned = known
                    .get(handle)
                    .and_then(Option::as_ref)
                    .is_some_and(|handle| handle.spec.block.contains_key(&key));
                if !released.is_empty() || is_mentioned {
                    let count = u32::try_from(released.len()).unwrap_or(u32::MAX);
                    self.released(&[(handle.clone(), count)].into());
                    self.forgotten.insert(handle.clone());
                }
                Ok(self.done(BlockRelease {
                    released,
                    ..BlockRelease::default()
                }))
            }
        }
    }

    /// How many addresses the handle has, if so many more would be too many.
    fn excess(
        &self,
        holder: &Holder,
        max: Option<u32>,
        count: u32,
        known: &BTreeMap<String, Option<IpamHandle>>,
    ) -> Option<u32> {
        let (max, id) = (max?, holder.handle.as_deref()?);
        let version = nets::version(self.block.net());
        let stored = known.get(id).and_then(Option::as_ref);
        let stored = stored.map_or(0, |stored| handle::count_of_version(stored, version));
        let planned = self.counts.get(id).copied().unwrap_or(0);
        let current = u32::try_from(i64::from(stored) + planned).unwrap_or(0);
        (current.saturating_add(count) > max).then_some(current)
    }

    fn assigned(&mut self, holder: &Holder, count: usize) {
        if count == 0 {
            return;
        }
        if let Some(handle) = &holder.handle {
            let change = i64::try_from(count).unwrap_or(i64::MAX);
            *self.counts.entry(handle.clone()).or_default() += change;
        }
        self.block.bump();
        self.is_changed = true;
    }

    fn released(&mut self, by_handle: &BTreeMap<String, u32>) {
        for (handle, count) in by_handle {
            *self.counts.entry(handle.clone()).or_default() -= i64::from(*count);
        }
        self.block.bump();
        self.is_changed = true;
        self.has_releases = true;
        self.collected = None;
    }

    fn done(&self, release: BlockRelease) -> Outcome {
        let emptied = self.block.owner().filter(|_| self.block.is_empty());
        Outcome::Released { release, emptied }
    }
}

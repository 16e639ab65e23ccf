//! Carries out the jobs that wait for a block, with one write where the datastore can do that.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use ipnet::IpNet;
use tortie_api::IpamHandle;
use tortie_store::{Error as StoreError, Key, Kind, Resource, Write};

use super::copies::{BlockCopy, retell};
use super::jobs::{Done, Plan, Wish};
use super::slots::Queued;
use super::world::Guard;
use super::{Ipam, MAX_TRIES, is_lost_race, locked};
use crate::error::{Error, Result};
use crate::handle;

/// How a batch was written.
pub(super) enum Written {
    /// All of it; the block as it is now, unless it was deleted.
    All(Option<Box<BlockCopy>>),
    /// Nothing, because an object is not what it was taken for.
    Outdated(Key),
    /// Nothing, because handles have more addresses than they may have.
    Excess(BTreeMap<String, u32>),
}

impl Ipam {
    /// Does all jobs and answers them.
    pub(super) async fn carry_out(
        &self,
        net: IpNet,
        copy: &mut Option<BlockCopy>,
        mut batch: Vec<Queued>,
    ) {
        // Handles of which the memory proved to be wrong.
        let mut outdated = BTreeSet::new();
        for _ in 0..MAX_TRIES {
            batch = match self.attempt(net, copy, batch, &mut outdated).await {
                Ok(left) if left.is_empty() => return,
                Ok(left) => left,
                Err((batch, error)) => {
                    *copy = None;
                    return fail(batch, &error);
                }
            };
        }
        fail(batch, &Error::TooMuchContention);
    }

    /// Gives back the jobs that have to be tried again.
    async fn attempt(
        &self,
        net: IpNet,
        copy: &mut Option<BlockCopy>,
        batch: Vec<Queued>,
        outdated: &mut BTreeSet<String>,
    ) -> Result<Vec<Queued>, (Vec<Queued>, Error)> {
        if copy.is_none() {
            match self.read_block(net).await {
                Ok(Some(found)) => *copy = Some(found),
                Ok(None) => {
                    for queued in batch {
                        queued.answer(Ok(Done::Missing));
                    }
                    return Ok(Vec::new());
                }
                Err(error) => return Err((batch, error)),
            }
        }
        let Some(base) = copy.clone() else {
            return Ok(batch);
        };
        let (batch, guards) = agree_on_guards(net, batch);
        let needed = batch.iter().filter_map(|queued| queued.job.needs_handle());
        let needed: BTreeSet<String> = needed.map(str::to_owned).collect();
        let mut known = match self.load_handles(needed, outdated).await {
            Ok(known) => known,
            Err(error) => return Err((batch, error)),
        };
        let jobs = batch.iter().map(|queued| &queued.job);
        let plan = Plan::new(&base.block, jobs, &known, self.now());
        if !plan.is_changed {
            // No write will tell whether the block still is what it was taken for.
            if batch.iter().any(|queued| queued.job.since >= base.tick) {
                *copy = None;
                return Ok(batch);
            }
            // Nor whether the handles are.
            if self.writes_together() && !known.keys().all(|id| outdated.contains(id)) {
                outdated.extend(known.into_keys());
                return Ok(batch);
            }
            answer(batch, plan.outcomes);
            return Ok(Vec::new());
        }
        let written = if self.writes_together() {
            self.write_plan(&base, &plan, &mut known, guards, outdated)
                .await
        } else {
            self.write_in_sequence(&base, &plan, &batch).await
        };
        match written {
            Ok(Written::All(block)) => {
                *copy = block.map(|block| *block);
                answer(batch, plan.outcomes);
                Ok(Vec::new())
            }
            Ok(Written::Outdated(key)) => Ok(self.refresh(&key, copy, batch, outdated)),
            Ok(Written::Excess(handles)) => {
                *copy = None;
                Ok(answer_excess(batch, &handles))
            }
            Err(error) if is_refused_together(&error) => {
                self.cannot_write_together();
                Ok(batch)
            }
            Err(error) => {
                // Whether it was written is not known, so neither is what is there.
                for handle in plan.handles() {
                    self.forget_handle(handle);
                }
                Err((batch, error))
            }
        }
    }

    /// Forgets what proved to be outdated. Gives back the jobs that can be tried again.
    fn refresh(
        &self,
        key: &Key,
        copy: &mut Option<BlockCopy>,
        batch: Vec<Queued>,
        outdated: &mut BTreeSet<String>,
    ) -> Vec<Queued> {
        match key.kind {
            Kind::IpamHandle => {
                self.forget_handle(&key.name);
                outdated.insert(key.name.clone());
                batch
            }
            Kind::IpamBlock => {
                *copy = None;
                batch
            }
            _ => {
                self.forget_world();
                let (assigns, others) = batch.into_iter().partition(Queued::is_assign);
                let assigns: Vec<Queued> = assigns;
                for queued in assigns {
                    queued.answer(Ok(Done::WorldChanged));
                }
                others
            }
        }
    }

    /// Handles as they are remembered, or read where that was wrong before.
    async fn load_handles(
        &self,
        ids: BTreeSet<String>,
        outdated: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Option<IpamHandle>>> {
        let loads = ids.into_iter().map(async |id| {
            let handle = if outdated.contains(&id) {
                self.read_handle(&id).await?
            } else {
                self.known_handle(&id).await?
            };
            Ok::<_, Error>((id, handle))
        });
        Ok(try_join_all(loads).await?.into_iter().collect())
    }

    /// Writes block and handles together, if everything still is as it is remembered.
    async fn write_plan(
        &self,
        base: &BlockCopy,
        plan: &Plan,
        known: &mut BTreeMap<String, Option<IpamHandle>>,
        guards: Vec<Guard>,
        outdated: &BTreeSet<String>,
    ) -> Result<Written> {
        let tick = self.tick();
        let mut missing = BTreeSet::new();
        for id in plan.handles() {
            let is_new = plan.counts.get(id).is_some_and(|change| *change > 0)
                && !outdated.contains(id)
                && locked(&self.shared.handles).get(id).is_none();
            if known.contains_key(id) {
                continue;
            }
            if is_new {
                // Handles are mostly new; if this one is not, its creation fails and it is read.
                known.insert(id.to_owned(), None);
            } else {
                missing.insert(id.to_owned());
            }
        }
        known.extend(self.load_handles(missing, outdated).await?);

        let changed = base.with(plan.block.clone());
        let is_deleted = plan.deletes_block();
        let mut writes = vec![if is_deleted {
            Write::Delete(base.resource())
        } else {
            Write::Update(changed.resource())
        }];
        let mut gone = Vec::new();
        for id in plan.handles() {
            let before = known.get(id).and_then(Option::as_ref);
            let mut after = before.cloned().unwrap_or_else(|| handle::new_handle(id));
            plan.apply_to(&mut after);
            match before {
                Some(before) if handle::is_empty(&after) => {
                    gone.push(id);
                    writes.push(Write::Delete(before.clone().into()));
                }
                Some(before) if *before != after => writes.push(Write::Update(after.into())),
                None if !handle::is_empty(&after) => writes.push(Write::Create(after.into())),
                _ => {}
            }
        }
        for (key, revision) in guards {
            writes.push(Write::Unchanged(key, revision));
        }
        let answers = match self.store().write_together(writes).await {
            Ok(answers) => answers,
            Err(
                StoreError::Conflict(key)
                | StoreError::NotFound(key)
                | StoreError::AlreadyExists(key),
            ) => return Ok(Written::Outdated(key)),
            Err(error) => return Err(error.into()),
        };
        let mut handles = locked(&self.shared.handles);
        for id in gone {
            handles.remove(id);
        }
        let mut block = None;
        for answer in answers {
            match answer {
                Resource::IpamHandle(handle) => handles.insert(*handle),
                answer => block = Some(changed.clone().written(&answer, tick)),
            }
        }
        Ok(Written::All(block.filter(|_| !is_deleted).map(Box::new)))
    }

    /// Writes the block alone. None if it was deleted; an error that is a lost race if it changed.
    pub(super) async fn write_block(
        &self,
        base: &BlockCopy,
        plan: &Plan,
    ) -> Result<Option<BlockCopy>, StoreError> {
        let tick = self.tick();
        if plan.deletes_block() {
            self.delete_object(&base.resource()).await?;
            return Ok(None);
        }
        let changed = base.with(plan.block.clone());
        let answer = self.store().update(changed.resource()).await?;
        Ok(Some(changed.written(&answer, tick)))
    }
}

impl Queued {
    fn answer(self, result: Result<Done>) {
        // Whoever asked may have gone; what was done stands.
        let _ = self.reply.send(result);
    }

    fn is_assign(&self) -> bool {
        matches!(self.job.wish, Wish::Assign { .. } | Wish::AssignOne { .. })
    }
}

fn answer(batch: Vec<Queued>, outcomes: Vec<Result<Done>>) {
    for (queued, outcome) in batch.into_iter().zip(outcomes) {
        queued.answer(outcome);
    }
}

fn fail(batch: Vec<Queued>, error: &Error) {
    for queued in batch {
        let told = match error {
            Error::TooMuchContention => Error::TooMuchContention,
            Error::Damaged { what, reason } => Error::Damaged {
                what: what.clone(),
                reason: reason.clone(),
            },
            error => retell(error),
        };
        queued.answer(Err(told));
    }
}

/// Answers those whose handles may not have more; the others are tried again.
fn answer_excess(batch: Vec<Queued>, handles: &BTreeMap<String, u32>) -> Vec<Queued> {
    let mut left = Vec::new();
    for queued in batch {
        let excess = queued.job.needs_handle().and_then(|id| handles.get(id));
        match excess.copied() {
            Some(current) if queued.is_assign() => queued.answer(Ok(Done::MaxReached(current))),
            _ => left.push(queued),
        }
    }
    left
}

/// What must be unchanged for all jobs. Those whose callers decided by another state than the others look again.
fn agree_on_guards(net: IpNet, batch: Vec<Queued>) -> (Vec<Queued>, Vec<Guard>) {
    let mut agreed: BTreeMap<Key, Option<tortie_store::Revision>> = BTreeMap::new();
    let mut left = Vec::with_capacity(batch.len());
    for queued in batch {
        let guards = queued.job.guards(net);
        let disagrees =
            |(key, revision): &Guard| agreed.get(key).is_some_and(|known| known != revision);
        if guards.iter().any(disagrees) {
            queued.answer(Ok(Done::WorldChanged));
            continue;
        }
        agreed.extend(guards);
        left.push(queued);
    }
    (left, agreed.into_iter().collect())
}

/// Whether the datastore cannot write several objects at once.
pub(super) fn is_refused_together(error: &Error) -> bool {
    let operation = "write together";
    matches!(error, Error::Store(StoreError::Unsupported { operation: refused, .. }) if *refused == operation)
}

/// Whether it is worth looking again.
pub(super) fn lost_race(error: &Error) -> bool {
    matches!(error, Error::Store(error) if is_lost_race(error))
}

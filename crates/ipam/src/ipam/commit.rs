//! Carries out the jobs that wait for a block, with one write where the datastore can do that.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use ipnet::IpNet;
use tortie_api::IpamHandle;
use tortie_api::block_affinity::BlockAffinityState;
use tortie_store::{Error as StoreError, Key, Kind, Resource, Write};

use super::affinities::new_affinity;
use super::copies::{BlockCopy, BlockObject, retell};
use super::jobs::{Claim, Operation, Outcome, Plan};
use super::slots::Queued;
use super::world::Guard;
use super::{Ipam, MAX_TRIES, is_lost_race, locked};
use crate::block::Block;
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
        let (mut batch, guards) = agree_on_guards(net, batch);
        let claim = batch.iter_mut().find_map(|queued| queued.job.claim.take());
        let claim = claim.filter(|_| copy.is_none() && self.writes_together());
        // From here on it is not known what is there, until it is written or found unchanged.
        let base = match (copy.take(), &claim) {
            (Some(known), _) => known,
            (None, Some(claim)) => {
                let block = Block::new(net, &claim.owner, self.now(), claim.reserved.as_ref());
                BlockCopy::unwritten(block, self.tick())
            }
            (None, None) => match self.read_block(net).await {
                Ok(Some(found)) => found,
                Ok(None) => {
                    for queued in batch {
                        queued.answer(Ok(Outcome::Missing));
                    }
                    return Ok(Vec::new());
                }
                Err(error) => return Err((batch, error)),
            },
        };
        let needed = batch.iter().filter_map(|queued| queued.job.needs_handle());
        let needed: BTreeSet<String> = needed.map(str::to_owned).collect();
        let mut known = match self.load_handles(needed, outdated).await {
            Ok(known) => known,
            Err(error) => return Err((batch, error)),
        };
        let jobs = batch.iter().map(|queued| &queued.job);
        let tick = base.tick;
        let (object, block) = base.into_parts();
        let plan = Plan::new(block, jobs, &known, self.now());
        if !plan.is_changed && claim.is_none() {
            // No write will tell whether the block still is what it was taken for.
            if batch.iter().any(|queued| queued.job.since >= tick) {
                return Ok(batch);
            }
            if !plan.is_collected {
                *copy = Some(object.copy_with(plan.block, tick));
            }
            // Nor whether the handles are.
            if self.writes_together() && !known.keys().all(|id| outdated.contains(id)) {
                outdated.extend(known.into_keys());
                return Ok(batch);
            }
            answer(batch, plan.outcomes);
            return Ok(Vec::new());
        }
        let (written, outcomes) = if self.writes_together() {
            self.write_plan(object, plan, &mut known, guards, claim, outdated)
                .await
        } else {
            let written = self.write_in_sequence(object, &plan, &batch).await;
            (written, plan.outcomes)
        };
        match written {
            Ok(Written::All(block)) => {
                *copy = block.map(|block| *block);
                answer(batch, outcomes);
                Ok(Vec::new())
            }
            Ok(Written::Outdated(key)) => Ok(self.refresh(&key, batch, outdated)),
            Ok(Written::Excess(handles)) => Ok(answer_excess(batch, &handles)),
            Err(error) if is_refused_together(&error) => {
                self.cannot_write_together();
                Ok(batch)
            }
            Err(error) => Err((batch, error)),
        }
    }

    /// Forgets what proved to be outdated. Gives back the jobs that can be tried again.
    fn refresh(
        &self,
        key: &Key,
        batch: Vec<Queued>,
        outdated: &mut BTreeSet<String>,
    ) -> Vec<Queued> {
        match key.kind {
            Kind::IpamHandle => {
                self.forget_handle(&key.name);
                outdated.insert(key.name.clone());
                batch
            }
            Kind::IpamBlock | Kind::BlockAffinity => batch,
            _ => {
                self.forget_world();
                let (assigns, others) = batch.into_iter().partition(Queued::is_assign);
                let assigns: Vec<Queued> = assigns;
                for queued in assigns {
                    queued.answer(Ok(Outcome::WorldChanged));
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
        object: BlockObject,
        mut plan: Plan,
        known: &mut BTreeMap<String, Option<IpamHandle>>,
        guards: Vec<Guard>,
        claim: Option<Claim>,
        outdated: &BTreeSet<String>,
    ) -> (Result<Written>, Vec<Result<Outcome>>) {
        let outcomes = std::mem::take(&mut plan.outcomes);
        let missing = self.unknown_handles(&plan, known, outdated);
        match self.load_handles(missing, outdated).await {
            Ok(loaded) => known.extend(loaded),
            Err(error) => return (Err(error), outcomes),
        }
        let (net, tick) = (plan.block.net(), self.tick());
        let (mut handles, mut touched, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for id in plan.handles() {
            let before = known.get(id).and_then(Option::as_ref);
            let mut after = before.cloned().unwrap_or_else(|| handle::new_handle(id));
            plan.apply_to(&mut after);
            touched.push(id.to_owned());
            match before {
                Some(before) if handle::is_empty(&after) => {
                    gone.push(id.to_owned());
                    handles.push(Write::Delete(before.clone().into()));
                }
                Some(before) if *before != after => handles.push(Write::Update(after.into())),
                None if !handle::is_empty(&after) => handles.push(Write::Create(after.into())),
                _ => {}
            }
        }
        let is_deleted = claim.is_none() && plan.deletes_block();
        let block = object.resource_with(plan.block);
        let mut writes = vec![match &claim {
            Some(_) => Write::Create(block),
            None if is_deleted => Write::Delete(block),
            None => Write::Update(block),
        }];
        if let Some(Claim { owner, .. }) = &claim {
            let affinity = new_affinity(owner, net, BlockAffinityState::Confirmed);
            writes.push(Write::Create(affinity.into()));
        }
        writes.extend(handles);
        writes.extend(
            guards
                .into_iter()
                .map(|(key, at)| Write::Unchanged(key, at)),
        );
        let answers = match self.store().write_together(writes).await {
            Ok(answers) => answers,
            Err(
                StoreError::Conflict(key)
                | StoreError::NotFound(key)
                | StoreError::AlreadyExists(key),
            ) => return (Ok(Written::Outdated(key)), outcomes),
            Err(error) => {
                // Whether it was written is not known, so neither is what is there.
                for id in &touched {
                    self.forget_handle(id);
                }
                return (Err(error.into()), outcomes);
            }
        };
        let mut block = None;
        {
            let mut handles = locked(&self.shared.handles);
            for id in &gone {
                handles.remove(id);
            }
            for answer in answers {
                match answer {
                    Resource::IpamHandle(handle) => handles.insert(*handle),
                    answer => block = block.or_else(|| BlockCopy::written(answer, net, tick)),
                }
            }
        }
        if let Some(Claim { owner, .. }) = &claim {
            self.note_affinity(owner, net, true);
        }
        (Ok(Written::All(block.map(Box::new))), outcomes)
    }

    /// The handles that have to be read before a plan is written. Those that are probably new need not be: if one is not,
    /// its creation fails.
    fn unknown_handles(
        &self,
        plan: &Plan,
        known: &mut BTreeMap<String, Option<IpamHandle>>,
        outdated: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        let mut missing = BTreeSet::new();
        for id in plan.handles() {
            if known.contains_key(id) {
                continue;
            }
            let is_new = plan.counts.get(id).is_some_and(|change| *change > 0)
                && !outdated.contains(id)
                && locked(&self.shared.handles).get(id).is_none();
            if is_new {
                known.insert(id.to_owned(), None);
            } else {
                missing.insert(id.to_owned());
            }
        }
        missing
    }

    /// Writes the block alone. None if it was deleted; an error that is a lost race if it changed.
    pub(super) async fn write_block(
        &self,
        object: BlockObject,
        plan: &Plan,
    ) -> Result<Option<BlockCopy>, StoreError> {
        let tick = self.tick();
        let changed = object.resource_with(plan.block.clone());
        if plan.deletes_block() {
            self.delete_object(&changed).await?;
            return Ok(None);
        }
        let answer = self.store().update(changed).await?;
        let written = BlockCopy::written(answer, plan.block.net(), tick);
        written.map(Some).ok_or_else(unexpected_answer)
    }
}

impl Queued {
    fn answer(self, result: Result<Outcome>) {
        // Whoever asked may have gone; what was done stands.
        let _ = self.reply.send(result);
    }

    fn is_assign(&self) -> bool {
        matches!(
            self.job.operation,
            Operation::Assign { .. } | Operation::AssignOne { .. }
        )
    }
}

fn answer(batch: Vec<Queued>, outcomes: Vec<Result<Outcome>>) {
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
            Some(current) if queued.is_assign() => queued.answer(Ok(Outcome::MaxReached(current))),
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
            queued.answer(Ok(Outcome::WorldChanged));
            continue;
        }
        agreed.extend(guards);
        left.push(queued);
    }
    (left, agreed.into_iter().collect())
}

pub(super) fn unexpected_answer() -> StoreError {
    StoreError::message("the datastore answered with another object")
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

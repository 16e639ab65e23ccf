//! Objects that the kernel refuses, and what stands in their place.
//!
//! One object that is refused must not keep all others from being written. A chain of a policy, profile or endpoint is
//! replaced by one that drops. A set is left out, and every chain that looks into it drops: whether its rules would allow
//! or deny cannot be told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tortie_rules::rule::{Match, Rule};
use tortie_rules::{Chain, IpVersion, Renderer};

use crate::change::{Batch, ChainKey, Members, Object, Owner, Refused};

/// How long after a refusal an object is tried again, at first and at most. Each time twice as long: trying means to
/// write everything, and to be refused again.
pub(crate) const FIRST_RETRY: Duration = Duration::from_secs(10);
const LAST_RETRY: Duration = Duration::from_mins(10);

/// What the kernel refused, of one IP version.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    refused: BTreeMap<Object, Refusal>,
    /// Those of them that are to be tried now.
    tried: BTreeSet<Object>,
}

#[derive(Debug)]
struct Refusal {
    owner: Owner,
    reason: String,
    delay: Duration,
    next: Instant,
}

impl Refusals {
    /// What is refused, as people call it.
    pub(crate) fn list(&self, ip_version: IpVersion) -> impl Iterator<Item = Refused> {
        self.refused.iter().map(move |(object, refusal)| Refused {
            owner: refusal.owner.clone(),
            ip_version,
            chain: match object {
                Object::Chain(key) => Some(Arc::clone(&key.name)),
                Object::Set(_) => None,
            },
            reason: refusal.reason.clone(),
        })
    }

    /// Whether the time has come to try one again.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.refused.values().any(|refusal| refusal.next <= now)
    }

    /// Tries again what is due, and what changed.
    pub(crate) fn prepare(&mut self, batch: &Batch, now: Instant) {
        if !batch.is_full {
            let changed = objects(batch).filter(|object| self.refused.contains_key(object));
            let changed: Vec<Object> = changed.collect();
            self.tried.extend(changed);
        }
        let due = self.refused.iter();
        let due = due.filter(|(_, refusal)| refusal.next <= now);
        self.tried.extend(due.map(|(object, _)| object.clone()));
    }

    /// Whether a change is about a set that was refused. The kernel does not have it, so that the change says too little.
    pub(crate) fn needs_everything(&self, batch: &Batch) -> bool {
        let deltas = batch.sets.iter().filter(|set| set.change != Members::Gone);
        deltas
            .map(|set| Object::Set(Arc::clone(&set.name)))
            .any(|set| self.refused.contains_key(&set))
    }

    /// Forgets what is gone.
    pub(crate) fn forget_gone(&mut self, batch: &Batch) {
        if self.refused.is_empty() {
            return;
        }
        if batch.is_full {
            let there: BTreeSet<Object> = objects(batch).collect();
            self.refused.retain(|object, _| there.contains(object));
        } else {
            for key in &batch.removed_chains {
                self.refused.remove(&Object::Chain(key.clone()));
            }
            for set in batch.sets.iter().filter(|set| set.change == Members::Gone) {
                self.refused.remove(&Object::Set(Arc::clone(&set.name)));
            }
        }
        self.tried
            .retain(|object| self.refused.contains_key(object));
    }

    /// Puts something that denies in the place of all that is refused and not tried.
    pub(crate) fn put_stand_ins(&self, batch: &mut Batch) {
        let is_standing_in =
            |object: &Object| self.refused.contains_key(object) && !self.tried.contains(object);
        if self.refused.is_empty() {
            return;
        }
        batch.sets.retain(|set| {
            set.change == Members::Gone || !is_standing_in(&Object::Set(Arc::clone(&set.name)))
        });
        for chain in &mut batch.chains {
            let is_refused = is_standing_in(&Object::Chain(ChainKey::of(chain)));
            if is_refused || looks_into(chain, &is_standing_in) {
                let name = Arc::clone(&chain.name);
                *chain = Renderer::stand_in(chain.table, name, "Refused by the kernel");
            }
        }
    }

    /// An object is refused; false if something stood in its place already.
    pub(crate) fn add(
        &mut self,
        object: &Object,
        owner: Owner,
        reason: String,
        first_retry: Duration,
        now: Instant,
    ) -> bool {
        let was_tried = self.tried.remove(object);
        let before = self.refused.get(object).map(|refusal| refusal.delay);
        if before.is_some() && !was_tried {
            return false;
        }
        let delay = before.map_or(first_retry, |delay| (delay * 2).min(LAST_RETRY));
        if before.is_none() {
            tracing::error!(%owner, reason, "The kernel refused it, so it denies");
        }
        let refusal = Refusal {
            owner,
            reason,
            delay,
            next: now + delay,
        };
        self.refused.insert(object.clone(), refusal);
        true
    }

    /// What was tried is in the kernel now.
    pub(crate) fn settle(&mut self) {
        for object in std::mem::take(&mut self.tried) {
            if let Some(refusal) = self.refused.remove(&object) {
                tracing::info!(owner = %refusal.owner, "The kernel accepts it again");
            }
        }
    }
}

/// The chains and sets that a batch writes.
fn objects(batch: &Batch) -> impl Iterator<Item = Object> {
    let chains = batch.chains.iter();
    let chains = chains.map(|chain| Object::Chain(ChainKey::of(chain)));
    let sets = batch.sets.iter().filter(|set| set.change != Members::Gone);
    chains.chain(sets.map(|set| Object::Set(Arc::clone(&set.name))))
}

fn looks_into(chain: &Chain, is_refused: &dyn Fn(&Object) -> bool) -> bool {
    let sets = chain.rules.iter().flat_map(sets_of);
    let mut sets = sets.map(|set| Object::Set(Arc::clone(set)));
    sets.any(|set| is_refused(&set))
}

fn sets_of(rule: &Rule) -> impl Iterator<Item = &Arc<str>> {
    rule.matches.iter().filter_map(|condition| match condition {
        Match::Set(_, set)
        | Match::NotSet(_, set)
        | Match::PortSet(_, set)
        | Match::NotPortSet(_, set) => Some(set),
        _ => None,
    })
}

//! Writes finalizers and conditions of tiers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tortie_api::Tier;
use tortie_api::meta::{Condition, Time};
use tortie_backoff::{Backoff, Retries};
use tortie_error::Causes;
use tortie_store::{Error, Kind, Resource, Result, Store};

use super::policies::{KINDS, Policies};
use crate::feed::{Feed, Notice, until};

/// Holds the deletion of a tier up.
pub(super) const FINALIZER: &str = "projectcalico.org/tier-controller";

const READY: &str = "Ready";

const PERIOD: Duration = Duration::from_mins(5);
const GATHER: Duration = Duration::from_millis(20);
/// Delays after failures.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(20),
    most: Duration::from_secs(30),
    jitter: 0.1,
};

pub(super) struct Controller {
    store: Arc<dyn Store>,
    tiers: BTreeMap<String, Tier>,
    policies: Policies,
    dirty: BTreeSet<String>,
}

impl Controller {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            tiers: BTreeMap::new(),
            policies: Policies::default(),
            dirty: BTreeSet::new(),
        }
    }

    pub(super) async fn run(mut self) {
        let mut kinds: Vec<Kind> = KINDS.iter().map(|(kind, _)| *kind).collect();
        kinds.push(Kind::Tier);
        let mut feed = Feed::start(&self.store, &kinds);
        let mut period = interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut due: Option<Instant> = None;
        let mut retries = Retries::new(RETRY);
        loop {
            tokio::select! {
                told = feed.next() => {
                    let Some(told) = told else { return };
                    self.take(told);
                    while let Some(told) = feed.try_next() {
                        self.take(told);
                    }
                }
                _ = period.tick() => self.dirty.extend(self.tiers.keys().cloned()),
                () = until(due) => {
                    due = None;
                    // Before all policies are known, a tier could look empty.
                    if !feed.is_in_sync() {
                        continue;
                    }
                    self.reconcile().await;
                    if self.dirty.is_empty() {
                        retries.reset();
                    } else {
                        due = Some(Instant::now() + retries.failed());
                    }
                    continue;
                }
            }
            if !self.dirty.is_empty() && due.is_none() {
                due = Some(Instant::now() + GATHER);
            }
        }
    }

    fn take(&mut self, told: Notice) {
        match told {
            Notice::Put(resource) => match *resource {
                Resource::Tier(tier) => {
                    self.dirty.insert(tier.metadata.name.clone());
                    self.tiers.insert(tier.metadata.name.clone(), *tier);
                }
                policy => self
                    .dirty
                    .extend(self.policies.set(&policy).map(String::from)),
            },
            Notice::Gone(key) if key.kind == Kind::Tier => {
                self.tiers.remove(&key.name);
            }
            Notice::Gone(key) => self
                .dirty
                .extend(self.policies.remove(&key).map(String::from)),
            Notice::InSync(_) => self.dirty.extend(self.tiers.keys().cloned()),
            Notice::Behind(_) => {}
        }
    }

    /// Looks at tiers where something changed. Those that fail stay marked.
    async fn reconcile(&mut self) {
        for name in std::mem::take(&mut self.dirty) {
            let Some(tier) = self.tiers.get(&name).cloned() else {
                continue;
            };
            match self.reconcile_tier(tier).await {
                Ok(None) => {}
                // Not to write the same again before the datastore tells of it.
                Ok(Some(tier)) => {
                    self.tiers.insert(name, tier);
                }
                // A newer state is on its way, and marks it again.
                Err(Error::Conflict(_) | Error::NotFound(_)) => {
                    self.dirty.insert(name);
                }
                Err(error) => {
                    tracing::warn!(tier = %name, error = %Causes(&error), "A tier could not be brought up to date");
                    self.dirty.insert(name);
                }
            }
        }
    }

    async fn reconcile_tier(&self, mut tier: Tier) -> Result<Option<Tier>> {
        let finalizers = &mut tier.metadata.finalizers;
        let has = finalizers.iter().any(|name| name == FINALIZER);
        if tier.metadata.deletion_timestamp.is_none() {
            if has {
                return Ok(None);
            }
            finalizers.push(FINALIZER.to_owned());
            return taken(self.store.update(tier.into()).await?);
        }
        if !has {
            return Ok(None);
        }
        if let Some(left) = self.policies.left_in(&tier.metadata.name) {
            let message = format!("Waiting for policies to be removed: {left}");
            if !set_terminating(&mut tier, message, Timestamp::now()) {
                return Ok(None);
            }
            return taken(self.store.update_status(tier.into()).await?);
        }
        finalizers.retain(|name| name != FINALIZER);
        match self.store.update(tier.into()).await {
            // With its last finalizer it is gone.
            Ok(_) | Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Notes why a tier is still there. Tells whether that changed anything.
pub(super) fn set_terminating(tier: &mut Tier, message: String, now: Timestamp) -> bool {
    let condition = Condition {
        last_transition_time: Some(Time(now)),
        message,
        observed_generation: None,
        reason: "Terminating".to_owned(),
        status: "False".to_owned(),
        r#type: READY.to_owned(),
    };
    let conditions = &mut tier.status.conditions;
    match conditions.iter_mut().find(|known| known.r#type == READY) {
        None => conditions.push(condition),
        Some(known)
            if known.status == condition.status
                && known.reason == condition.reason
                && known.message == condition.message =>
        {
            return false;
        }
        Some(known) => *known = condition,
    }
    true
}

fn taken(resource: Resource) -> Result<Option<Tier>> {
    match resource {
        Resource::Tier(tier) => Ok(Some(*tier)),
        other => Err(Error::message(format!("a tier became a {}", other.kind()))),
    }
}

//! Writes what should be said.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tortie_api::IpPool;
use tortie_backoff::{Backoff, Retries};
use tortie_error::Causes;
use tortie_ipam::Ipam;
use tortie_store::{Error, Kind, Query, Resource, Store, ipam_names};

use super::desired::{FINALIZER, Finalizer, finalizer, verdicts};
use crate::feed::{Feed, Notice, until};

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
    ipam: Ipam,
    pools: BTreeMap<String, IpPool>,
}

impl Controller {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            ipam: Ipam::new(Arc::clone(&store)),
            store,
            pools: BTreeMap::new(),
        }
    }

    pub(super) async fn run(mut self) {
        let mut feed = Feed::start(&self.store, &[Kind::IpPool, Kind::IpamBlock]);
        let mut period = interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut due: Option<Instant> = None;
        let mut retries = Retries::new(RETRY);
        loop {
            let is_changed = tokio::select! {
                told = feed.next() => {
                    let Some(told) = told else { return };
                    let mut is_changed = self.take(told);
                    while let Some(told) = feed.try_next() {
                        is_changed |= self.take(told);
                    }
                    is_changed
                }
                _ = period.tick() => true,
                () = until(due) => {
                    due = None;
                    if feed.is_in_sync() {
                        let is_done = self.reconcile().await;
                        if is_done {
                            retries.reset();
                        } else {
                            due = Some(Instant::now() + retries.failed());
                        }
                    }
                    false
                }
            };
            if is_changed && due.is_none() {
                due = Some(Instant::now() + GATHER);
            }
        }
    }

    /// Tells whether something is to be looked at.
    fn take(&mut self, told: Notice) -> bool {
        match told {
            Notice::Put(resource) => match *resource {
                Resource::IpPool(pool) => {
                    let name = pool.metadata.name.clone();
                    self.pools.insert(name, *pool);
                    true
                }
                _ => false,
            },
            Notice::Gone(key) => {
                if key.kind == Kind::IpPool {
                    self.pools.remove(&key.name);
                }
                true
            }
            Notice::InSync(_) => true,
            Notice::Behind(_) => false,
        }
    }

    /// Looks at all pools. One that fails does not hold up the others; tells whether none did.
    async fn reconcile(&mut self) -> bool {
        let verdicts = verdicts(self.pools.values());
        let mut is_done = true;
        for (name, mut pool) in self.pools.clone() {
            let verdict = verdicts.get(&name).copied();
            let changed = verdict.is_some_and(|verdict| verdict.note(&mut pool, Timestamp::now()));
            let written = async {
                if changed {
                    pool = taken(self.store.update_status(pool.into()).await?)?;
                }
                match finalizer(&pool, verdict) {
                    Finalizer::Leave => {}
                    Finalizer::Add => {
                        pool.metadata.finalizers.push(FINALIZER.to_owned());
                        pool = taken(self.store.update(pool.into()).await?)?;
                    }
                    Finalizer::Remove => pool = self.release(pool).await?,
                    Finalizer::Drain(net) => {
                        if self.drain(net).await? {
                            pool = self.release(pool).await?;
                        }
                    }
                }
                Ok::<IpPool, Box<dyn std::error::Error + Send + Sync>>(pool)
            };
            match written.await {
                // Not to write the same again before the datastore tells of it.
                Ok(pool) => {
                    self.pools.insert(name, pool);
                }
                Err(error) => {
                    is_done = false;
                    let is_race = error.downcast_ref().is_some_and(|error| {
                        matches!(error, Error::Conflict(_) | Error::NotFound(_))
                    });
                    if !is_race {
                        tracing::warn!(pool = %name, error = %Causes(&*error), "A pool could not be brought up to date");
                    }
                }
            }
        }
        is_done
    }

    async fn release(&self, mut pool: IpPool) -> Result<IpPool, Error> {
        pool.metadata.finalizers.retain(|name| name != FINALIZER);
        match self.store.update(pool.clone().into()).await {
            Ok(resource) => taken(resource),
            // With its last finalizer it is gone.
            Err(Error::NotFound(_)) => Ok(pool),
            Err(error) => Err(error),
        }
    }

    /// Gives up all claims in a network. Tells whether no block is left there.
    async fn drain(&self, net: IpNet) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
        self.ipam.release_pool_affinities(net).await?;
        let blocks = self.store.list(&Query::all(Kind::IpamBlock)).await?;
        let names = blocks.items.iter().map(|block| &block.metadata().name);
        let unreadable = blocks.invalid.iter().map(|invalid| &invalid.key.name);
        let mut nets = names
            .chain(unreadable)
            .filter_map(|name| ipam_names::to_net(name));
        Ok(!nets.any(|block| net.contains(&block.addr())))
    }
}

fn taken(resource: Resource) -> Result<IpPool, Error> {
    match resource {
        Resource::IpPool(pool) => Ok(*pool),
        other => Err(Error::message(format!("a pool became a {}", other.kind()))),
    }
}

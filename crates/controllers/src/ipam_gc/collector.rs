//! The loop around the decisions: takes in what changes, looks, confirms, and releases.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use ipnet::IpNet;
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tortie_backoff::{Backoff, Retries};
use tortie_error::Causes;
use tortie_ipam::{Ipam, ReleaseIp};
use tortie_operator::{Change, Object, Subscription};
use tortie_store::{Error as StoreError, Key, Kind, Resource, Store, ipam_names};

use super::allocation::Place;
use super::cluster::{Caches, Cluster};
use super::metrics::Metrics;
use super::release::{self, GivenUp, collect_cold, give_up, read};
use super::scan::{Grace, Lookup};
use super::state::State;
use crate::feed::{Feed, Notice, until};

/// What is followed in the datastore.
const KINDS: [Kind; 5] = [
    Kind::ClusterInformation,
    Kind::IpPool,
    Kind::IpReservation,
    Kind::IpamBlock,
    Kind::Node,
];

/// How long changes are gathered before they are looked at together.
const GATHER: Duration = Duration::from_millis(500);

/// Delays after failures.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(5),
    most: Duration::from_secs(30),
    jitter: 0.1,
};

/// How often everything is looked at if the grace period does not say.
const DEFAULT_PERIOD: Duration = Duration::from_mins(5);

/// How many addresses, and of how many blocks, are released at once.
const BATCH: usize = 10_000;
const BATCH_BLOCKS: usize = 32;

/// How many nodes are asked for, or cleaned up, at once.
const CONCURRENT_NODES: usize = 8;

/// How long freeing of addresses that have cooled down may take.
const COLD_BUDGET: Duration = Duration::from_secs(10);

/// Collects addresses that nobody uses.
pub(super) struct Collector {
    store: Arc<dyn Store>,
    ipam: Ipam,
    cluster: Cluster,
    grace: Grace,
    period: Duration,
    metrics: Metrics,
    state: State,
}

impl Collector {
    pub(super) fn new(
        store: Arc<dyn Store>,
        cluster: Cluster,
        grace: Option<Duration>,
        metrics: Metrics,
    ) -> Self {
        let period = grace.filter(|grace| !grace.is_zero());
        Self {
            ipam: Ipam::new(Arc::clone(&store)),
            store,
            cluster,
            grace: grace.map_or(Grace::Off, |grace| {
                Grace::For(grace.try_into().unwrap_or(jiff::SignedDuration::MAX))
            }),
            period: period.map_or(DEFAULT_PERIOD, |grace| grace / 2),
            metrics,
            state: State::new(),
        }
    }

    /// Collects until the future is dropped.
    pub(super) async fn run(mut self) {
        let mut feed = Feed::start(&self.store, &KINDS);
        self.cluster.pods.wait_synced().await;
        self.cluster.nodes.wait_synced().await;
        let mut pods = self.cluster.pods.subscribe();
        let mut nodes = self.cluster.nodes.subscribe();
        let mut period = interval(self.period.max(Duration::from_millis(1)));
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
                pod = deleted(&mut pods) => {
                    self.state.pod_deleted(pod.node());
                    true
                }
                _ = deleted(&mut nodes) => {
                    self.state.all_dirty = true;
                    true
                }
                _ = period.tick() => {
                    self.state.all_dirty = true;
                    true
                }
                () = until(due) => {
                    due = None;
                    if self.state.is_locked || !feed.is_in_sync() {
                        continue;
                    }
                    let is_done = self.collect().await;
                    self.metrics.set(self.state.readings());
                    if is_done {
                        retries.reset();
                    } else {
                        due = Some(Instant::now() + retries.failed());
                    }
                    false
                }
            };
            if is_changed && due.is_none() {
                due = Some(Instant::now() + GATHER);
            }
        }
    }

    /// Takes in what the datastore tells, and says whether that is worth a look. Nodes report all the time, and nearly
    /// always nothing that matters here.
    fn take(&mut self, told: Notice) -> bool {
        let state = &mut self.state;
        match told {
            Notice::Put(resource) => match *resource {
                Resource::IpamBlock(block) => state.set_block(*block),
                Resource::Node(node) => return state.set_node(&node),
                Resource::IpPool(pool) => state.pools.set(&pool),
                Resource::IpReservation(reservation) => state.pools.set_reservation(*reservation),
                Resource::ClusterInformation(information) => {
                    state.set_information(Some(&information));
                }
                _ => {}
            },
            Notice::Gone(key) => match key.kind {
                Kind::IpamBlock => {
                    if let Some(net) = ipam_names::to_net(&key.name) {
                        state.remove_block(net);
                    }
                }
                Kind::Node => state.remove_node(&key.name),
                Kind::IpPool => state.pools.remove(&key.name),
                Kind::IpReservation => state.pools.remove_reservation(&key.name),
                Kind::ClusterInformation => state.set_information(None),
                _ => {}
            },
            Notice::InSync(_) => {}
            Notice::Behind(_) => return false,
        }
        true
    }

    /// Looks at what changed and does what follows. A failure of one thing does not keep the others from being done; tells
    /// whether there was none.
    async fn collect(&mut self) -> bool {
        let nodes = self.state.nodes_to_check();
        let looked_up = self.look_up(&nodes).await;
        let is_known = !looked_up.values().any(|found| *found == Lookup::Unknown);
        let machines = if self.state.has_machines() {
            self.cluster.machines().await
        } else {
            None
        };
        let cluster = self.cluster.clone();
        let caches = Caches {
            cluster: &cluster,
            machines,
        };
        let now = Timestamp::now();
        let gone = self
            .state
            .scan(&nodes, &looked_up, &caches, self.grace, now);
        let is_released = self.release_leaks(&caches).await;
        let is_cold_done = self.collect_cold(now).await;
        self.release_unused_blocks(&caches, now).await;
        let is_cleaned = self.clean_up(gone).await;
        is_known && is_released && is_cold_done && is_cleaned
    }

    /// Asks the datastore for nodes that it has not told of: it may only be a little behind.
    async fn look_up(&self, nodes: &[Arc<str>]) -> HashMap<Arc<str>, Lookup> {
        let requests = self.state.unknown(nodes).into_iter().map(async |node| {
            let key = Key::global(Kind::Node, &*node);
            let found = match self.store.get(&key).await {
                Ok(Resource::Node(found)) => {
                    State::kubernetes_name(&found).map_or(Lookup::Foreign, Lookup::Kubernetes)
                }
                Ok(_) | Err(StoreError::NotFound(_)) => Lookup::Absent,
                Err(error) => {
                    tracing::warn!(%node, error = %Causes(&error), "A node cannot be looked up; trying again");
                    Lookup::Unknown
                }
            };
            (node, found)
        });
        stream::iter(requests)
            .buffer_unordered(CONCURRENT_NODES)
            .collect()
            .await
    }

    async fn release_leaks(&mut self, caches: &Caches<'_>) -> bool {
        if self.state.confirmed.is_empty() {
            return true;
        }
        let wanted = self.state.pods_to_confirm();
        let mut doubtful: HashSet<Place> = wanted.values().flatten().copied().collect();
        for (places, pod) in self.cluster.pods(wanted).await {
            self.state.confirm(&places, pod.as_ref());
            for place in &places {
                doubtful.remove(place);
            }
        }
        let leaks = self.state.releasable(caches, &doubtful);
        let mut is_done = doubtful.is_empty();
        for batch in batches(&leaks) {
            is_done &= self.release(batch).await;
        }
        is_done
    }

    async fn release(&mut self, places: &[Place]) -> bool {
        let requests: Vec<ReleaseIp> = places
            .iter()
            .filter_map(|place| Some(self.state.allocation(*place)?.release_of(place.1)))
            .collect();
        tracing::info!(
            number = requests.len(),
            "Releasing addresses that nobody uses"
        );
        let Err(error) = self.ipam.release(&requests).await else {
            self.note_released(places);
            return true;
        };
        let mut released: HashSet<_> = HashSet::new();
        if let Some(done) = error.released() {
            released.extend(done.released.iter().map(|request| request.address));
            released.extend(done.unallocated.iter().copied());
        }
        let (done, left): (Vec<Place>, Vec<Place>) = places
            .iter()
            .partition(|(_, address)| released.contains(address));
        self.note_released(&done);
        tracing::warn!(
            number = left.len(),
            error = %Causes(&error),
            "Addresses could not be released"
        );
        // What is remembered of their blocks may be wrong, and then no attempt would ever succeed.
        let nets: HashSet<IpNet> = left.iter().map(|(net, _)| *net).collect();
        for net in nets {
            match read(&self.store, net).await {
                Ok(Some(Resource::IpamBlock(block))) => self.state.set_block(*block),
                Ok(_) => self.state.remove_block(net),
                Err(_) => {}
            }
        }
        false
    }

    fn note_released(&mut self, places: &[Place]) {
        for place in places {
            self.metrics.reclaimed(&self.state, *place);
            self.state.forget(*place);
        }
    }

    async fn collect_cold(&mut self, now: Timestamp) -> bool {
        if self
            .state
            .blocks
            .values()
            .all(|block| block.cooling_since.is_none())
        {
            return true;
        }
        let work = async {
            let cooldown = match self.ipam.configuration().await {
                Ok(configuration) => configuration.ip_cooldown_seconds,
                Err(error) => return Err(error.to_string()),
            };
            for net in self.state.cold_blocks(cooldown, now) {
                let collected = collect_cold(&self.store, net, cooldown, now).await;
                collected.map_err(|error| error.to_string())?;
            }
            Ok(())
        };
        match timeout(COLD_BUDGET, work).await {
            Ok(Ok(())) => true,
            // The rest at the next look.
            Err(_) => false,
            Ok(Err(error)) => {
                tracing::warn!(error, "Addresses that have cooled down could not be freed");
                false
            }
        }
    }

    async fn release_unused_blocks(&mut self, caches: &Caches<'_>, now: Timestamp) {
        for (net, node) in self.state.unused_blocks(caches, self.grace, now) {
            match give_up(&self.store, &node, net).await {
                Ok(GivenUp::Yes) => {
                    tracing::info!(block = %net, %node, "Gave up an empty block of a node with others");
                    self.state.remove_block(net);
                }
                Ok(GivenUp::InUse) => {}
                Err(error) => {
                    tracing::warn!(block = %net, %node, error = %Causes(&error), "An empty block could not be given up");
                }
            }
        }
    }

    /// Takes all blocks from nodes that are gone. Each node on its own: one that fails is tried again later.
    async fn clean_up(&mut self, gone: Vec<Arc<str>>) -> bool {
        let state = &self.state;
        let work = gone.into_iter().map(async |node| {
            let blocks = state.blocks_of(&node);
            let cleaned = release::clean_up(&self.store, &self.ipam, &node, blocks).await;
            (node, cleaned)
        });
        let outcomes: Vec<_> = stream::iter(work)
            .buffer_unordered(CONCURRENT_NODES)
            .collect()
            .await;
        let mut is_done = true;
        for (node, cleaned) in outcomes {
            match cleaned {
                Ok(()) => {
                    tracing::info!(%node, "Gave up the blocks of a node that is gone");
                    self.state.dirty.remove(&node);
                    self.metrics.forget_node(&node);
                }
                Err(error) => {
                    is_done = false;
                    tracing::warn!(%node, error, "A node's blocks could not be given up; trying again");
                }
            }
        }
        is_done
    }
}

/// Waits for the next object that is deleted; for ever once the cache has ended.
async fn deleted<K: Object>(objects: &mut Subscription<K>) -> Arc<K> {
    while let Some(event) = objects.next().await {
        if let Change::Deleted(object) = event.change {
            return object;
        }
    }
    std::future::pending().await
}

/// Groups of places, sorted by block, with few enough addresses and blocks to be released at once.
fn batches(places: &[Place]) -> Vec<&[Place]> {
    let mut batches = Vec::new();
    let mut rest = places;
    while let Some((first, _)) = rest.split_first() {
        let (mut blocks, mut last) = (1, first.0);
        let end = rest.iter().take(BATCH).position(|(net, _)| {
            blocks += usize::from(*net != last);
            last = *net;
            blocks > BATCH_BLOCKS
        });
        let (batch, after) = rest.split_at(end.unwrap_or(rest.len().min(BATCH)));
        batches.push(batch);
        rest = after;
    }
    batches
}

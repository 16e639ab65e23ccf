//! Readings for Prometheus, under the names that Calico's controllers give them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipnet::IpNet;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::allocation::{Place, Suspicion};
use super::pools::NO_POOL;
use super::state::State;

/// Stands for the node of addresses that do not tell theirs.
const UNKNOWN_NODE: &str = "unknown_node";

/// Stands for the node of blocks that nobody owns.
const NO_OWNER: &str = "no_affinity";

/// By names that are shared with all who have them.
type ByNode = BTreeMap<Arc<str>, f64>;

/// What is told about one pool.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PoolFigures {
    pub(super) in_use: ByNode,
    pub(super) borrowed: ByNode,
    pub(super) blocks: ByNode,
    pub(super) candidates: ByNode,
    size: Option<f64>,
    reserved: Option<f64>,
}

/// What is told about everything.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Readings {
    pub(super) pools: BTreeMap<String, PoolFigures>,
    allocations: ByNode,
    borrowed: ByNode,
    blocks: ByNode,
}

/// The readings of the last look at everything, and how much was reclaimed so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Metrics {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    readings: Readings,
    /// By pool, then by node.
    reclaimed: BTreeMap<String, ByNode>,
}

impl State {
    pub(super) fn readings(&self) -> Readings {
        let mut readings = Readings::default();
        let [unknown, no_owner] = [UNKNOWN_NODE, NO_OWNER].map(Arc::<str>::from);
        let zeros = || -> ByNode {
            let nodes = self.nodes.keys();
            nodes.map(|node| (Arc::clone(node), 0.0)).collect()
        };
        for name in self.pools.names() {
            let pool = readings.pools.entry(name.to_owned()).or_default();
            if name != NO_POOL {
                // Explicit zeros, so that ratios have a value everywhere.
                pool.in_use = zeros();
                pool.borrowed = zeros();
                pool.candidates = zeros();
            }
        }
        for (net, block) in &self.blocks {
            let pool = readings.pools.entry(self.pools.of_block(*net).to_owned());
            let pool = pool.or_default();
            let owner = block.node.as_ref().unwrap_or(&no_owner);
            count(&mut pool.blocks, owner);
            count(&mut readings.blocks, owner);
            for (_, allocation) in block.allocations.iter() {
                let node = allocation.node.as_ref().unwrap_or(&unknown);
                count(&mut pool.in_use, node);
                if allocation.node.is_some() && allocation.node != block.node {
                    count(&mut pool.borrowed, node);
                    count(&mut readings.borrowed, node);
                }
                if allocation.suspicion != Suspicion::None {
                    count(&mut pool.candidates, node);
                }
            }
        }
        let reserved = self.pools.reserved();
        for (name, net) in self.pools.iter() {
            let pool = readings.pools.entry(name.to_owned()).or_default();
            pool.size = Some(size(net));
            pool.reserved = Some(lossy(reserved.count_in(net)));
        }
        for (node, number) in self.counts_by_node() {
            let number = lossy(number as u128);
            readings.allocations.insert(Arc::clone(node), number);
        }
        readings
    }
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn set(&self, readings: Readings) {
        let mut shared = self.lock();
        let pools: BTreeSet<&String> = readings.pools.keys().collect();
        shared
            .reclaimed
            .retain(|pool, _| pool == NO_POOL || pools.contains(pool));
        shared.readings = readings;
    }

    /// Notes that an address was taken back.
    pub(super) fn reclaimed(&self, state: &State, place: Place) {
        let node = state.allocation(place).and_then(|known| known.node.clone());
        let mut shared = self.lock();
        let pool = state.pools.of_block(place.0).to_owned();
        let nodes = shared.reclaimed.entry(pool).or_default();
        count(nodes, &node.unwrap_or_else(|| UNKNOWN_NODE.into()));
    }

    /// A node is gone; what was reclaimed of it is told no more.
    pub(super) fn forget_node(&self, node: &str) {
        for nodes in self.lock().reclaimed.values_mut() {
            nodes.remove(node);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let shared = self.lock();
        let mut text = Text { encoder };
        let pools = &shared.readings.pools;
        let by_pool = |get: fn(&PoolFigures) -> &ByNode| {
            pools.iter().map(move |(name, pool)| (name, get(pool)))
        };
        text.pools(
            "ipam_allocations_in_use",
            "Addresses that are given out",
            MetricType::Gauge,
            by_pool(|pool| &pool.in_use),
        )?;
        text.pools(
            "ipam_allocations_borrowed",
            "Addresses that are given out from a block of another node",
            MetricType::Gauge,
            by_pool(|pool| &pool.borrowed),
        )?;
        text.pools(
            "ipam_blocks",
            "Blocks of the pool",
            MetricType::Gauge,
            by_pool(|pool| &pool.blocks),
        )?;
        text.pools(
            "ipam_allocations_gc_candidates",
            "Addresses that nobody seems to use",
            MetricType::Gauge,
            by_pool(|pool| &pool.candidates),
        )?;
        text.pools(
            "ipam_allocations_gc_reclamations",
            "Addresses that were taken back because nobody used them",
            MetricType::Counter,
            shared.reclaimed.iter(),
        )?;
        let sizes = pools.iter().map(|(name, pool)| (name.as_str(), pool.size));
        text.one("ipam_ippool_size", "Addresses of the pool", "ippool", sizes)?;
        let reserved = pools
            .iter()
            .map(|(name, pool)| (name.as_str(), pool.reserved));
        let help = "Addresses of the pool that an IPReservation covers";
        text.one("ipam_ippool_reserved", help, "ippool", reserved)?;
        let Readings {
            allocations,
            borrowed,
            blocks,
            ..
        } = &shared.readings;
        for (name, help, values) in [
            (
                "ipam_allocations_per_node",
                "Addresses given out",
                allocations,
            ),
            (
                "ipam_allocations_borrowed_per_node",
                "Addresses given out from a block of another node",
                borrowed,
            ),
            ("ipam_blocks_per_node", "Blocks", blocks),
        ] {
            let values = values.iter().map(|(node, value)| (&**node, Some(*value)));
            text.one(name, help, "node", values)?;
        }
        Ok(())
    }
}

/// Writes families of values. Counters are written as gauges are: their names must not get another ending.
struct Text<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Text<'_> {
    fn pools<'b>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        pools: impl Iterator<Item = (&'b String, &'b ByNode)>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (pool, nodes) in pools {
            for (node, value) in nodes {
                let labels = [("ippool", pool.as_str()), ("node", &**node)];
                family.encode_family(&labels)?.encode_gauge(value)?;
            }
        }
        Ok(())
    }

    fn one<'b>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl Iterator<Item = (&'b str, Option<f64>)>,
    ) -> fmt::Result {
        let encoder = &mut self.encoder;
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (of, value) in values {
            if let Some(value) = value {
                family.encode_family(&[(label, of)])?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }
}

fn count(nodes: &mut ByNode, node: &Arc<str>) {
    *nodes.entry(Arc::clone(node)).or_default() += 1.0;
}

fn size(net: IpNet) -> f64 {
    let width = if net.addr().is_ipv4() { 32 } else { 128 };
    f64::from(width - i32::from(net.prefix_len())).exp2()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "readings need no more precision"
)]
fn lossy(number: u128) -> f64 {
    number as f64
}

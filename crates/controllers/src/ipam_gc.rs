//! Takes back addresses and blocks that nobody uses: of pods that are gone, of nodes that are gone, and blocks that a node
//! has too many of.
//!
//! ```text
//! datastore: blocks, nodes, pools ──feed──▶ State ──scan(now)──▶ leaks ──asked of the API server──▶ ipam: release
//! cluster: pods and nodes ──caches──────────┘  └────────▶ empty blocks, nodes that are gone ──▶ claims given up
//! ```
//!
//! # Invariants
//! - An address is released only if the API server itself says that no pod uses it, together with all others of its handle,
//!   and only the very allocation that was looked at: handle and sequence number are part of the write.
//! - What cannot be told counts as used.
//! - Nothing is done while the datastore is locked or what is known of it may be outdated.
//! - A failure for one node, block or address does not hold up the others.

mod allocation;
mod cached_node;
mod cluster;
mod collector;
mod metrics;
mod pod;
mod pools;
mod release;
mod scan;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use prometheus_client::registry::Registry;
use tortie_operator::Cache;
use tortie_store::Store;

pub use self::cached_node::CachedNode;

use self::cluster::Cluster;
use self::collector::Collector;
use self::metrics::Metrics;
use crate::pod::Pod;

/// What the collector is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long an address must look unused before it is released. Nothing: only those of nodes that are gone are. Zero:
    /// the same, but those that look unused are counted.
    pub leak_grace_period: Option<Duration>,
}

/// Collects until the future is dropped. The readings are there as soon as this returns.
pub fn collect(
    client: Client,
    pods: Cache<Pod>,
    nodes: Cache<CachedNode>,
    store: Arc<dyn Store>,
    settings: Settings,
    registry: &mut Registry,
) -> impl Future<Output = ()> + Send + use<> {
    let metrics = Metrics::default();
    registry.register_collector(Box::new(metrics.clone()));
    let cluster = Cluster {
        client,
        pods,
        nodes,
    };
    Collector::new(store, cluster, settings.leak_grace_period, metrics).run()
}

//! Pools, settings, reservations and labels of nodes, remembered for a short while.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use tortie_api::ipam_configuration::IpamConfigurationSpec;
use tortie_store::{Error as StoreError, Key, Kind, Query, Resource, Revision};

use super::{Ipam, MAX_AGE, Tick, locked};
use crate::config::{CONFIG_NAME, default_config};
use crate::error::Result;
use crate::pools::{self, Pool};
use crate::reservations::Reservations;

/// What decides which addresses may be given out.
#[derive(Debug)]
pub(super) struct World {
    pub(super) pools: Vec<Pool>,
    pub(super) config: IpamConfigurationSpec,
    config_revision: Option<Revision>,
    pub(super) reservations: Reservations,
    read_at: Timestamp,
    pub(super) tick: Tick,
}

pub(super) type Labels = BTreeMap<String, String>;

/// Labels of nodes, and when they were read.
pub(super) type Nodes = HashMap<String, (Arc<Labels>, Timestamp)>;

/// An object on whose state a decision rests.
pub(super) type Guard = (Key, Option<Revision>);

impl Ipam {
    /// What is known, or else read now.
    pub(super) async fn world(&self) -> Result<Arc<World>> {
        let now = self.now();
        if let Some(world) = &*locked(&self.shared.world)
            && is_young(world.read_at, now)
        {
            return Ok(Arc::clone(world));
        }
        let tick = self.tick();
        let config_key = Key::global(Kind::IpamConfiguration, CONFIG_NAME);
        let (pools, reservations) = (Query::all(Kind::IpPool), Query::all(Kind::IpReservation));
        let (pools, reservations, config) = futures::join!(
            self.store().list(&pools),
            self.store().list(&reservations),
            self.store().get(&config_key),
        );
        let (config, config_revision) = match config {
            Ok(Resource::IpamConfiguration(config)) => {
                let revision = Revision(config.metadata.resource_version.clone());
                (config.spec, Some(revision))
            }
            Ok(_) | Err(StoreError::NotFound(_)) => (default_config(), None),
            Err(error) => return Err(error.into()),
        };
        let pools = pools?
            .items
            .iter()
            .filter_map(|item| match item {
                Resource::IpPool(pool) => Pool::new(pool),
                _ => None,
            })
            .collect();
        let reservations = reservations?.items;
        let reservations = Reservations::new(reservations.iter().filter_map(|item| match item {
            Resource::IpReservation(reservation) => Some(&**reservation),
            _ => None,
        }));
        let world = Arc::new(World {
            pools,
            config,
            config_revision,
            reservations,
            read_at: now,
            tick,
        });
        *locked(&self.shared.world) = Some(Arc::clone(&world));
        Ok(world)
    }

    pub(super) fn forget_world(&self) {
        *locked(&self.shared.world) = None;
        locked(&self.shared.nodes).clear();
    }

    /// The labels of a node, which must exist.
    pub(super) async fn node_labels(&self, node: &str) -> Result<Arc<Labels>> {
        let now = self.now();
        if let Some((labels, read_at)) = locked(&self.shared.nodes).get(node)
            && is_young(*read_at, now)
        {
            return Ok(Arc::clone(labels));
        }
        let resource = self.store().get(&Key::global(Kind::Node, node)).await?;
        let labels = Arc::new(resource.metadata().labels.clone());
        let mut nodes = locked(&self.shared.nodes);
        nodes.retain(|_, (_, read_at)| is_young(*read_at, now));
        nodes.insert(node.to_owned(), (Arc::clone(&labels), now));
        Ok(labels)
    }
}

impl World {
    /// What must be unchanged for addresses of this block to be given out.
    pub(super) fn guards(&self, address: std::net::IpAddr) -> Vec<Guard> {
        let config = Key::global(Kind::IpamConfiguration, CONFIG_NAME);
        let pool = pools::enabled_containing(&self.pools, address).map(|pool| {
            let (key, revision) = pool.stamp();
            (key, Some(revision))
        });
        let config = (config, self.config_revision.clone());
        pool.into_iter().chain([config]).collect()
    }
}

pub(super) fn is_young(read_at: Timestamp, now: Timestamp) -> bool {
    let age = now.duration_since(read_at);
    !age.is_negative() && age < MAX_AGE
}

//! What a deletion needs, and what goes with an object: what was configured for a node, and what address management holds
//! for nodes and pools.

use std::sync::Arc;
use std::time::Duration;

use tortie_api::{IpPool, Kind, Resource, tier};
use tortie_ipam::Ipam;
use tortie_store::{Error, Key, Precondition, Query, Result, Revision};

use super::Client;

/// How long others may still give out addresses of a pool that was just disabled: they have read it before.
const SETTLE: Duration = Duration::from_millis(500);

const TIERED_POLICIES: [Kind; 4] = [
    Kind::NetworkPolicy,
    Kind::GlobalNetworkPolicy,
    Kind::StagedNetworkPolicy,
    Kind::StagedGlobalNetworkPolicy,
];

impl Client {
    /// Removes an object and before it, for nodes and pools, what belongs to it, so that nothing is left behind.
    pub async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        self.check_delete(key).await?;
        if !matches!(key.kind, Kind::Node | Kind::IpPool) {
            return self.store.delete(key, precondition).await;
        }
        // Boxed: few objects have so much with them.
        let precondition = Box::pin(self.release(key, precondition)).await?;
        self.store.delete(key, &precondition).await
    }

    /// Removes a node with what was configured for it, for callers who release its addresses by themselves, each when
    /// nobody has it any more.
    pub async fn delete_node_but_addresses(&self, key: &Key) -> Result<Resource> {
        self.check_delete(key).await?;
        self.delete_belongings_of_node(&key.name).await?;
        self.store.delete(key, &Precondition::default()).await
    }

    /// Whether [`Client::delete`] would be refused, because of other objects or by the datastore.
    pub async fn check_delete(&self, key: &Key) -> Result<()> {
        self.store.check_deletable(key)?;
        match key.kind {
            Kind::Tier => self.check_tier_is_unused(key).await,
            _ => Ok(()),
        }
    }

    /// Releases what belongs to a node or pool. Gives what must be true of it afterwards.
    async fn release(&self, key: &Key, precondition: &Precondition) -> Result<Precondition> {
        let current = self.get(key).await?;
        check(&current, precondition)?;
        let mut precondition = precondition.clone();
        if let Resource::IpPool(pool) = current {
            let disabled = self.release_pool(*pool).await?;
            // Others are held to the state that was asked for, our own change is not.
            precondition.revision = precondition.revision.and(Some(disabled));
        } else {
            let released = self.ipam().remove_host(&key.name).await;
            released.map_err(failed)?;
            self.delete_belongings_of_node(&key.name).await?;
        }
        Ok(precondition)
    }

    /// Gives up the blocks of a pool, after nobody takes any of them any more. Gives the pool's revision.
    async fn release_pool(&self, mut pool: IpPool) -> Result<Revision> {
        let cidr = pool.spec.cidr.parse();
        let mut revision = pool.metadata.resource_version.clone();
        if !pool.spec.disabled {
            pool.spec.disabled = true;
            let disabled = self.update(pool.into()).await?;
            disabled
                .metadata()
                .resource_version
                .clone_into(&mut revision);
            tokio::time::sleep(SETTLE).await;
        }
        if let Ok(cidr) = cidr {
            let released = self.ipam().release_pool_affinities(cidr).await;
            released.map_err(failed)?;
        }
        Ok(Revision(revision))
    }

    fn ipam(&self) -> Ipam {
        Ipam::new(Arc::clone(&self.store))
    }

    async fn check_tier_is_unused(&self, key: &Key) -> Result<()> {
        let unsupported = |reason| Error::Unsupported {
            operation: "delete",
            key: key.clone(),
            reason,
        };
        if tier::BUILT_IN.iter().any(|(name, ..)| *name == key.name) {
            return Err(unsupported(format!("Cannot delete {} tier", key.name)));
        }
        for kind in TIERED_POLICIES {
            let policies = self.store.list(&Query::all(kind)).await?.items;
            if let Some(policy) = policies
                .iter()
                .find(|policy| policy.tier() == Some(&key.name))
            {
                let reason = format!("Cannot delete a non-empty tier; {} is in it", policy.id());
                return Err(unsupported(reason));
            }
        }
        Ok(())
    }

    /// Removes what was configured for a node that goes away.
    async fn delete_belongings_of_node(&self, node: &str) -> Result<()> {
        for kind in [Kind::WorkloadEndpoint, Kind::HostEndpoint, Kind::BgpPeer] {
            for resource in self.store.list(&Query::all(kind)).await?.items {
                let owner = match &resource {
                    Resource::WorkloadEndpoint(endpoint) => &endpoint.spec.node,
                    Resource::HostEndpoint(endpoint) => &endpoint.spec.node,
                    Resource::BgpPeer(peer) => &peer.spec.node,
                    _ => continue,
                };
                if owner == node {
                    self.delete_if_there(&Key::of(&resource)).await?;
                }
            }
        }
        for kind in [Kind::FelixConfiguration, Kind::BgpConfiguration] {
            self.delete_if_there(&Key::global(kind, format!("node.{node}")))
                .await?;
        }
        Ok(())
    }

    async fn delete_if_there(&self, key: &Key) -> Result<()> {
        match self.store.delete(key, &Precondition::default()).await {
            Ok(_) | Err(Error::NotFound(_) | Error::Unsupported { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether an object is what is to be deleted: what it has is not released otherwise.
fn check(current: &Resource, precondition: &Precondition) -> Result<()> {
    let metadata = current.metadata();
    let Precondition { revision, uid } = precondition;
    let is_other = revision
        .as_ref()
        .is_some_and(|expected| expected.0 != metadata.resource_version)
        || uid
            .as_ref()
            .is_some_and(|expected| *expected != metadata.uid);
    if is_other {
        return Err(Error::Conflict(Key::of(current)));
    }
    Ok(())
}

fn failed(error: tortie_ipam::Error) -> Error {
    Error::other("its addresses could not be released", error)
}

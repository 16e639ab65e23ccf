//! Checks that look at other objects.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use tortie_api::validate::pools_overlap;
use tortie_api::{IpPool, Kind, Path, Problems, Resource, net};

use super::Client;
use tortie_store::{Error, Key, Query, Result};

/// How long a tier that was seen is taken to exist still. Even a fresh look could be outdated when the policy is
/// written, so a short memory loses nothing.
const TIER_MEMORY: Duration = Duration::from_secs(1);

impl Client {
    /// Checks references that only matter when an object is new.
    pub(super) async fn check_references_of_new(&self, resource: &Resource) -> Result<()> {
        self.check_tier(resource).await?;
        if let Resource::IpPool(pool) = resource {
            self.check_pool_is_free(resource, pool).await?;
        }
        self.check_references(resource).await
    }

    /// A policy that moves to a tier that is not there is refused. One that is left in such a tier can be changed
    /// otherwise, so that it can be put right.
    pub(super) async fn check_tier_of_changed(&self, resource: &Resource) -> Result<()> {
        match self.check_tier(resource).await {
            Err(error @ Error::Invalid { .. }) => match self.store.get(&Key::of(resource)).await {
                Ok(old) if old.tier() == resource.tier() => Ok(()),
                _ => Err(error),
            },
            checked => checked,
        }
    }

    async fn check_tier(&self, resource: &Resource) -> Result<()> {
        let Some(tier) = resource.tier() else {
            return Ok(());
        };
        let tier = if tier.is_empty() { "default" } else { tier };
        if self.tier_exists(tier).await? {
            return Ok(());
        }
        let rule = "there is no such tier; create it first";
        Err(invalid(resource, &["spec", "tier"], tier, rule))
    }

    async fn tier_exists(&self, tier: &str) -> Result<bool> {
        let seen = self
            .seen_tiers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(tier)
            .copied();
        if seen.is_some_and(|seen| seen.elapsed() < TIER_MEMORY) {
            return Ok(true);
        }
        let key = Key::global(Kind::Tier, tier);
        if self.assumed.contains(&key) {
            return Ok(true);
        }
        match self.store.get(&key).await {
            Err(Error::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
            Ok(_) => {
                let mut seen = self
                    .seen_tiers
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                seen.insert(tier.to_owned(), Instant::now());
                Ok(true)
            }
        }
    }

    /// Checks references that must hold after every write.
    pub(super) async fn check_references(&self, resource: &Resource) -> Result<()> {
        let Resource::BgpPeer(peer) = resource else {
            return Ok(());
        };
        for filter in &peer.spec.filters {
            let key = Key::global(Kind::BgpFilter, filter);
            if self.assumed.contains(&key) {
                continue;
            }
            match self.store.get(&key).await {
                Err(Error::NotFound(_)) => {
                    let rule = "there is no such BGPFilter; create it first";
                    return Err(invalid(resource, &["spec", "filters"], filter, rule));
                }
                other => other.map(drop)?,
            }
        }
        Ok(())
    }

    /// A new pool may overlap neither other pools nor blocks of another size.
    async fn check_pool_is_free(&self, resource: &Resource, pool: &IpPool) -> Result<()> {
        for other in self.store.list(&Query::all(Kind::IpPool)).await?.items {
            if let Resource::IpPool(other) = &other
                && other.metadata.name != pool.metadata.name
                && pools_overlap(pool, other)
            {
                let rule = format!(
                    "overlaps {} of IPPool {}",
                    other.spec.cidr, other.metadata.name
                );
                return Err(invalid(resource, &["spec", "cidr"], &pool.spec.cidr, &rule));
            }
        }
        let Some(network) = net::parse_cidr_or_ip(&pool.spec.cidr).map(net::Cidr::network) else {
            return Ok(());
        };
        for block in self.store.list(&Query::all(Kind::IpamBlock)).await?.items {
            if let Resource::IpamBlock(block) = &block
                && let Some(cidr) = net::parse_cidr_or_ip(&block.spec.cidr)
                && network.contains(&cidr.ip())
                && i64::from(cidr.prefix()) != pool.spec.block_size
            {
                let size = pool.spec.block_size.to_string();
                let rule = format!(
                    "differs from the block {} that is in use already",
                    block.spec.cidr
                );
                return Err(invalid(resource, &["spec", "blockSize"], &size, &rule));
            }
        }
        Ok(())
    }
}

fn invalid(resource: &Resource, field: &[&'static str; 2], value: &str, rule: &str) -> Error {
    let mut problems = Problems::default();
    let root = Path::ROOT;
    let at = root.field(field[0]);
    problems.add(&at.field(field[1]), value, rule);
    Error::Invalid {
        key: Key::of(resource),
        problems,
    }
}

//! Cutting a pool into smaller ones.

use ipnet::IpNet;
use tortie_api::IpPool;
use tortie_api::meta::Metadata;
use tortie_store::{Error as StoreError, Key, Kind, Precondition, Resource};

use super::Ipam;
use crate::error::{Error, Result};
use crate::pools::Pool;

/// A pool and what it became.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitPool {
    /// The pool that was split; it is gone.
    pub old: IpPool,
    /// The pools in its place, in order of their addresses.
    pub new: Vec<IpPool>,
}

/// The pools that together have the addresses of one, with the same settings.
pub fn split_pool(pool: &IpPool, count: u32) -> Result<Vec<IpPool>> {
    if count < 2 || !count.is_power_of_two() {
        return Err(Error::Refused(format!(
            "number to split CIDR into is not a valid power of 2: {count}"
        )));
    }
    let name = &pool.metadata.name;
    let Some(read) = Pool::new(pool) else {
        let cidr = &pool.spec.cidr;
        return Err(Error::Refused(format!(
            "pool {name} has no network: {cidr}"
        )));
    };
    let prefix = u32::from(read.net.prefix_len()) + count.trailing_zeros();
    let prefix = u8::try_from(prefix)
        .ok()
        .filter(|prefix| *prefix <= read.block_size);
    let subnets = prefix.and_then(|prefix| read.net.subnets(prefix).ok());
    let subnets: Vec<IpNet> = subnets
        .ok_or_else(|| {
            let size = read.block_size;
            Error::Refused(format!(
                "pool {name} cannot be split into {count}: the parts would be smaller than its blocks of /{size}"
            ))
        })?
        .collect();
    let parts = (0..).zip(subnets).map(|(index, net): (u32, IpNet)| {
        let mut part = pool.clone();
        part.metadata = Metadata {
            name: format!("split-{name}-{index}"),
            labels: pool.metadata.labels.clone(),
            annotations: pool.metadata.annotations.clone(),
            ..Metadata::default()
        };
        part.spec.cidr = net.to_string();
        part.spec.block_size = read.block_size.into();
        part.status = tortie_api::ip_pool::IpPoolStatus::default();
        part
    });
    Ok(parts.collect())
}

impl Ipam {
    /// Splits a pool. Blocks and addresses stay as they are. The datastore is to be locked meanwhile: between the steps
    /// the old pool is disabled, and the new ones are not all there. Can be repeated after a failure.
    pub async fn split(&self, pool: &str, count: u32) -> Result<SplitPool> {
        let key = Key::global(Kind::IpPool, pool);
        let found = self.store().get(&key).await?;
        let Resource::IpPool(old) = found else {
            return Err(StoreError::NotFound(key).into());
        };
        let mut old = *old;
        let mut template = old.clone();
        // Enabled as it was before a try that failed half-way.
        let was_enabled = template.metadata.annotations.remove(WAS_ENABLED).is_some();
        template.spec.disabled &= !was_enabled;
        let parts = split_pool(&template, count)?;
        if !old.spec.disabled {
            let annotations = &mut old.metadata.annotations;
            annotations.insert(WAS_ENABLED.to_owned(), "true".to_owned());
            old.spec.disabled = true;
            if let Resource::IpPool(disabled) = self.store().update(old.into()).await? {
                old = *disabled;
            } else {
                return Err(StoreError::NotFound(key).into());
            }
        }
        let mut new = Vec::new();
        for part in parts {
            let part_key = Key::global(Kind::IpPool, &part.metadata.name);
            let created = match self.store().create(part.into()).await {
                Err(StoreError::AlreadyExists(_)) => self.store().get(&part_key).await,
                result => result,
            };
            if let Resource::IpPool(created) = created? {
                new.push(*created);
            }
        }
        self.store().delete(&key, &Precondition::default()).await?;
        self.forget_world();
        Ok(SplitPool { old, new })
    }
}

/// Marks a pool that a split disabled.
const WAS_ENABLED: &str = "tortie.io/split-was-enabled";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_split_into_equal_parts_no_smaller_than_its_blocks() {
        let mut pool = IpPool::default();
        "p".clone_into(&mut pool.metadata.name);
        "10.0.0.0/24".clone_into(&mut pool.spec.cidr);
        pool.spec.nat_outgoing = true;
        let parts = split_pool(&pool, 4).unwrap();
        let nets: Vec<&str> = parts.iter().map(|part| part.spec.cidr.as_str()).collect();
        assert_eq!(
            nets,
            [
                "10.0.0.0/26",
                "10.0.0.64/26",
                "10.0.0.128/26",
                "10.0.0.192/26"
            ]
        );
        assert!(
            parts
                .iter()
                .all(|part| part.spec.nat_outgoing && part.spec.block_size == 26)
        );
        assert_eq!(parts[3].metadata.name, "split-p-3");
        for count in [0, 1, 3] {
            let error = split_pool(&pool, count).unwrap_err().to_string();
            assert!(
                error.contains(&format!("not a valid power of 2: {count}")),
                "{error}"
            );
        }
        assert!(split_pool(&pool, 8).is_err());
    }
}

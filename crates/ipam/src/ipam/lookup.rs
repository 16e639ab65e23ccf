//! Who has what.

use std::net::IpAddr;

use futures::future::try_join_all;
use tortie_store::{Kind, Query};

use super::Ipam;
use crate::block::Block;
use crate::block::sanitize;
use crate::error::{Error, Result};
use crate::handle;
use crate::pools;
use crate::report::Loaded;
use crate::request::Holder;

impl Ipam {
    /// The addresses of a handle.
    pub async fn ips_by_handle(&self, id: &str) -> Result<Vec<IpAddr>> {
        let id = sanitize(id);
        let handle = self.read_handle(id).await?;
        let handle = handle.ok_or_else(|| Error::NoHandle(id.to_owned()))?;
        let reads = handle::blocks(&handle).into_iter();
        let blocks = try_join_all(reads.map(|net| self.read_block(net))).await?;
        let found = blocks.into_iter().flatten();
        Ok(found.flat_map(|copy| copy.block.addresses_of(id)).collect())
    }

    /// Who has an address.
    pub async fn assignment(&self, address: IpAddr) -> Result<Holder> {
        let world = self.world().await?;
        let pool = pools::containing(&world.pools, address);
        if let Some(net) = pool.and_then(|pool| pool.block_of(address))
            && let Some(copy) = self.read_block(net).await?
        {
            let mut block = Block::clone(&copy.block);
            block.collect(world.config.ip_cooldown_seconds, self.now());
            return block.holder(address);
        }
        let mut blocks = None;
        let net = self.block_by_search(address, &mut blocks).await?;
        let found = net.and_then(|net| blocks?.remove(&net)?);
        match found {
            Some(copy) => copy.block.holder(address),
            None => Err(Error::Unassigned(address)),
        }
    }

    /// Everything there is, for a report.
    pub async fn load(&self) -> Result<Loaded> {
        let queries = [
            Kind::IpPool,
            Kind::IpamBlock,
            Kind::IpamHandle,
            Kind::BlockAffinity,
        ]
        .map(Query::all);
        let lists = try_join_all(queries.iter().map(|query| self.store().list(query))).await?;
        let mut loaded = Loaded::default();
        for list in lists {
            loaded.add(list);
        }
        Ok(loaded)
    }
}

//! A block for a host before any of its workloads asks for an address.

use ipnet::IpNet;

use super::affine_blocks::affine_blocks;
use super::claim::{Probes, Usable};
use super::search::Search;
use super::{Ipam, MAX_TRIES};
use crate::error::{Error, Result};
use crate::pools;
use crate::request::{AutoAssign, EnsureBlock};

impl Ipam {
    /// Sees to it that a host has a block of each IP version for which the request reserves addresses. Gives them, IPv4
    /// first.
    pub async fn ensure_block(
        &self,
        request: &EnsureBlock,
    ) -> Result<(Option<IpNet>, Option<IpNet>)> {
        let assign = AutoAssign {
            pools4: request.pools4.clone(),
            pools6: request.pools6.clone(),
            reserved4: request.reserved4.clone(),
            reserved6: request.reserved6.clone(),
            ..AutoAssign::on(&request.host)
        };
        let v4 = match &assign.reserved4 {
            Some(_) => Some(self.ensure_version(&assign, 4).await?),
            None => None,
        };
        let v6 = match &assign.reserved6 {
            Some(_) => Some(self.ensure_version(&assign, 6).await?),
            None => None,
        };
        Ok((v4, v6))
    }

    async fn ensure_version(&self, request: &AutoAssign, version: u8) -> Result<IpNet> {
        let search = Search::new(request, version, 0, self.tick());
        let (owner, reserved) = (&search.owner, search.reserved);
        let (world, labels, affine) = futures::try_join!(
            self.world(),
            self.node_labels(&request.host),
            self.affine(owner, search.since),
        )?;
        let selected = pools::select(&world.pools, &search.pool_request(&labels)?)?;
        self.give_up_unselected(owner, &affine, &world, &selected.selecting, &labels)
            .await?;
        for net in affine_blocks(&affine, version, &selected.usable) {
            if !world.reservations.covers(net) && self.claim(owner, net, reserved).await? {
                return Ok(net);
            }
        }
        if !world.config.auto_allocate_blocks {
            return Err(Error::NoBlock);
        }
        let host = self.host(owner);
        let _claiming = host.claiming.lock().await;
        let mut probes = Probes::new();
        for _ in 0..MAX_TRIES {
            let found = self
                .find_usable_block(owner, &selected.usable, &world, &mut probes)
                .await?;
            let (Usable::New(net) | Usable::Own(net)) = found.ok_or(Error::NoFreeBlocks)?;
            if self.claim(owner, net, reserved).await? {
                return Ok(net);
            }
        }
        Err(Error::TooMuchContention)
    }
}

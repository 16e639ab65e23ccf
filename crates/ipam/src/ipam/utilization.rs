//! How full pools and blocks are.

use ipnet::IpNet;

use super::Ipam;
use crate::block::Block;
use crate::error::Result;
use crate::nets;
use crate::reservations::Reservations;

/// How full a pool is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolUtilization {
    /// Its name; [`PoolUtilization::ORPHANED`] for blocks that are in no pool.
    pub name: String,
    /// Its addresses.
    pub net: IpNet,
    /// How many addresses it has.
    pub capacity: u128,
    /// How many are held or cool down.
    pub in_use: u128,
    /// How many are reserved, whether or not they are held.
    pub reserved: u128,
    /// How many could be given out, whether or not they are in a block yet.
    pub available: u128,
    pub blocks: Vec<BlockUtilization>,
}

/// How full a block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockUtilization {
    /// Its addresses.
    pub net: IpNet,
    /// How many addresses it has.
    pub capacity: u128,
    /// How many are held or cool down.
    pub in_use: u128,
    /// How many are reserved, whether or not they are held.
    pub reserved: u128,
    /// How many could be given out.
    pub available: u128,
}

impl PoolUtilization {
    /// The name under which blocks without a pool are listed. Their sums are not drawn.
    pub const ORPHANED: &str = "orphaned allocation blocks";
}

impl Ipam {
    /// How full pools are: those with these names or networks, or all and what is outside of them.
    pub async fn utilization(&self, pools: &[String]) -> Result<Vec<PoolUtilization>> {
        self.forget_world();
        let (world, blocks) = futures::try_join!(self.world(), self.list_blocks())?;
        let empty = |name: &str, net| PoolUtilization {
            name: name.to_owned(),
            net,
            capacity: 0,
            in_use: 0,
            reserved: 0,
            available: 0,
            blocks: Vec::new(),
        };
        let is_wanted = |name: &str, net: IpNet| {
            pools.is_empty()
                || pools
                    .iter()
                    .any(|pool| pool == name || *pool == net.to_string())
        };
        let mut usage: Vec<PoolUtilization> = world
            .pools
            .iter()
            .filter(|pool| is_wanted(&pool.name, pool.net))
            .map(|pool| empty(&pool.name, pool.net))
            .collect();
        let mut orphaned = empty(PoolUtilization::ORPHANED, IpNet::default());
        for copy in blocks.into_values().flatten() {
            let net = copy.block.net();
            let used = of_block(&copy.block, &world.reservations);
            let overlaps = |pool: IpNet| pool.contains(&net) || net.contains(&pool);
            match usage.iter_mut().find(|pool| overlaps(pool.net)) {
                Some(pool) => pool.blocks.push(used),
                None => orphaned.blocks.push(used),
            }
        }
        for pool in &mut usage {
            pool.sum_up(&world.reservations);
        }
        if pools.is_empty() {
            usage.push(orphaned);
        }
        Ok(usage)
    }
}

impl PoolUtilization {
    fn sum_up(&mut self, reservations: &Reservations) {
        let sum =
            |value: fn(&BlockUtilization) -> u128| self.blocks.iter().map(value).sum::<u128>();
        let in_blocks = sum(|block| block.capacity);
        let reserved_in_blocks = sum(|block| block.reserved);
        self.capacity = nets::size(self.net);
        self.in_use = sum(|block| block.in_use);
        self.reserved = reservations.count_in(self.net);
        let outside = self.capacity.saturating_sub(in_blocks);
        let reserved_outside = self.reserved.saturating_sub(reserved_in_blocks);
        self.available = sum(|block| block.available) + outside.saturating_sub(reserved_outside);
    }
}

fn of_block(block: &Block, reservations: &Reservations) -> BlockUtilization {
    BlockUtilization {
        net: block.net(),
        capacity: block.size() as u128,
        in_use: block.in_use() as u128,
        reserved: reservations.count_in(block.net()),
        available: block.free(reservations) as u128,
    }
}

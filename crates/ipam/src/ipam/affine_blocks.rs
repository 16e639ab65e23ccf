//! What is known of the blocks that an owner has, and which of them it gives up.

use std::sync::Arc;

use ipnet::IpNet;
use tortie_store::{Key, Revision};

use super::affinities::{Affine, Conditions};
use super::copies::{BlockCopy, block_key};
use super::slots::Slot;
use super::world::{Labels, World};
use super::{Ipam, Tick};
use crate::error::{Error, Result};
use crate::pools::{self, Pool};
use crate::request::Owner;

impl Ipam {
    /// Reads blocks of which nothing is known, all at once.
    pub(super) async fn prefetch(&self, slots: &[Arc<Slot>]) {
        if slots.len() < 2 {
            return;
        }
        // Whoever holds one reads it anyway.
        let free = slots.iter().filter_map(|slot| {
            let copy = slot.copy.try_lock().ok()?;
            copy.is_none().then_some((slot.net, copy))
        });
        let (unknown, copies): (Vec<_>, Vec<_>) = free.unzip();
        if unknown.is_empty() {
            return;
        }
        // Whoever needs one that could not be read will meet the failure again.
        if let Ok(found) = self.read_blocks(&unknown).await {
            for (mut copy, found) in copies.into_iter().zip(found) {
                *copy = found.ok().flatten();
            }
        }
    }

    /// Finds out which of the blocks that are remembered are still as they were. The others are forgotten.
    pub(super) async fn confirm(&self, blocks: &[IpNet], since: Tick) -> Result<()> {
        let remembered = self.slots(blocks).into_iter().filter_map(|slot| {
            let revision = {
                let copy = slot.copy.try_lock().ok()?;
                let copy = copy.as_ref().filter(|copy| copy.tick <= since)?;
                copy.revision()
            };
            Some((slot, revision))
        });
        let remembered: Vec<(Arc<Slot>, Revision)> = remembered.collect();
        if remembered.is_empty() {
            return Ok(());
        }
        let keys = remembered.iter().map(|(slot, _)| block_key(slot.net));
        let keys: Vec<Key> = keys.collect();
        let tick = self.tick();
        let found = self.store().revisions(&keys).await?;
        for ((slot, before), found) in remembered.iter().zip(found) {
            // Whoever holds it learns more.
            let Ok(mut copy) = slot.copy.try_lock() else {
                continue;
            };
            let Some(known) = copy.as_mut().filter(|copy| copy.revision() == *before) else {
                continue;
            };
            if found.as_ref() == Some(before) {
                known.tick = known.tick.max(tick);
            } else {
                *copy = None;
            }
        }
        Ok(())
    }

    /// Whether a block has nothing to give, for all that is known.
    pub(super) fn is_known_full(
        &self,
        slot: &Slot,
        world: &World,
        since: Tick,
        is_thorough: bool,
    ) -> bool {
        let Ok(copy) = slot.copy.try_lock() else {
            return false;
        };
        copy.as_ref().is_some_and(|copy| {
            let is_new_enough = !is_thorough || copy.tick > since;
            is_new_enough && !self.has_free(copy, world)
        })
    }

    /// Whether a block has an address to give. Most that are full have none that cools down, which is known beforehand.
    fn has_free(&self, copy: &BlockCopy, world: &World) -> bool {
        if !copy.has_cooling {
            return copy.block.free(&world.reservations) > 0;
        }
        let cooldown = world.config.ip_cooldown_seconds;
        let block = &copy.block;
        block.has_free(cooldown, self.now(), &world.reservations)
    }

    /// Gives up empty blocks of pools that no longer select the node.
    pub(super) async fn give_up_unselected(
        &self,
        owner: &Owner,
        affine: &Affine,
        world: &World,
        selecting: &[&Pool],
        labels: &Labels,
    ) -> Result<()> {
        for net in &affine.nets {
            if selecting.iter().any(|pool| pool.net.contains(&net.addr())) {
                continue;
            }
            let pool = pools::enabled_containing(&world.pools, net.addr());
            if pool.is_none_or(|pool| pool.selects_node(labels).unwrap_or(true)) {
                continue;
            }
            self.give_up_if_empty(owner, *net).await?;
        }
        Ok(())
    }

    pub(super) async fn give_up_if_empty(&self, owner: &Owner, net: IpNet) -> Result<()> {
        let conditions = Conditions {
            must_be_empty: true,
            ..Conditions::default()
        };
        match self.give_up(owner, net, conditions).await {
            Ok(_) | Err(Error::BlockNotEmpty(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The blocks of one IP version that are in these pools.
pub(super) fn affine_blocks(affine: &Affine, version: u8, usable: &[&Pool]) -> Vec<IpNet> {
    let own = affine.of_version(version);
    own.filter(|net| usable.iter().any(|pool| pool.net.contains(&net.addr())))
        .collect()
}

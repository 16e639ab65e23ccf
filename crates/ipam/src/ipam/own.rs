//! What is known of the blocks that an owner has.

use std::sync::Arc;

use ipnet::IpNet;
use tortie_store::{Key, Revision};

use super::affinities::Affine;
use super::copies::block_key;
use super::slots::Slot;
use super::world::World;
use super::{Ipam, Tick};
use crate::error::Result;
use crate::pools::Pool;

impl Ipam {
    /// Reads blocks of which nothing is known, all at once.
    pub(super) async fn prefetch(&self, blocks: &[IpNet]) {
        if blocks.len() < 2 {
            return;
        }
        let slots: Vec<Arc<Slot>> = blocks.iter().map(|net| self.slot(*net)).collect();
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
        let remembered = blocks.iter().filter_map(|net| {
            let slot = self.slot(*net);
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
        net: IpNet,
        world: &World,
        since: Tick,
        is_thorough: bool,
    ) -> bool {
        let slot = self.slot(net);
        let Ok(copy) = slot.copy.try_lock() else {
            return false;
        };
        copy.as_ref().is_some_and(|copy| {
            let is_new_enough = !is_thorough || copy.tick > since;
            let cooldown = world.config.ip_cooldown_seconds;
            is_new_enough
                && !copy
                    .block
                    .has_free(cooldown, self.now(), &world.reservations)
        })
    }
}

/// The blocks of one IP version that are in these pools.
pub(super) fn own_blocks(affine: &Affine, version: u8, usable: &[&Pool]) -> Vec<IpNet> {
    let own = affine.of_version(version);
    own.filter(|net| usable.iter().any(|pool| pool.net.contains(&net.addr())))
        .collect()
}

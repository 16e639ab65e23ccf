//! How a host comes by a block: which one, and the steps of the claim.

use std::collections::{BTreeMap, HashMap};

use ipnet::IpNet;
use jiff::SignedDuration;
use tortie_api::BlockAffinity;
use tortie_api::block_affinity::BlockAffinityState;
use tortie_error::Causes;
use tortie_store::{Error as StoreError, Kind, Query, Resource, Write};

use super::affinities::{Conditions, GivenUp, is_settled, new_affinity};
use super::commit::{is_refused_together, lost_race, unexpected_answer};
use super::copies::BlockCopy;
use super::world::World;
use super::{Ipam, MAX_TRIES};
use crate::block::Block;
use crate::error::{Error, Result};
use crate::pools::Pool;
use crate::request::{HostReserved, Owner};
use crate::walk::Walk;

/// How many blocks are looked at, step by step, before all are listed. Mostly the first one is free.
const PROBES: [usize; 5] = [8, 56, 128, 128, 192];

/// A block that was claimed within this time is not taken away although it is empty: its owner is about to use it.
const MIN_RECLAIM_AGE: SignedDuration = SignedDuration::from_secs(60);

/// Blocks as they were listed. A block that cannot be read is there all the same.
pub(super) type AllBlocks = BTreeMap<IpNet, Option<BlockCopy>>;

/// What was found of blocks that may be free. It may be outdated, which the claim of one shows.
pub(super) type Probes = HashMap<IpNet, Probe>;

/// What was found of one block.
pub(super) enum Probe {
    Absent,
    There(Box<BlockCopy>),
    Unreadable,
}

/// A block that an owner can use.
pub(super) enum Usable {
    /// There seems to be no such block yet.
    New(IpNet),
    /// It is the owner's already.
    Own(IpNet),
}

impl Ipam {
    /// Claims a block, and makes it if it is not there. Tells whether it is the owner's now.
    pub(super) async fn claim(
        &self,
        owner: &Owner,
        net: IpNet,
        reserved: Option<&HostReserved>,
    ) -> Result<bool> {
        let slot = self.slot(net);
        let mut copy = slot.copy.lock().await;
        *copy = None;
        // Most blocks that are claimed are new.
        let mut found = (None, None);
        for _ in 0..MAX_TRIES {
            match self.try_claim(owner, net, reserved, found).await {
                Ok(block) => {
                    self.note_affinity(owner, net, block.is_some());
                    *copy = block;
                    return Ok(copy.is_some());
                }
                Err(error) if lost_race(&error) => {}
                Err(error) if is_refused_together(&error) => self.cannot_write_together(),
                Err(error) => return Err(error),
            }
            found = futures::try_join!(self.read_affinity(owner, net), self.read_block(net))?;
        }
        Err(Error::TooMuchContention)
    }

    /// Takes the steps that are left, given what is there. None if the block is another's.
    async fn try_claim(
        &self,
        owner: &Owner,
        net: IpNet,
        reserved: Option<&HostReserved>,
        found: (Option<BlockAffinity>, Option<BlockCopy>),
    ) -> Result<Option<BlockCopy>> {
        match found {
            (affinity, Some(base)) if !base.block.is_of(owner) => {
                if let Some(affinity) = affinity {
                    self.delete_object(&affinity.into()).await?;
                }
                Ok(None)
            }
            (Some(affinity), Some(base)) if is_settled(affinity.spec.state) => Ok(Some(base)),
            (affinity, base) => {
                let write = match base {
                    None => {
                        let block = Block::new(net, owner, self.now(), reserved);
                        Write::Create(BlockCopy::unwritten(block, self.tick()).resource())
                    }
                    // Whoever is about to delete the block finds it changed.
                    Some(base) => {
                        let mut block = Block::clone(&base.block);
                        block.bump();
                        Write::Update(base.resource_with(block))
                    }
                };
                self.write_claim(owner, net, affinity, write)
                    .await
                    .map(Some)
            }
        }
    }

    async fn write_claim(
        &self,
        owner: &Owner,
        net: IpNet,
        affinity: Option<BlockAffinity>,
        block: Write,
    ) -> Result<BlockCopy> {
        let tick = self.tick();
        let answer = if self.writes_together() {
            let affinity = match affinity {
                None => {
                    Write::Create(new_affinity(owner, net, BlockAffinityState::Confirmed).into())
                }
                Some(mut affinity) => {
                    affinity.spec.state = BlockAffinityState::Confirmed;
                    Write::Update(affinity.into())
                }
            };
            let answers = self.store().write_together(vec![affinity, block]).await?;
            answers.into_iter().last()
        } else {
            let pending = match affinity {
                None => {
                    let pending = new_affinity(owner, net, BlockAffinityState::Pending);
                    match self.store().create(pending.clone().into()).await? {
                        Resource::BlockAffinity(created) => *created,
                        _ => pending,
                    }
                }
                Some(affinity) => {
                    self.set_state(affinity, BlockAffinityState::Pending)
                        .await?
                }
            };
            let answer = match block {
                Write::Create(block) => self.store().create(block).await?,
                Write::Update(block) => self.store().update(block).await?,
                Write::Delete(other) => other,
                Write::Unchanged(key, _) => return Err(StoreError::NotFound(key).into()),
            };
            self.set_state(pending, BlockAffinityState::Confirmed)
                .await?;
            Some(answer)
        };
        match answer {
            Some(Resource::IpamBlock(object)) => BlockCopy::new(*object, tick),
            _ => Err(unexpected_answer().into()),
        }
    }

    /// Looks at the blocks that an owner would try first, beside those that it has.
    pub(super) async fn first_probes(
        &self,
        owner: &Owner,
        pools: &[&Pool],
        world: &World,
        own: &[IpNet],
    ) -> Result<Probes> {
        let walk = self.walk(owner, pools, world);
        let nets: Vec<IpNet> = walk
            .filter(|net| !own.contains(net))
            .take(PROBES[0])
            .collect();
        let mut probes = Probes::new();
        self.probe(&nets, &mut probes).await?;
        Ok(probes)
    }

    async fn probe(&self, nets: &[IpNet], probes: &mut Probes) -> Result<()> {
        if nets.is_empty() {
            return Ok(());
        }
        let found = self.read_blocks(nets).await?;
        for (net, found) in nets.iter().zip(found) {
            let probe = match found {
                Ok(None) => Probe::Absent,
                Ok(Some(found)) => Probe::There(Box::new(found)),
                Err(_) => Probe::Unreadable,
            };
            probes.insert(*net, probe);
        }
        Ok(())
    }

    /// A block that is not claimed, or that is the owner's and has free addresses; as a last resort an empty one is taken
    /// from another. None if there is none at all.
    pub(super) async fn find_usable_block(
        &self,
        owner: &Owner,
        pools: &[&Pool],
        world: &World,
        probes: &mut Probes,
    ) -> Result<Option<Usable>> {
        let own = self.known_affine(owner).await?.nets;
        let mut left = self
            .walk(owner, pools, world)
            .filter(|net| !own.contains(net));
        let steps = if self.store().reads_many_at_once() {
            PROBES.len()
        } else {
            1
        };
        for count in PROBES.into_iter().take(steps) {
            let nets: Vec<IpNet> = left.by_ref().take(count).collect();
            let unknown: Vec<IpNet> = nets
                .iter()
                .copied()
                .filter(|net| !probes.contains_key(net))
                .collect();
            self.probe(&unknown, probes).await?;
            for net in nets {
                match probes.remove(&net) {
                    Some(Probe::There(found)) if self.is_usable(&found, owner, world) => {
                        return Ok(Some(Usable::Own(net)));
                    }
                    Some(Probe::There(_) | Probe::Unreadable) => {}
                    Some(Probe::Absent) | None => return Ok(Some(Usable::New(net))),
                }
            }
        }
        let blocks = self.list_blocks().await?;
        let mut empty = Vec::new();
        for net in self.walk(owner, pools, world) {
            match blocks.get(&net) {
                None => return Ok(Some(Usable::New(net))),
                Some(None) => {}
                Some(Some(found)) => {
                    if self.is_usable(found, owner, world) {
                        return Ok(Some(Usable::Own(net)));
                    }
                    let block = self.collected(found, world);
                    if block.is_empty() && block.free(&world.reservations) > 0 {
                        empty.push(found);
                    }
                }
            }
        }
        for found in empty {
            if self.reclaim(found).await {
                return Ok(Some(Usable::New(found.block.net())));
            }
        }
        Ok(None)
    }

    /// Takes an empty block from its owner, unless that changed anything meanwhile.
    async fn reclaim(&self, found: &BlockCopy) -> bool {
        let (net, block) = (found.block.net(), &found.block);
        let age = self.now().duration_since(block.claimed_at());
        if age < MIN_RECLAIM_AGE {
            return false;
        }
        let conditions = Conditions {
            must_be_empty: true,
            sequence_number: Some(block.sequence_number()),
        };
        let reclaimed = if let Some(owner) = block.owner() {
            self.give_up(&owner, net, conditions).await
        } else {
            // Nobody's, and nobody uses it.
            let deleted = self.delete_object(&found.resource()).await;
            deleted.map(|()| GivenUp::Yes).map_err(Error::from)
        };
        match reclaimed {
            Ok(outcome) => outcome == GivenUp::Yes,
            Err(error) => {
                tracing::debug!(block = %net, error = %Causes(&error), "An empty block could not be taken over");
                false
            }
        }
    }

    /// All blocks of the pools in the order in which the owner looks for one, without those that are wholly reserved.
    pub(super) fn walk<'a>(
        &self,
        owner: &'a Owner,
        pools: &'a [&Pool],
        world: &'a World,
    ) -> impl Iterator<Item = IpNet> + use<'a> {
        let now = i64::try_from(self.now().as_nanosecond()).unwrap_or_default();
        pools
            .iter()
            .flat_map(move |pool| Walk::new(pool.net, pool.block_size, &owner.name, now))
            .filter(|net| !world.reservations.covers(*net))
    }

    pub(super) async fn list_blocks(&self) -> Result<AllBlocks> {
        let tick = self.tick();
        let list = self.store().list(&Query::all(Kind::IpamBlock)).await?;
        let mut blocks = AllBlocks::new();
        for item in list.items {
            if let Resource::IpamBlock(object) = item {
                let net = tortie_api::net::parse_cidr(&object.spec.cidr);
                let copy = BlockCopy::new(*object, tick).ok();
                blocks.extend(net.map(|net| (net.network(), copy)));
            }
        }
        for invalid in list.invalid {
            let net = tortie_store::ipam_names::to_net(&invalid.key.name);
            blocks.extend(net.map(|net| (net, None)));
        }
        Ok(blocks)
    }

    fn is_usable(&self, found: &BlockCopy, owner: &Owner, world: &World) -> bool {
        found.block.is_of(owner) && self.collected(found, world).free(&world.reservations) > 0
    }

    fn collected(&self, found: &BlockCopy, world: &World) -> Block {
        let mut block = Block::clone(&found.block);
        block.collect(world.config.ip_cooldown_seconds, self.now());
        block
    }
}

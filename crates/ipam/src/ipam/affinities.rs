//! Which blocks hosts own, and how they give them up.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use ipnet::IpNet;
use jiff::Timestamp;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tortie_api::BlockAffinity;
use tortie_api::block_affinity::BlockAffinityState;
use tortie_api::net::parse_cidr;
use tortie_store::{Error as StoreError, Key, Kind, Query, Resource, Write, ipam_names};

use super::commit::{is_refused_together, lost_race};
use super::world::is_young;
use super::{Ipam, MAX_TRIES, Tick, locked};
use crate::block::Block;
use crate::error::{Error, Result};
use crate::nets;
use crate::pools;
use crate::request::{ClaimedBlocks, Owner, OwnerKind};
use crate::walk::blocks_in;

/// An owner of blocks.
#[derive(Default)]
pub(super) struct Host {
    /// Held by whoever looks for another block for the host.
    pub(super) claiming: AsyncMutex<()>,
    /// The block that is being claimed.
    pub(super) coming: watch::Sender<Option<IpNet>>,
    affine: Mutex<Option<Affine>>,
}

/// The blocks of an owner.
#[derive(Debug, Clone)]
pub(super) struct Affine {
    pub(super) nets: Vec<IpNet>,
    /// Those whose claim is not confirmed.
    pub(super) unconfirmed: BTreeSet<IpNet>,
    read_at: Timestamp,
    pub(super) tick: Tick,
    /// Counts the blocks that were claimed since it was read first.
    pub(super) claims: u64,
}

/// What to look at before a block is given up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Conditions {
    /// Nobody may hold an address.
    pub(super) must_be_empty: bool,
    /// It must not have changed since.
    pub(super) sequence_number: Option<u64>,
}

/// What became of a block that was to be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    Yes,
    /// It belongs to another.
    NotOurs,
    /// There is no such claim.
    Missing,
}

impl Ipam {
    /// Claims all blocks in a network, which must be in an enabled pool.
    pub async fn claim_affinity(&self, net: IpNet, owner: &Owner) -> Result<ClaimedBlocks> {
        let mut outcome = ClaimedBlocks::default();
        for block in self.blocks_in_pool(net).await? {
            if self.claim(owner, block, None).await? {
                outcome.claimed.push(block);
            } else {
                outcome.failed.push(block);
            }
        }
        Ok(outcome)
    }

    /// Gives up all blocks of an owner in a network, which must be in an enabled pool.
    pub async fn release_affinity(
        &self,
        net: IpNet,
        owner: &Owner,
        must_be_empty: bool,
    ) -> Result<()> {
        let conditions = Conditions {
            must_be_empty,
            ..Conditions::default()
        };
        for block in self.blocks_in_pool(net).await? {
            self.give_up(owner, block, conditions).await?;
        }
        Ok(())
    }

    /// Gives up all blocks of an owner. Goes on after a failure and reports the last.
    pub async fn release_host_affinities(&self, owner: &Owner, must_be_empty: bool) -> Result<()> {
        let conditions = Conditions {
            must_be_empty,
            ..Conditions::default()
        };
        let mut outcome = Ok(());
        for net in self.affine(owner, self.tick()).await?.nets {
            if let Err(error) = self.give_up(owner, net, conditions).await {
                outcome = Err(error);
            }
        }
        outcome
    }

    /// Gives up all blocks of all owners in a pool.
    pub async fn release_pool_affinities(&self, pool: IpNet) -> Result<()> {
        let list = self.store().list(&Query::all(Kind::BlockAffinity)).await?;
        for (owner, net) in list.items.iter().filter_map(read_affinity) {
            if pool.contains(&net.addr()) {
                self.give_up(&owner, net, Conditions::default()).await?;
            }
        }
        Ok(())
    }

    async fn blocks_in_pool(&self, net: IpNet) -> Result<impl Iterator<Item = IpNet> + use<>> {
        let world = self.world().await?;
        let pool = pools::enabled_containing(&world.pools, net.addr());
        let pool = pool.ok_or(Error::NetNotInPool(net))?;
        if net.prefix_len() > pool.block_size {
            return Err(Error::NetTooSmall(net));
        }
        Ok(blocks_in(net.trunc(), pool.block_size))
    }

    pub(super) fn host(&self, owner: &Owner) -> Arc<Host> {
        let mut hosts = locked(&self.shared.hosts);
        Arc::clone(hosts.entry(owner.clone()).or_default())
    }

    /// The blocks of an owner, read after the given moment; what is remembered will do if that was in the past and is young.
    pub(super) async fn affine(&self, owner: &Owner, since: Tick) -> Result<Affine> {
        let host = self.host(owner);
        if let Some(known) = &*locked(&host.affine)
            && known.tick > since
        {
            return Ok(known.clone());
        }
        let (tick, now) = (self.tick(), self.now());
        let list = self.store().list_affinities(&owner.name).await?;
        let (mut nets, mut unconfirmed) = (Vec::new(), BTreeSet::new());
        for item in &list.items {
            let Some((_, net)) = read_affinity(item).filter(|(found, _)| found == owner) else {
                continue;
            };
            nets.push(net);
            if !is_confirmed(item) {
                unconfirmed.insert(net);
            }
        }
        sort(&mut nets);
        let mut known = locked(&host.affine);
        let affine = Affine {
            nets,
            unconfirmed,
            read_at: now,
            tick,
            claims: known.as_ref().map_or(0, |known| known.claims),
        };
        *known = Some(affine.clone());
        Ok(affine)
    }

    /// The blocks of an owner as remembered; read if that is too long ago.
    pub(super) async fn known_affine(&self, owner: &Owner) -> Result<Affine> {
        let since = match &*locked(&self.host(owner).affine) {
            Some(known) if is_young(known.read_at, self.now()) => return Ok(known.clone()),
            _ => self.tick(),
        };
        self.affine(owner, since).await
    }

    /// Notes that a block was claimed or is lost.
    pub(super) fn note_affinity(&self, owner: &Owner, net: IpNet, is_ours: bool) {
        let host = self.host(owner);
        let mut known = locked(&host.affine);
        let Some(affine) = &mut *known else {
            return;
        };
        affine.nets.retain(|known| *known != net);
        affine.unconfirmed.remove(&net);
        if is_ours {
            affine.nets.push(net);
            sort(&mut affine.nets);
            affine.claims += 1;
        }
    }

    /// Gives up one block: deletes it if it is empty, and else leaves it without an owner.
    pub(super) async fn give_up(
        &self,
        owner: &Owner,
        net: IpNet,
        conditions: Conditions,
    ) -> Result<GivenUp> {
        let slot = self.slot(net);
        let mut copy = slot.copy.lock().await;
        *copy = None;
        for _ in 0..MAX_TRIES {
            match self.try_give_up(owner, net, conditions).await {
                Err(error) if lost_race(&error) => {}
                Err(error) if is_refused_together(&error) => self.cannot_write_together(),
                Err(error) => return Err(error),
                Ok(outcome) => {
                    self.note_affinity(owner, net, false);
                    return Ok(outcome);
                }
            }
        }
        Err(Error::TooMuchContention)
    }

    async fn try_give_up(
        &self,
        owner: &Owner,
        net: IpNet,
        conditions: Conditions,
    ) -> Result<GivenUp> {
        let world = self.world();
        let (affinity, block, world) =
            futures::try_join!(self.read_affinity(owner, net), self.read_block(net), world)?;
        let (affinity, base) = match (affinity, block) {
            (affinity, Some(base)) if affinity.is_some() || base.block.is_of(owner) => {
                (affinity, base)
            }
            (None, _) => return Ok(GivenUp::Missing),
            (Some(affinity), _) => {
                self.delete_object(&affinity.into()).await?;
                return Ok(GivenUp::Missing);
            }
        };
        let expected = conditions.sequence_number;
        if expected.is_some_and(|number| number != base.block.sequence_number()) {
            let message = "IPAM block updated since we last read it";
            return Err(Error::Refused(message.to_owned()));
        }
        if base.block.has_affinity() && !base.block.is_of(owner) {
            if let Some(affinity) = affinity {
                self.delete_object(&affinity.into()).await?;
            }
            return Ok(GivenUp::NotOurs);
        }
        let mut block = Block::clone(&base.block);
        block.collect(world.config.ip_cooldown_seconds, self.now());
        if conditions.must_be_empty && !block.is_empty() {
            return Err(Error::BlockNotEmpty(net));
        }
        let is_empty = block.is_empty();
        block.disown();
        block.bump();
        let disowned = base.resource_with(block);
        if self.writes_together() {
            let block = if is_empty {
                Write::Delete(base.resource())
            } else {
                Write::Update(disowned)
            };
            let affinity = affinity.map(|affinity| Write::Delete(affinity.into()));
            let writes = [block].into_iter().chain(affinity).collect();
            self.store().write_together(writes).await?;
            return Ok(GivenUp::Yes);
        }
        let affinity = match affinity {
            None => None,
            Some(affinity) => {
                let state = BlockAffinityState::PendingDeletion;
                Some(self.set_state(affinity, state).await?)
            }
        };
        if is_empty {
            self.delete_object(&base.resource()).await?;
        } else {
            self.store().update(disowned).await?;
        }
        if let Some(affinity) = affinity {
            self.delete_object(&affinity.into()).await?;
        }
        Ok(GivenUp::Yes)
    }

    /// Reads a claim; none if there is none.
    pub(super) async fn read_affinity(
        &self,
        owner: &Owner,
        net: IpNet,
    ) -> Result<Option<BlockAffinity>> {
        let name = ipam_names::of_affinity(&owner.name, &net.to_string());
        let key = Key::global(Kind::BlockAffinity, name);
        match self.store().get(&key).await {
            Ok(resource) => Ok(match (read_affinity(&resource), resource) {
                (Some((found, _)), Resource::BlockAffinity(affinity)) if found == *owner => {
                    Some(*affinity)
                }
                _ => None,
            }),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn set_state(
        &self,
        mut affinity: BlockAffinity,
        state: BlockAffinityState,
    ) -> Result<BlockAffinity> {
        affinity.spec.state = state;
        match self.store().update(affinity.clone().into()).await? {
            Resource::BlockAffinity(written) => Ok(*written),
            _ => Ok(affinity),
        }
    }
}

/// In the order of the keys in etcd.
fn sort(nets: &mut [IpNet]) {
    nets.sort_by_cached_key(|net| net.to_string().replace('/', "-"));
}

/// Old versions wrote no state.
fn is_confirmed(resource: &Resource) -> bool {
    match resource {
        Resource::BlockAffinity(affinity) => is_settled(affinity.spec.state),
        _ => false,
    }
}

pub(super) fn is_settled(state: BlockAffinityState) -> bool {
    matches!(
        state,
        BlockAffinityState::Confirmed | BlockAffinityState::Unset
    )
}

/// A new claim.
pub(super) fn new_affinity(owner: &Owner, net: IpNet, state: BlockAffinityState) -> BlockAffinity {
    let mut affinity = BlockAffinity::default();
    affinity.metadata.name = ipam_names::of_affinity(&owner.name, &net.to_string());
    affinity.spec.node.clone_from(&owner.name);
    owner.kind.as_str().clone_into(&mut affinity.spec.r#type);
    affinity.spec.cidr = net.to_string();
    affinity.spec.state = state;
    affinity
}

/// Who claims which block.
pub(crate) fn read_affinity(resource: &Resource) -> Option<(Owner, IpNet)> {
    let Resource::BlockAffinity(affinity) = resource else {
        return None;
    };
    let spec = &affinity.spec;
    let kind = match spec.r#type.as_str() {
        "" | "host" => OwnerKind::Host,
        "virtual" => OwnerKind::Virtual,
        _ => return None,
    };
    let name = spec.node.clone();
    let net = parse_cidr(&spec.cidr)?.network();
    Some((Owner { kind, name }, net))
}

impl Affine {
    /// Those of one IP version.
    pub(super) fn of_version(&self, version: u8) -> impl Iterator<Item = IpNet> {
        self.nets
            .iter()
            .copied()
            .filter(move |net| nets::version(*net) == version)
    }
}

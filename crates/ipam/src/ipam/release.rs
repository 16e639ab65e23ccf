//! Taking addresses back.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use futures::future::join_all;
use ipnet::IpNet;
use tortie_error::Causes;

use super::claim::AllBlocks;
use super::commit::lost_race;
use super::jobs::{Job, Operation, Outcome};
use super::world::World;
use super::{Ipam, MAX_TRIES, locked};
use crate::block::{BlockRelease, sanitize};
use crate::error::{Error, Result};
use crate::handle;
use crate::pools;
use crate::request::{Owner, OwnerKind, ReleaseIp, Released};

impl Ipam {
    /// Releases addresses. A request whose handle or sequence number does not agree with what is there fails together
    /// with all others for the same block; other blocks are not affected.
    pub async fn release(&self, requests: &[ReleaseIp]) -> Result<Released> {
        let since = self.tick();
        let world = self.world().await?;
        let mut blocks = None;
        let mut by_block: BTreeMap<IpNet, Vec<ReleaseIp>> = BTreeMap::new();
        let mut outcome = Released::default();
        for request in requests {
            let pool = pools::containing(&world.pools, request.address);
            let net = match pool.and_then(|pool| pool.block_of(request.address)) {
                Some(net) => Some(net),
                None => self.block_by_search(request.address, &mut blocks).await?,
            };
            match net {
                Some(net) => by_block.entry(net).or_default().push(request.clone()),
                None => outcome.unallocated.push(request.address),
            }
        }
        let mut failure = None;
        let mut missing = Vec::new();
        let jobs = by_block.into_iter().map(async |(net, requests)| {
            let operation = Operation::Release(requests.clone());
            let world = Arc::clone(&world);
            let done = self
                .submit(
                    net,
                    Job {
                        operation,
                        world,
                        since,
                        claim: None,
                    },
                )
                .await;
            (net, requests, done)
        });
        for (net, requests, done) in join_all(jobs).await {
            match done {
                Ok(Outcome::Missing) => missing.extend(requests),
                Ok(done) => {
                    outcome
                        .unallocated
                        .extend(self.after_release(net, &world, done).await.unallocated);
                    outcome.released.extend(requests);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        // Not where the pool says: perhaps the pool had other blocks once.
        for request in missing {
            match self.release_elsewhere(&request, &mut blocks, &world).await {
                Ok(is_released) => {
                    if !is_released {
                        outcome.unallocated.push(request.address);
                    }
                    outcome.released.push(request);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            None => Ok(outcome),
            Some(error) if outcome.released.is_empty() && outcome.unallocated.is_empty() => {
                Err(error)
            }
            Some(error) => Err(Error::PartlyReleased {
                released: Box::new(outcome),
                source: Box::new(error),
            }),
        }
    }

    /// Releases everything that a handle has, and the handle itself; tells which addresses that were.
    pub async fn release_by_handle(&self, id: &str) -> Result<Vec<IpAddr>> {
        let since = self.tick();
        let id = sanitize(id);
        let mut released = Vec::new();
        let mut is_known = false;
        for _ in 0..MAX_TRIES {
            let (handle, world) = futures::try_join!(self.known_handle(id), self.world())?;
            let Some(handle) = handle else {
                if is_known {
                    return Ok(released);
                }
                return Err(Error::NoHandle(id.to_owned()));
            };
            is_known = true;
            let nets = handle::blocks(&handle);
            if nets.is_empty() {
                self.delete_empty_handle(id).await?;
            }
            // A handle goes in the same write as its last address; else the datastore tells what is left of it.
            let mut is_certain = !nets.is_empty();
            for net in nets {
                let job = Job {
                    operation: Operation::ReleaseHandle(id.to_owned()),
                    world: Arc::clone(&world),
                    since,
                    claim: None,
                };
                match self.submit(net, job).await? {
                    Outcome::Missing => {
                        is_certain = false;
                        self.forget_mention(id, net).await?;
                    }
                    done => {
                        let addresses = self.after_release(net, &world, done).await.released;
                        is_certain &= !addresses.is_empty();
                        released.extend(addresses);
                    }
                }
            }
            let is_remembered = locked(&self.shared.handles).get(id).is_some();
            if is_certain && self.writes_together() && !is_remembered {
                return Ok(released);
            }
            self.forget_handle(id);
        }
        Err(Error::TooMuchContention)
    }

    /// Makes a handle forget a block that is not there. Whoever counted an address of it before found it there, and will
    /// find that it is not what it was.
    async fn forget_mention(&self, id: &str, net: IpNet) -> Result<()> {
        self.forget_handle(id);
        for _ in 0..MAX_TRIES {
            let Some(mut handle) = self.read_handle(id).await? else {
                return Ok(());
            };
            if self.read_block(net).await?.is_some() {
                return Ok(());
            }
            handle::forget(&mut handle, net);
            match self.write_handle(handle).await {
                Err(error) if lost_race(&error) => {}
                result => return result,
            }
        }
        Err(Error::TooMuchContention)
    }

    async fn delete_empty_handle(&self, id: &str) -> Result<()> {
        self.forget_handle(id);
        match self.read_handle(id).await? {
            Some(handle) if handle::is_empty(&handle) => match self.write_handle(handle).await {
                Err(error) if lost_race(&error) => Ok(()),
                result => result,
            },
            _ => Ok(()),
        }
    }

    /// Gives a block up that became empty, if its pool no longer selects its owner.
    async fn after_release(&self, net: IpNet, world: &World, done: Outcome) -> BlockRelease {
        let Outcome::Released { release, emptied } = done else {
            return BlockRelease::default();
        };
        if let Some(owner) = emptied.filter(|owner| owner.kind == OwnerKind::Host)
            && let Err(error) = self.give_up_if_unselected(&owner, net, world).await
        {
            tracing::warn!(block = %net, error = %Causes(&error), "An empty block could not be given up");
        }
        release
    }

    async fn give_up_if_unselected(&self, owner: &Owner, net: IpNet, world: &World) -> Result<()> {
        let Some(pool) = pools::enabled_containing(&world.pools, net.addr()) else {
            return Ok(());
        };
        let labels = match self.node_labels(&owner.name).await {
            Err(error) if error.is_not_found() => return Ok(()),
            result => result?,
        };
        if pool.selects_node(&labels)? {
            return Ok(());
        }
        self.give_up_if_empty(owner, net).await
    }

    /// Releases an address that is in another block than its pool says. Tells whether somebody had it.
    async fn release_elsewhere(
        &self,
        request: &ReleaseIp,
        blocks: &mut Option<AllBlocks>,
        world: &Arc<World>,
    ) -> Result<bool> {
        let Some(net) = self.block_by_search(request.address, blocks).await? else {
            return Ok(false);
        };
        let job = Job {
            operation: Operation::Release(vec![request.clone()]),
            world: Arc::clone(world),
            since: self.tick(),
            claim: None,
        };
        let done = self.submit(net, job).await?;
        Ok(!self
            .after_release(net, world, done)
            .await
            .released
            .is_empty())
    }

    /// The block that an address is in, among all there are.
    pub(super) async fn block_by_search(
        &self,
        address: IpAddr,
        blocks: &mut Option<AllBlocks>,
    ) -> Result<Option<IpNet>> {
        if blocks.is_none() {
            *blocks = Some(self.list_blocks().await?);
        }
        let blocks = blocks.iter().flat_map(|blocks| blocks.keys());
        Ok(blocks.copied().find(|net| net.contains(&address)))
    }
}

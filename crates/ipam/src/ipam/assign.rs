//! Giving addresses out, whichever are free.

use std::sync::Arc;

use ipnet::IpNet;

use super::affine_blocks::affine_blocks;
use super::affinities::Affine;
use super::claim::{Probes, Usable};
use super::claim_permit::ClaimPermit;
use super::jobs::{Claim, Job, Operation, Outcome};
use super::search::Search;
use super::slots::Slot;
use super::world::{Labels, World};
use super::{Ipam, MAX_TRIES};
use crate::config::max_blocks;
use crate::error::{Error, Result};
use crate::nets;
use crate::pools::{self, Pool};
use crate::request::{Assigned, AutoAssign, Owner, Use};

/// How a step of a search went on.
enum Step {
    /// There is nothing more to do here.
    Next,
    /// What the search decided by is outdated.
    StartOver,
}

impl Ipam {
    /// Assigns addresses, IPv4 before IPv6. Fewer than asked for are no error: see [`Assignment::shortfall`](crate::Assignment::shortfall).
    pub async fn auto_assign(&self, request: &AutoAssign) -> Result<Assigned> {
        let mut assigned = Assigned::default();
        for (version, wanted) in [(4, request.num4), (6, request.num6)] {
            if wanted == 0 {
                continue;
            }
            let mut search = Search::new(request, version, wanted, self.tick());
            let outcome = self.assign_version(&mut search).await;
            let assignment = search.into_assignment();
            match version {
                4 => assigned.v4 = assignment,
                _ => assigned.v6 = assignment,
            }
            if let Err(error) = outcome {
                let is_nothing =
                    assigned.v4.addresses.is_empty() && assigned.v6.addresses.is_empty();
                return Err(if is_nothing {
                    error
                } else {
                    Error::PartlyAssigned {
                        assigned: Box::new(assigned),
                        source: Box::new(error),
                    }
                });
            }
        }
        Ok(assigned)
    }

    async fn assign_version(&self, search: &mut Search<'_>) -> Result<()> {
        for _ in 0..MAX_TRIES {
            if let Step::Next = self.try_assign(search).await? {
                return Ok(());
            }
        }
        Err(Error::TooMuchContention)
    }

    async fn try_assign(&self, search: &mut Search<'_>) -> Result<Step> {
        let owner = search.owner.clone();
        let (world, labels, affine) = futures::try_join!(
            self.world(),
            self.labels_for(search.request),
            self.known_affine(&owner),
        )?;
        let selected = match pools::select(&world.pools, &search.pool_request(&labels)?) {
            Err(_) if world.tick <= search.since => {
                self.forget_world();
                return Ok(Step::StartOver);
            }
            result => result?,
        };
        let usable = selected.usable;
        if affine.tick > search.since {
            self.give_up_unselected(&owner, &affine, &world, &selected.selecting, &labels)
                .await?;
        }
        // On what is remembered, then, as the only one who does so for this host, on what is there.
        let mut affine = affine;
        let mut joined = None;
        loop {
            let own = affine_blocks(&affine, search.version, &usable);
            let slots = self.slots(&own);
            self.prefetch(&slots).await;
            if let Step::StartOver = self
                .use_affine(search, slots, &affine, &world, false)
                .await?
            {
                return Ok(Step::StartOver);
            }
            if search.is_done() {
                return Ok(Step::Next);
            }
            let host = self.host(&owner);
            let will_do = |net: IpNet| {
                joined != Some(net) && usable.iter().any(|pool| pool.net.contains(&net.addr()))
            };
            let _claiming = match host.wait_for_claim(will_do).await {
                ClaimPermit::Granted(claiming) => claiming,
                ClaimPermit::ClaimedByOther(net) => {
                    joined = Some(net);
                    if let Step::StartOver = self.join(search, net, &world).await? {
                        return Ok(Step::StartOver);
                    }
                    affine = self.known_affine(&owner).await?;
                    continue;
                }
            };
            let now = self.known_affine(&owner).await?;
            if now.claims != affine.claims {
                affine = now;
                continue;
            }
            let (fresh, (), mut probes) = futures::try_join!(
                self.affine(&owner, search.since),
                self.confirm(&own, search.since),
                self.first_probes(&owner, &usable, &world, &own),
            )?;
            affine = fresh;
            let own = affine_blocks(&affine, search.version, &usable);
            let slots = self.slots(&own);
            if let Step::StartOver = self
                .use_affine(search, slots, &affine, &world, true)
                .await?
            {
                return Ok(Step::StartOver);
            }
            let count = u32::try_from(own.len()).unwrap_or(u32::MAX);
            if let Step::StartOver = self
                .use_new_block(search, &usable, &world, count, &mut probes)
                .await?
            {
                return Ok(Step::StartOver);
            }
            break;
        }
        if search.is_done() || world.config.strict_affinity {
            return Ok(Step::Next);
        }
        self.borrow(search, &usable, &world).await
    }

    /// Addresses from blocks that the owner has.
    async fn use_affine(
        &self,
        search: &mut Search<'_>,
        own: Vec<Arc<Slot>>,
        affine: &Affine,
        world: &Arc<World>,
        is_thorough: bool,
    ) -> Result<Step> {
        for slot in own {
            if search.is_done() {
                break;
            }
            let net = slot.net;
            let is_hopeless = world.reservations.covers(net)
                || self.is_known_full(&slot, world, search.since, is_thorough);
            if is_hopeless {
                continue;
            }
            if affine.unconfirmed.contains(&net)
                && !self.claim(&search.owner, net, search.reserved).await?
            {
                continue;
            }
            if let Step::StartOver = self.use_affine_block(search, net, world, false).await? {
                return Ok(Step::StartOver);
            }
        }
        Ok(Step::Next)
    }

    /// Addresses from one block that should be the owner's. If it is not, or not there, the claim is put right. One that
    /// is probably not there can be claimed in the same write.
    async fn use_affine_block(
        &self,
        search: &mut Search<'_>,
        net: IpNet,
        world: &Arc<World>,
        can_claim: bool,
    ) -> Result<Step> {
        let mut claim = can_claim.then(|| Claim {
            owner: search.owner.clone(),
            reserved: search.reserved.cloned(),
        });
        for _ in 0..MAX_TRIES {
            let owner = Some(search.owner.clone());
            match self.take(search, net, world, owner, claim.take()).await {
                Ok(Some(step)) => return Ok(step),
                Ok(None) | Err(Error::NotOurs | Error::NoAffinity(_)) => {}
                Err(error) => return Err(error),
            }
            if !self.claim(&search.owner, net, search.reserved).await? {
                return Ok(Step::Next);
            }
        }
        Err(Error::TooMuchContention)
    }

    /// Addresses from a block that another caller is about to claim for the owner, if that comes about.
    async fn join(&self, search: &mut Search<'_>, net: IpNet, world: &Arc<World>) -> Result<Step> {
        let owner = Some(search.owner.clone());
        match self.take(search, net, world, owner, None).await {
            Ok(step) => Ok(step.unwrap_or(Step::Next)),
            Err(Error::NotOurs | Error::NoAffinity(_)) => Ok(Step::Next),
            Err(error) => Err(error),
        }
    }

    /// Addresses from blocks that the owner claims now, as many as it may have.
    async fn use_new_block(
        &self,
        search: &mut Search<'_>,
        pools: &[&Pool],
        world: &Arc<World>,
        mut owned: u32,
        probes: &mut Probes,
    ) -> Result<Step> {
        let limit = max_blocks(&world.config, search.request.max_blocks_per_host);
        let host = self.host(&search.owner);
        let mut tries = MAX_TRIES;
        while !search.is_done() {
            if owned >= limit {
                search.add_reason(format!(
                    "Need to allocate an IPAM block but could not - limit of {limit} blocks reached for this node"
                ));
                return Err(Error::BlockLimit);
            }
            if !world.config.auto_allocate_blocks {
                return Err(Error::NoBlock);
            }
            let found = self
                .find_usable_block(&search.owner, pools, world, probes)
                .await?;
            let (net, can_claim) = match found {
                Some(Usable::New(net)) => (net, self.writes_together()),
                Some(Usable::Own(net)) => (net, false),
                None => {
                    if world.config.strict_affinity {
                        let reason = "No more free affine blocks and strict affinity enabled";
                        search.add_reason(reason.to_owned());
                    }
                    break;
                }
            };
            let _coming = host.announce(net);
            if can_claim || self.claim(&search.owner, net, search.reserved).await? {
                if let Step::StartOver =
                    self.use_affine_block(search, net, world, can_claim).await?
                {
                    return Ok(Step::StartOver);
                }
                let affine = self.known_affine(&search.owner).await?;
                owned += u32::from(affine.nets.contains(&net));
            }
            tries -= 1;
            if tries == 0 {
                return Err(Error::TooMuchContention);
            }
        }
        Ok(Step::Next)
    }

    /// Addresses from blocks of others.
    async fn borrow(
        &self,
        search: &mut Search<'_>,
        pools: &[&Pool],
        world: &Arc<World>,
    ) -> Result<Step> {
        let blocks = self.list_blocks().await?;
        let mut exhausted = Vec::new();
        for pool in pools {
            let owner = search.owner.clone();
            for net in self.walk(&owner, &[*pool], world) {
                if search.is_done() {
                    return Ok(Step::Next);
                }
                let is_there = blocks.get(&net).is_some_and(Option::is_some);
                if is_there
                    && let Some(Step::StartOver) = self.take(search, net, world, None, None).await?
                {
                    return Ok(Step::StartOver);
                }
            }
            if search.is_done() {
                return Ok(Step::Next);
            }
            exhausted.push(pool.net.to_string());
        }
        search.add_reason(format!(
            "No IPs available in pools: [{}]",
            exhausted.join(" ")
        ));
        Ok(Step::Next)
    }

    /// What a block has of what is wanted. None if there is no such block.
    async fn take(
        &self,
        search: &mut Search<'_>,
        net: IpNet,
        world: &Arc<World>,
        owner: Option<Owner>,
        mut claim: Option<Claim>,
    ) -> Result<Option<Step>> {
        let max_per_handle = search.request.max_per_handle;
        let mut current = 0;
        for _ in 0..MAX_TRIES {
            let operation = Operation::Assign {
                count: search.missing(),
                holder: search.holder.clone(),
                owner: owner.clone(),
                max_per_handle,
            };
            let job = Job {
                operation,
                world: Arc::clone(world),
                since: search.since,
                claim: claim.take(),
            };
            match self.submit(net, job).await? {
                Outcome::Assigned(addresses) => {
                    search.found.extend(addresses);
                    return Ok(Some(Step::Next));
                }
                Outcome::MaxReached(count) => {
                    current = count;
                    let held = self.held_by(search).await?;
                    if held.len() >= search.wanted as usize {
                        search.found = held;
                        search.found.truncate(search.wanted as usize);
                        return Ok(Some(Step::Next));
                    }
                }
                Outcome::Missing => return Ok(None),
                Outcome::WorldChanged | Outcome::Released { .. } => {
                    return Ok(Some(Step::StartOver));
                }
            }
        }
        Err(Error::MaxPerHandle {
            handle: search.holder.handle.clone().unwrap_or_default(),
            current,
            max: max_per_handle.unwrap_or_default(),
        })
    }

    /// The addresses that the handle has already, each as a network of its own.
    async fn held_by(&self, search: &Search<'_>) -> Result<Vec<IpNet>> {
        let Some(handle) = &search.holder.handle else {
            return Ok(Vec::new());
        };
        let held = match self.ips_by_handle(handle).await {
            Err(Error::NoHandle(_)) => Vec::new(),
            result => result?,
        };
        let held = held.into_iter().map(IpNet::from);
        Ok(held
            .filter(|net| nets::version(*net) == search.version)
            .collect())
    }

    async fn labels_for(&self, request: &AutoAssign) -> Result<Arc<Labels>> {
        if request.used_for == Use::LoadBalancer {
            return Ok(Arc::default());
        }
        self.node_labels(&request.host).await
    }
}

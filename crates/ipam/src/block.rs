//! One block of addresses: who holds which, and in what order the free ones are given out.
//!
//! # Invariants
//! - Pure: no datastore and no clock.
//! - Every address is either free, in the queue of free ones exactly once, or held, with the facts about its holder.
//! - What fails changes nothing.

mod assign;
mod release;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use tortie_api::ipam_block::{AllocationAttribute, IpamBlockSpec};
use tortie_api::meta::Time;
use tortie_api::net::parse_cidr;

pub use self::release::BlockRelease;
use crate::error::{Error, Result};
use crate::nets;
use crate::request::{Holder, HostReserved, Owner, attribute};
use crate::reservations::Reservations;

/// Addresses under this handle do not count as used.
const WINDOWS_HANDLE: &str = "windows-reserved-ipam-handle";

/// The largest block, in addresses. Calico's are no larger than 4096.
const MAX_SIZE: u128 = 1 << 16;

/// A block that was found to be whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    spec: IpamBlockSpec,
    net: IpNet,
}

impl Block {
    /// A new block. Its sequence number starts with the time, so that allocations of a block that is made again differ
    /// from those of the one before.
    pub fn new(net: IpNet, owner: &Owner, now: Timestamp, reserved: Option<&HostReserved>) -> Self {
        let size = usize::try_from(nets::size(net).min(MAX_SIZE)).unwrap_or(usize::MAX);
        let mut spec = IpamBlockSpec {
            cidr: net.to_string(),
            affinity: Some(owner.to_string()),
            affinity_claim_time: Some(Time(now)),
            allocations: vec![None; size],
            unallocated: (0..).take(size).collect(),
            sequence_number: u64::try_from(now.as_nanosecond()).unwrap_or_default(),
            ..IpamBlockSpec::default()
        };
        if let Some(reserved) = reserved {
            let start = (reserved.start as usize).min(size);
            let end = (reserved.end as usize).min(size - start);
            let note = (attribute::NOTE.to_owned(), reserved.note.clone());
            spec.attributes.push(AllocationAttribute {
                handle_id: Some(reserved.handle.clone()),
                active_owner_attrs: [note].into(),
                ..AllocationAttribute::default()
            });
            spec.allocations[..start].fill(Some(0));
            spec.allocations[size - end..].fill(Some(0));
            spec.unallocated.truncate(size - end);
            spec.unallocated.drain(..start);
        }
        Self { spec, net }
    }

    /// A stored block, unless it is damaged.
    pub fn load(spec: IpamBlockSpec) -> Result<Self> {
        let damaged = |reason: String| Error::Damaged {
            what: format!("block {}", spec.cidr),
            reason,
        };
        let net = parse_cidr(&spec.cidr)
            .filter(|cidr| cidr.is_masked())
            .ok_or_else(|| damaged("it is no network".to_owned()))?
            .network();
        let size = nets::size(net);
        if size > MAX_SIZE || spec.allocations.len() as u128 != size {
            let count = spec.allocations.len();
            return Err(damaged(format!("it has entries for {count} addresses")));
        }
        let attributes = spec.attributes.len();
        let is_known = |index: i64| usize::try_from(index).is_ok_and(|index| index < attributes);
        if let Some(index) = spec
            .allocations
            .iter()
            .flatten()
            .find(|index| !is_known(**index))
        {
            return Err(damaged(format!("holder {index} is not among {attributes}")));
        }
        let mut seen = BTreeSet::new();
        for ordinal in &spec.unallocated {
            let allocation = usize::try_from(*ordinal)
                .ok()
                .and_then(|at| spec.allocations.get(at));
            if allocation != Some(&None) || !seen.insert(*ordinal) {
                return Err(damaged(format!(
                    "address number {ordinal} is not free, but in the queue"
                )));
            }
        }
        Ok(Self { spec, net })
    }

    /// A block of which is known that it is whole.
    pub(crate) fn of_whole(spec: IpamBlockSpec, net: IpNet) -> Self {
        Self { spec, net }
    }

    /// As it is stored.
    pub fn spec(&self) -> &IpamBlockSpec {
        &self.spec
    }

    /// As it is stored.
    pub fn into_spec(self) -> IpamBlockSpec {
        self.spec
    }

    /// Its addresses.
    pub fn net(&self) -> IpNet {
        self.net
    }

    /// Who owns it, if anybody does.
    pub fn owner(&self) -> Option<Owner> {
        self.spec.affinity.as_deref().and_then(Owner::parse)
    }

    /// Whether this owner has it.
    pub fn is_of(&self, owner: &Owner) -> bool {
        self.owner().as_ref() == Some(owner)
    }

    /// Whether anybody, also one whose name makes no sense, has it.
    pub fn has_affinity(&self) -> bool {
        self.spec.affinity.is_some()
    }

    /// Takes it from its owner.
    pub fn disown(&mut self) {
        self.spec.affinity = None;
        self.spec.affinity_claim_time = None;
    }

    /// When its owner claimed it; the beginning of time if that is not known.
    pub fn claimed_at(&self) -> Timestamp {
        self.spec
            .affinity_claim_time
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0)
    }

    /// Grows with every change.
    pub fn sequence_number(&self) -> u64 {
        self.spec.sequence_number
    }

    /// Notes a change; every write is to be preceded by one.
    pub fn bump(&mut self) {
        self.spec.sequence_number = self.spec.sequence_number.wrapping_add(1);
    }

    /// How many addresses it has.
    pub fn size(&self) -> usize {
        self.spec.allocations.len()
    }

    /// How many addresses can be given out.
    pub fn free(&self, reservations: &Reservations) -> usize {
        if reservations.covers(self.net) {
            return 0;
        }
        if !reservations.touches(self.net) {
            return self.spec.unallocated.len();
        }
        let free = self.spec.unallocated.iter();
        free.filter(|ordinal| !reservations.reserves(self.address(**ordinal)))
            .count()
    }

    /// Whether an address can be given out now, or could be after [`Block::collect`].
    pub fn has_free(
        &self,
        cooldown_seconds: i32,
        now: Timestamp,
        reservations: &Reservations,
    ) -> bool {
        if self.free(reservations) > 0 {
            return true;
        }
        let limit = cold_before(cooldown_seconds, now);
        let mut cold = self
            .held()
            .filter(|(_, attribute)| is_cold(attribute, limit));
        cold.any(|(ordinal, _)| !reservations.reserves(self.address(ordinal)))
    }

    /// Whether there are addresses that were released and are not free yet.
    pub(crate) fn has_cooling(&self) -> bool {
        let attributes = self.spec.attributes.iter();
        attributes
            .into_iter()
            .any(|held| held.released_at.is_some())
    }

    /// How many addresses are held, or were released too short a while ago.
    pub fn in_use(&self) -> usize {
        self.size() - self.spec.unallocated.len()
    }

    /// Whether nobody holds any address, but for those that a host keeps for itself.
    pub fn is_empty(&self) -> bool {
        self.held().all(|(_, attribute)| {
            let handle = attribute.handle_id.as_deref();
            handle.is_some_and(|handle| handle.eq_ignore_ascii_case(WINDOWS_HANDLE))
        })
    }

    /// All addresses that are not free, with what is known of their holders.
    pub fn allocations(&self) -> impl Iterator<Item = (IpAddr, &AllocationAttribute)> {
        self.held()
            .map(|(ordinal, attribute)| (self.address(ordinal), attribute))
    }

    /// Whether a handle has an address here.
    pub(crate) fn has_any_of(&self, handle: &str) -> bool {
        self.held()
            .any(|(_, attribute)| handle_of(attribute) == Some(handle))
    }

    /// The addresses that a handle has here.
    pub fn addresses_of(&self, handle: &str) -> Vec<IpAddr> {
        self.allocations()
            .filter(|(_, attribute)| handle_of(attribute) == Some(handle))
            .map(|(address, _)| address)
            .collect()
    }

    /// At which number an address was given out.
    pub fn sequence_of(&self, address: IpAddr) -> u64 {
        self.ordinal(address)
            .map_or(0, |ordinal| self.sequence_at(ordinal))
    }

    /// Who has an address.
    pub fn holder(&self, address: IpAddr) -> Result<Holder> {
        let attribute = self
            .ordinal(address)
            .and_then(|ordinal| self.attribute_at(ordinal))
            .ok_or(Error::Unassigned(address))?;
        if attribute.released_at.is_some() {
            return Err(Error::CoolingDown(address));
        }
        Ok(Holder {
            handle: handle_of(attribute).map(str::to_owned),
            attributes: attribute.active_owner_attrs.clone(),
            alternate_attributes: attribute.alternate_owner_attrs.clone(),
        })
    }

    /// Frees what was released longer ago than the cooldown, or all that was released if that is negative. Forgets
    /// holders of nothing. Tells whether anything changed.
    pub fn collect(&mut self, cooldown_seconds: i32, now: Timestamp) -> bool {
        let limit = cold_before(cooldown_seconds, now);
        let Self { spec, .. } = self;
        let are_cold: Vec<bool> = spec
            .attributes
            .iter()
            .map(|attribute| is_cold(attribute, limit))
            .collect();
        let mut is_used = vec![false; spec.attributes.len()];
        let mut changed = false;
        for (ordinal, allocation) in (0_i64..).zip(&mut spec.allocations) {
            let Some(index) = allocation.and_then(|index| usize::try_from(index).ok()) else {
                continue;
            };
            if are_cold[index] {
                *allocation = None;
                spec.unallocated.push(ordinal);
                spec.sequence_number_for_allocation
                    .remove(&ordinal.to_string());
                changed = true;
            } else {
                is_used[index] = true;
            }
        }
        if is_used.iter().all(|is_used| *is_used) {
            return changed;
        }
        let mut next = 0_i64;
        let places: Vec<i64> = is_used
            .iter()
            .map(|is_used| {
                let place = next;
                next += i64::from(*is_used);
                place
            })
            .collect();
        let mut used = is_used.into_iter();
        spec.attributes.retain(|_| used.next().unwrap_or(true));
        for index in spec.allocations.iter_mut().flatten() {
            if let Some(place) = usize::try_from(*index).ok().and_then(|at| places.get(at)) {
                *index = *place;
            }
        }
        true
    }

    fn held(&self) -> impl Iterator<Item = (i64, &AllocationAttribute)> {
        (0_i64..)
            .zip(&self.spec.allocations)
            .filter_map(|(ordinal, allocation)| {
                let index = usize::try_from((*allocation)?).ok()?;
                Some((ordinal, self.spec.attributes.get(index)?))
            })
    }

    fn address(&self, ordinal: i64) -> IpAddr {
        nets::nth(self.net, u128::try_from(ordinal).unwrap_or_default())
    }

    fn ordinal(&self, address: IpAddr) -> Option<usize> {
        nets::ordinal(self.net, address).and_then(|ordinal| usize::try_from(ordinal).ok())
    }

    fn attribute_at(&self, ordinal: usize) -> Option<&AllocationAttribute> {
        let index = (*self.spec.allocations.get(ordinal)?)?;
        self.spec.attributes.get(usize::try_from(index).ok()?)
    }

    fn sequence_at(&self, ordinal: usize) -> u64 {
        let sequences = &self.spec.sequence_number_for_allocation;
        sequences.get(&ordinal.to_string()).copied().unwrap_or(0)
    }

    fn set_sequence_at(&mut self, ordinal: usize) {
        let number = self.spec.sequence_number;
        let sequences = &mut self.spec.sequence_number_for_allocation;
        sequences.insert(ordinal.to_string(), number);
    }
}

/// What was released by then can be given out again.
fn cold_before(cooldown_seconds: i32, now: Timestamp) -> Timestamp {
    if cooldown_seconds < 0 {
        return Timestamp::MAX;
    }
    now.checked_sub(SignedDuration::from_secs(cooldown_seconds.into()))
        .unwrap_or(Timestamp::MIN)
}

fn is_cold(attribute: &AllocationAttribute, limit: Timestamp) -> bool {
    let released_at = attribute.released_at.as_ref();
    released_at.is_some_and(|at| at.0 <= limit)
}

/// The handle of a holder.
pub(crate) fn handle_of(attribute: &AllocationAttribute) -> Option<&str> {
    attribute.handle_id.as_deref().map(sanitize)
}

/// Handles that were taken over from files of other plugins may have the rest of a file behind them.
pub(crate) fn sanitize(handle: &str) -> &str {
    handle.split('\r').next().unwrap_or(handle)
}

//! Giving addresses out.

use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::ipam_block::AllocationAttribute;

use super::Block;
use crate::error::{Error, Result};
use crate::nets;
use crate::request::{Holder, Owner};
use crate::reservations::Reservations;

impl Block {
    /// Refuses a block that is not the owner's own.
    pub fn require_owner(&self, owner: &Owner) -> Result<()> {
        if !self.has_affinity() {
            return Err(Error::NoAffinity(self.net));
        }
        if self.is_of(owner) {
            Ok(())
        } else {
            Err(Error::NotOurs)
        }
    }

    /// Gives out up to so many addresses, those that have been free for longest, and none that are reserved.
    pub fn assign_next(
        &mut self,
        count: u32,
        holder: &Holder,
        reservations: &Reservations,
    ) -> Vec<IpNet> {
        let may_be_reserved = reservations.touches(self.net);
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        let mut taken = Vec::new();
        let unallocated = std::mem::take(&mut self.spec.unallocated);
        let mut left = Vec::with_capacity(unallocated.len());
        for ordinal in unallocated {
            let is_usable = taken.len() < wanted
                && !(may_be_reserved && reservations.reserves(self.address(ordinal)));
            if is_usable {
                taken.push(ordinal);
            } else {
                left.push(ordinal);
            }
        }
        self.spec.unallocated = left;
        if taken.is_empty() {
            return Vec::new();
        }
        let index = self.index_of(holder);
        let mut addresses = Vec::with_capacity(taken.len());
        for ordinal in taken {
            addresses.push(nets::in_block(self.address(ordinal), self.net));
            if let Ok(ordinal) = usize::try_from(ordinal) {
                self.spec.allocations[ordinal] = Some(index);
                self.set_sequence_at(ordinal);
            }
        }
        addresses
    }

    /// Gives out one particular address, also if it is reserved.
    pub fn assign(&mut self, address: IpAddr, holder: &Holder) -> Result<()> {
        let Some(ordinal) = self.ordinal(address) else {
            let net = self.net;
            return Err(Error::Refused(format!("IP {address} not in block {net}")));
        };
        if self.spec.allocations[ordinal].is_some() {
            return Err(Error::AlreadyAssigned(address));
        }
        let index = self.index_of(holder);
        self.spec.allocations[ordinal] = Some(index);
        self.set_sequence_at(ordinal);
        self.spec
            .unallocated
            .retain(|free| usize::try_from(*free) != Ok(ordinal));
        Ok(())
    }

    /// Where the facts about the holder are; they are added if they are not there yet.
    fn index_of(&mut self, holder: &Holder) -> i64 {
        let facts = AllocationAttribute {
            handle_id: holder.handle.clone(),
            active_owner_attrs: holder.attributes.clone(),
            ..AllocationAttribute::default()
        };
        let attributes = &mut self.spec.attributes;
        let index = attributes
            .iter()
            .position(|known| *known == facts)
            .unwrap_or_else(|| {
                attributes.push(facts);
                attributes.len() - 1
            });
        i64::try_from(index).unwrap_or(i64::MAX)
    }
}

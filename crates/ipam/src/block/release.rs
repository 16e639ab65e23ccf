//! Taking addresses back.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use tortie_api::ipam_block::AllocationAttribute;
use tortie_api::meta::Time;

use super::{Block, handle_of, sanitize};
use crate::error::{Error, Mismatch, Result};
use crate::request::ReleaseIp;

/// What a release did to a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockRelease {
    /// What was released.
    pub released: Vec<IpAddr>,
    /// What nobody had.
    pub unallocated: Vec<IpAddr>,
    /// How many were released of each handle.
    pub by_handle: BTreeMap<String, u32>,
}

impl Block {
    /// Releases addresses, unless a caller's knowledge of one of them is outdated.
    pub fn release(
        &mut self,
        requests: &[ReleaseIp],
        cooldown_seconds: i32,
        now: Timestamp,
    ) -> Result<BlockRelease> {
        let requests: BTreeMap<IpAddr, &ReleaseIp> = requests
            .iter()
            .map(|request| (request.address, request))
            .collect();
        let mut outcome = BlockRelease::default();
        let mut ordinals = Vec::new();
        for (address, request) in requests {
            let Some(ordinal) = self.ordinal(address) else {
                let net = self.net;
                return Err(Error::Refused(format!("IP {address} not in block {net}")));
            };
            let outdated = |reason| Err(Error::Outdated { address, reason });
            let found = self.sequence_at(ordinal);
            if let Some(requested) = request.sequence_number
                && requested != found
            {
                return outdated(Mismatch::Sequence { requested, found });
            }
            let attribute = self.attribute_at(ordinal);
            let Some(attribute) = attribute.filter(|held| held.released_at.is_none()) else {
                outcome.unallocated.push(address);
                continue;
            };
            let found = handle_of(attribute).unwrap_or_default();
            let requested = request.handle.as_deref().map(sanitize).unwrap_or_default();
            if !requested.is_empty() && requested != found {
                let (requested, found) = (requested.to_owned(), found.to_owned());
                return outdated(Mismatch::Handle { requested, found });
            }
            if !found.is_empty() {
                *outcome.by_handle.entry(found.to_owned()).or_default() += 1;
            }
            outcome.released.push(address);
            ordinals.push(ordinal);
        }
        if !ordinals.is_empty() {
            self.cool(&ordinals, now);
            for ordinal in ordinals {
                self.set_sequence_at(ordinal);
            }
            self.collect(cooldown_seconds, now);
        }
        Ok(outcome)
    }

    /// Releases everything that a handle has here.
    pub fn release_handle(
        &mut self,
        handle: &str,
        cooldown_seconds: i32,
        now: Timestamp,
    ) -> Vec<IpAddr> {
        let addresses = self.addresses_of(handle);
        if !addresses.is_empty() {
            let ordinals: Vec<usize> = addresses
                .iter()
                .filter_map(|address| self.ordinal(*address))
                .collect();
            self.cool(&ordinals, now);
            self.collect(cooldown_seconds, now);
        }
        addresses
    }

    fn cool(&mut self, ordinals: &[usize], now: Timestamp) {
        let index = i64::try_from(self.spec.attributes.len()).unwrap_or(i64::MAX);
        self.spec.attributes.push(AllocationAttribute {
            released_at: Some(Time(now)),
            ..AllocationAttribute::default()
        });
        for ordinal in ordinals {
            self.spec.allocations[*ordinal] = Some(index);
        }
    }
}

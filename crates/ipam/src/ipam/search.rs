//! A request for addresses, and how far it has come.

use ipnet::IpNet;

use super::Tick;
use super::world::Labels;
use crate::error::{Error, Result};
use crate::nets;
use crate::pools::PoolRequest;
use crate::request::{Assignment, AutoAssign, Holder, HostReserved, Owner, Shortfall};

/// A request for addresses of one IP version, and how far it has come.
pub(super) struct Search<'a> {
    pub(super) request: &'a AutoAssign,
    pub(super) version: u8,
    pub(super) wanted: u32,
    pub(super) owner: Owner,
    pub(super) holder: Holder,
    pub(super) reserved: Option<&'a HostReserved>,
    pub(super) since: Tick,
    pub(super) found: Vec<IpNet>,
    pub(super) reasons: Vec<String>,
}

impl<'a> Search<'a> {
    pub(super) fn new(request: &'a AutoAssign, version: u8, wanted: u32, since: Tick) -> Self {
        let reserved = match version {
            4 => &request.reserved4,
            _ => &request.reserved6,
        };
        Search {
            request,
            version,
            wanted,
            owner: Owner::of_use(&request.host, Some(request.used_for)),
            holder: Holder {
                handle: request.handle.clone(),
                attributes: request.attributes.clone(),
                ..Holder::default()
            },
            reserved: reserved.as_ref(),
            since,
            found: Vec::new(),
            reasons: Vec::new(),
        }
    }
}

impl Search<'_> {
    pub(super) fn is_done(&self) -> bool {
        self.missing() == 0
    }

    pub(super) fn missing(&self) -> u32 {
        let found = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        self.wanted.saturating_sub(found)
    }

    pub(super) fn add_reason(&mut self, reason: String) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    pub(super) fn pool_request<'b>(&'b self, labels: &'b Labels) -> Result<PoolRequest<'b>> {
        let (pools, other) = match self.version {
            4 => (&self.request.pools4, 6),
            _ => (&self.request.pools6, 4),
        };
        if pools.iter().any(|net| nets::version(*net) != self.version) {
            return Err(Error::PoolOfOtherVersion(self.version, other));
        }
        Ok(PoolRequest {
            version: self.version,
            pools,
            host: &self.request.host,
            node_labels: labels,
            namespace_labels: self.request.namespace_labels.as_ref(),
            used_for: self.request.used_for,
            reserved: self.reserved,
        })
    }

    pub(super) fn into_assignment(self) -> Assignment {
        let assigned = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        let shortfall = (assigned < self.wanted).then(|| Shortfall {
            assigned,
            requested: self.wanted,
            version: self.version,
            reasons: self.reasons,
            host_reserved: self.reserved.map(|reserved| reserved.handle.clone()),
        });
        Assignment {
            addresses: self.found,
            shortfall,
        }
    }
}

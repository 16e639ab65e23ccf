//! Pools, and which of them a request may use.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::IpPool;
use tortie_api::ip_pool::AssignmentMode;
use tortie_api::net::parse_cidr;
use tortie_selector::Selector;
use tortie_store::{Key, Kind, Revision};

use crate::error::{Error, Result};
use crate::nets;
use crate::request::{HostReserved, Use};

/// A pool with its defaults applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    pub name: String,
    /// Its addresses.
    pub net: IpNet,
    /// The prefix length of its blocks.
    pub block_size: u8,
    /// What its addresses may be used for.
    pub allowed_uses: Vec<Use>,
    /// Whether addresses may be taken from it now.
    pub is_enabled: bool,
    /// Whether it is used without being asked for.
    pub is_automatic: bool,
    node_selector: String,
    namespace_selector: String,
    revision: Revision,
}

/// What is asked of pools.
#[derive(Debug)]
pub struct PoolRequest<'a> {
    /// 4 or 6.
    pub version: u8,
    /// Only these pools; empty for any.
    pub pools: &'a [IpNet],
    /// The node.
    pub host: &'a str,
    pub node_labels: &'a BTreeMap<String, String>,
    /// The labels of the namespace, if there is one.
    pub namespace_labels: Option<&'a BTreeMap<String, String>>,
    /// What the addresses are for.
    pub used_for: Use,
    /// What new blocks keep for the host itself.
    pub reserved: Option<&'a HostReserved>,
}

/// The pools that a request may use, and those that matter besides.
#[derive(Debug)]
pub struct Selected<'a> {
    /// In the order in which they are to be used.
    pub usable: Vec<&'a Pool>,
    /// Those that select node and namespace, or were asked for, whatever their use.
    pub selecting: Vec<&'a Pool>,
}

impl Pool {
    /// Reads a pool; none if its network makes no sense.
    pub fn new(pool: &IpPool) -> Option<Self> {
        let spec = &pool.spec;
        let net = parse_cidr(&spec.cidr)?.network();
        let default_size = if net.addr().is_ipv4() { 26 } else { 122 };
        let block_size = match spec.block_size {
            0 => default_size,
            size => u8::try_from(size).ok()?,
        };
        let is_refused = pool
            .status
            .conditions
            .iter()
            .any(|condition| condition.r#type == "Allocatable" && condition.status == "False");
        let is_enabled =
            !spec.disabled && !is_refused && pool.metadata.deletion_timestamp.is_none();
        let allowed_uses = if spec.allowed_uses.is_empty() {
            vec![Use::Workload, Use::Tunnel]
        } else {
            spec.allowed_uses.clone()
        };
        Some(Self {
            name: pool.metadata.name.clone(),
            net,
            block_size,
            allowed_uses,
            is_enabled,
            is_automatic: spec.assignment_mode != Some(AssignmentMode::Manual),
            node_selector: spec.node_selector.clone(),
            namespace_selector: spec.namespace_selector.clone(),
            revision: Revision(pool.metadata.resource_version.clone()),
        })
    }

    /// 4 or 6.
    pub fn version(&self) -> u8 {
        nets::version(self.net)
    }

    /// Whether a node with these labels may take addresses.
    pub fn selects_node(&self, labels: &BTreeMap<String, String>) -> Result<bool> {
        self.matches(&self.node_selector, labels)
    }

    /// Whether a namespace with these labels may take addresses; none counts as one without labels.
    pub fn selects_namespace(&self, labels: Option<&BTreeMap<String, String>>) -> Result<bool> {
        self.matches(&self.namespace_selector, labels.unwrap_or(&BTreeMap::new()))
    }

    /// The block that an address of the pool is in.
    pub fn block_of(&self, address: IpAddr) -> Option<IpNet> {
        nets::block_of(address, self.block_size)
    }

    pub(crate) fn stamp(&self) -> (Key, Revision) {
        (Key::global(Kind::IpPool, &self.name), self.revision.clone())
    }

    fn matches(&self, selector: &str, labels: &BTreeMap<String, String>) -> Result<bool> {
        if selector.is_empty() {
            return Ok(true);
        }
        match Selector::parse(selector) {
            Ok(selector) => Ok(selector.matches(labels)),
            Err(error) => Err(Error::Selector {
                pool: self.name.clone(),
                reason: error.to_string(),
            }),
        }
    }
}

/// The pool that an address is in.
pub fn containing(pools: &[Pool], address: IpAddr) -> Option<&Pool> {
    pools.iter().find(|pool| pool.net.contains(&address))
}

/// The enabled pool that an address is in.
pub fn enabled_containing(pools: &[Pool], address: IpAddr) -> Option<&Pool> {
    let mut enabled = pools.iter().filter(|pool| pool.is_enabled);
    enabled.find(|pool| pool.net.contains(&address))
}

/// Chooses the pools for a request. Pools that are asked for by name are used whatever they select.
pub fn select<'a>(pools: &'a [Pool], request: &PoolRequest<'_>) -> Result<Selected<'a>> {
    let max_block_size = max_block_size(request.version, request.reserved)?;
    let enabled = || {
        pools
            .iter()
            .filter(|pool| pool.is_enabled && pool.version() == request.version)
    };
    let qualified = || enabled().filter(|pool| pool.block_size <= max_block_size);
    if qualified().next().is_none() {
        return Err(Error::NoQualifiedPool);
    }
    let mut selecting = Vec::new();
    for net in request.pools {
        let net = net.trunc();
        // Of several pools with one network the last one counts.
        let pool = qualified().rfind(|pool| pool.net == net);
        selecting.push(pool.ok_or(Error::PoolNotEnabled(net))?);
    }
    if selecting.is_empty() {
        for pool in enabled().filter(|pool| pool.is_automatic) {
            if pool.selects_node(request.node_labels)?
                && pool.selects_namespace(request.namespace_labels)?
            {
                selecting.push(pool);
            }
        }
    }
    if selecting.is_empty() {
        return Err(Error::NoPoolForNode(request.host.to_owned()));
    }
    let mut usable = selecting.clone();
    usable.retain(|pool| pool.allowed_uses.contains(&request.used_for));
    if usable.is_empty() {
        return Err(Error::NoPoolForUse(request.used_for));
    }
    Ok(Selected { usable, selecting })
}

/// The smallest blocks, by prefix length, that have more addresses than the host keeps for itself.
fn max_block_size(version: u8, reserved: Option<&HostReserved>) -> Result<u8> {
    let bits = if version == 4 { 32 } else { 128 };
    let Some(reserved) = reserved else {
        return Ok(bits);
    };
    let count = reserved.start.saturating_add(reserved.end);
    let needed = u32::BITS - count.leading_zeros();
    match u8::try_from(needed) {
        Ok(needed) if count > 0 && needed < bits => Ok(bits - needed),
        _ => Err(Error::Refused(
            "HostReservedAttr has wrong parameters".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests;

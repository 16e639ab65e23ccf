//! Which service has which addresses, and which pools there are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::ip_pool::{AssignmentMode, IpPoolAllowedUse};
use tortie_api::net::{Cidr, parse_cidr};
use tortie_api::{IpPool, IpamBlock};
use tortie_ipam::block::Block;
use tortie_ipam::{LOAD_BALANCER, Owner, OwnerKind, attribute};

/// What a service is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServiceName {
    pub(super) namespace: String,
    pub(super) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServicePool {
    pub(super) net: IpNet,
    /// Whether addresses are given from it only where it is asked for.
    pub(super) is_manual: bool,
}

/// What was given to whom.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) pools: BTreeMap<String, ServicePool>,
    blocks: BTreeMap<IpNet, BTreeMap<IpAddr, (ServiceName, String)>>,
}

impl Ledger {
    /// Takes in a pool. Tells whether anything changed for services.
    pub(super) fn set_pool(&mut self, pool: &IpPool) -> bool {
        let name = &pool.metadata.name;
        let is_ours = pool
            .spec
            .allowed_uses
            .contains(&IpPoolAllowedUse::LoadBalancer)
            && pool.metadata.deletion_timestamp.is_none();
        match parse_cidr(&pool.spec.cidr)
            .map(Cidr::network)
            .filter(|_| is_ours)
        {
            None => self.pools.remove(name).is_some(),
            Some(net) => {
                let is_manual = pool.spec.assignment_mode == Some(AssignmentMode::Manual);
                let pool = ServicePool { net, is_manual };
                self.pools.insert(name.clone(), pool.clone()) != Some(pool)
            }
        }
    }

    pub(super) fn remove_pool(&mut self, name: &str) -> bool {
        self.pools.remove(name).is_some()
    }

    /// Takes in a block. Gives the services for which something changed.
    pub(super) fn set_block(&mut self, net: IpNet, block: IpamBlock) -> BTreeSet<ServiceName> {
        let owner = Owner {
            kind: OwnerKind::Virtual,
            name: LOAD_BALANCER.to_owned(),
        };
        let block = Block::load(block.spec).ok();
        let holders = match block.filter(|block| block.is_of(&owner)) {
            None => BTreeMap::new(),
            Some(block) => block.allocations().filter_map(holder).collect(),
        };
        self.replace(net, &holders)
    }

    pub(super) fn remove_block(&mut self, net: IpNet) -> BTreeSet<ServiceName> {
        self.replace(net, &BTreeMap::new())
    }

    /// All services that have addresses.
    pub(super) fn services(&self) -> BTreeSet<ServiceName> {
        let holders = self.blocks.values().flat_map(BTreeMap::values);
        holders.map(|(service, _)| service.clone()).collect()
    }

    /// The addresses of a service, by handle. More than one handle means that the service was made anew.
    pub(super) fn of(&self, service: &ServiceName) -> BTreeMap<String, BTreeSet<IpAddr>> {
        let mut handles: BTreeMap<String, BTreeSet<IpAddr>> = BTreeMap::new();
        for (address, (holder, handle)) in self.blocks.values().flatten() {
            if holder == service {
                handles.entry(handle.clone()).or_default().insert(*address);
            }
        }
        handles
    }

    fn replace(
        &mut self,
        net: IpNet,
        holders: &BTreeMap<IpAddr, (ServiceName, String)>,
    ) -> BTreeSet<ServiceName> {
        let before = if holders.is_empty() {
            self.blocks.remove(&net)
        } else {
            self.blocks.insert(net, holders.clone())
        };
        let before = before.unwrap_or_default();
        let gone = before
            .iter()
            .filter(|(at, of)| holders.get(*at) != Some(of));
        let new = holders
            .iter()
            .filter(|(at, of)| before.get(*at) != Some(of));
        let changed = gone.chain(new);
        changed.map(|(_, (service, _))| service.clone()).collect()
    }
}

fn holder(
    (address, attributes): (IpAddr, &tortie_api::ipam_block::AllocationAttribute),
) -> Option<(IpAddr, (ServiceName, String))> {
    let owner = &attributes.active_owner_attrs;
    let service = ServiceName {
        namespace: owner.get(attribute::NAMESPACE)?.clone(),
        name: owner.get(attribute::SERVICE)?.clone(),
    };
    Some((address, (service, attributes.handle_id.clone()?)))
}

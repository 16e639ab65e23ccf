//! The addresses that the host shows to workloads that speak BGP with it, on the interfaces of these workloads.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_kernel::route::{Batch, Scope};

use crate::desired::DesiredState;

/// What was given to interfaces, by their numbers. Other addresses there are others': some CNI plugins give the host's side
/// one.
#[derive(Debug, Default)]
pub(super) struct Peering {
    given: BTreeSet<(u32, IpAddr)>,
}

impl Peering {
    /// What is missing on workloads' interfaces, and what is not wanted there any more.
    pub(super) fn changes(&mut self, desired: &DesiredState, ipv6: bool) -> Batch {
        let interfaces = desired.workload_interfaces();
        let present: BTreeMap<u32, _> = interfaces
            .map(|(_, state)| (state.index, &state.addresses))
            .collect();
        let is_there = |(index, address): &(u32, IpAddr)| {
            let addresses = present.get(index);
            addresses.is_some_and(|all| all.contains(address))
        };
        let wanted = wanted(desired, ipv6);
        let mut batch = Batch::new();
        for (index, address) in wanted.iter().filter(|one| !is_there(one)) {
            batch.add_address_of_scope(*index, IpNet::from(*address), Scope::LINK);
        }
        // What is known of interfaces may be a moment old: one that was just added need not be there yet.
        self.given.retain(|(index, _)| present.contains_key(index));
        for (index, address) in self.given.difference(&wanted) {
            batch.delete_address(*index, IpNet::from(*address));
        }
        self.given.retain(is_there);
        self.given.extend(wanted);
        batch
    }
}

fn wanted(desired: &DesiredState, ipv6: bool) -> BTreeSet<(u32, IpAddr)> {
    let offered = desired.peering_addresses();
    let offered: Vec<IpAddr> = offered.filter(|one| ipv6 || one.is_ipv4()).collect();
    let peers = desired.active_workloads();
    let peers = peers.filter(|(_, endpoint)| endpoint.local_bgp_peer.is_some());
    let interfaces = peers.filter_map(|(interface, _)| desired.interface(interface));
    let wanted = interfaces.flat_map(|state| offered.iter().map(|one| (state.index, *one)));
    wanted.collect()
}

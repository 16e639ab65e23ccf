//! The addresses that the host shows to workloads that speak BGP with it, on the interfaces of these workloads.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_kernel::route::{Batch, Scope};

use crate::desired::DesiredState;

/// What is missing on workloads' interfaces, and what is not wanted there any more. The kernel's own link-local addresses
/// stay.
pub(super) fn changes(desired: &DesiredState, ipv6: bool) -> Batch {
    let mut batch = Batch::new();
    let offered: Vec<IpAddr> = desired.peering_addresses().collect();
    for (interface, endpoint) in desired.active_workloads() {
        let Some(state) = desired.interface(interface) else {
            continue;
        };
        let peers = endpoint.local_bgp_peer.is_some();
        let wanted = offered
            .iter()
            .filter(|one| peers && (ipv6 || one.is_ipv4()));
        let wanted: BTreeSet<IpAddr> = wanted.copied().collect();
        let present = state.addresses.iter().filter(|one| !is_link_local(one));
        let present: BTreeSet<IpAddr> = present.copied().collect();
        for address in wanted.difference(&present) {
            batch.add_address_of_scope(state.index, IpNet::from(*address), Scope::LINK);
        }
        for address in present.difference(&wanted) {
            batch.delete_address(state.index, IpNet::from(*address));
        }
    }
    batch
}

fn is_link_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

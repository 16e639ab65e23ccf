//! Addresses of virtual machines: a machine keeps them also while no pod runs it, and has two pods while it moves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use tortie_api::ipam_block::AllocationAttribute;

use super::{InUse, Loaded, State};
use crate::block::{Block, handle_of};
use crate::ipam::{MACHINE_MARK, machine_handle};
use crate::request::attribute;

/// Whether the machine that has an address is there, although no workload uses it. None if it is not a machine's.
pub(super) fn absence(held: &AllocationAttribute, in_use: &InUse) -> Option<State> {
    let owners = [&held.active_owner_attrs, &held.alternate_owner_attrs];
    let named = owners.iter().find_map(|facts| {
        Some((
            facts.get(attribute::NAMESPACE)?,
            facts.get(attribute::VMI_NAME)?,
        ))
    });
    let handle = handle_of(held).unwrap_or_default();
    // After its last pod went, only the handle tells whose an address is.
    let is_bare = owners.iter().all(|facts| facts.is_empty()) && handle.contains(MACHINE_MARK);
    if named.is_none() && !is_bare {
        return None;
    }
    let Some(machines) = &in_use.machines else {
        return Some(State::Unknown);
    };
    let mut machines = machines.iter();
    let found = match named {
        Some((namespace, name)) => {
            machines.find(|(in_namespace, of_name)| in_namespace == namespace && of_name == name)
        }
        None => machines.find(|(namespace, name)| is_handle_of(handle, namespace, name)),
    };
    Some(match (found, named) {
        (Some((namespace, name)), _) => State::InUse(format!("virtual machine {namespace}/{name}")),
        (None, Some((namespace, name))) => {
            State::Leaked(format!("virtual machine {namespace}/{name} does not exist"))
        }
        (None, None) => State::Leaked(format!("the virtual machine of {handle} does not exist")),
    })
}

/// Whether a handle is that of a machine, in whatever network.
fn is_handle_of(handle: &str, namespace: &str, name: &str) -> bool {
    let mut marks = handle.match_indices(MACHINE_MARK);
    marks.any(|(at, _)| machine_handle(&handle[..at], namespace, name) == handle)
}

/// The two pods of each machine that moves, by the address that both have.
pub(super) fn moving(loaded: &Loaded) -> BTreeMap<IpAddr, BTreeSet<String>> {
    let allocations = loaded.blocks.iter().flat_map(Block::allocations);
    let moving = allocations
        .filter(|(_, held)| held.alternate_owner_attrs.contains_key(attribute::VMI_NAME));
    moving
        .map(|(address, held)| {
            let owners = [&held.active_owner_attrs, &held.alternate_owner_attrs];
            let pods = owners.into_iter().filter_map(|facts| {
                let (namespace, pod) =
                    (facts.get(attribute::NAMESPACE)?, facts.get(attribute::POD)?);
                Some(format!("{namespace}/{pod}"))
            });
            (address, pods.collect())
        })
        .collect()
}

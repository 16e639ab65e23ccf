//! The comparison of what is held with who is there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::block_affinity::BlockAffinityState;
use tortie_api::ipam_block::AllocationAttribute;
use tortie_api::net::parse_cidr;

use super::{Allocation, InUse, Loaded, Problem, Report, State, Workload, machines};
use crate::block::{Block, handle_of};
use crate::pools::{self, Pool};
use crate::request::{Owner, OwnerKind, attribute};

/// Compares the objects with each other and with who lives in the cluster.
pub fn check(loaded: &Loaded, in_use: &InUse) -> Report {
    let pools: Vec<Pool> = loaded.pools.iter().filter_map(Pool::new).collect();
    let users = users(in_use);
    let mut report = Report::default();
    for block in &loaded.blocks {
        for (address, held) in block.allocations() {
            let allocation = allocation(block, address, held, in_use, &users);
            if let State::Leaked(_) = allocation.state {
                report.problems.push(Problem::Leaked(address));
            }
            report.allocations.push(allocation);
        }
    }
    check_users(&mut report, &users, &pools, &machines::moving(loaded));
    check_handles(&mut report, loaded);
    check_blocks(&mut report, loaded, &pools);
    check_affinities(&mut report, loaded, in_use);
    for invalid in &loaded.invalid {
        report.problems.push(Problem::Unreadable {
            key: invalid.key.to_string(),
            reason: invalid.reason.clone(),
        });
    }
    report.problems.sort();
    report
}

type Users = BTreeMap<IpAddr, Vec<String>>;

/// Who uses which address.
fn users(in_use: &InUse) -> Users {
    let mut users = Users::new();
    for workload in in_use.workloads.iter().flatten() {
        for address in &workload.addresses {
            users
                .entry(*address)
                .or_default()
                .push(workload.to_string());
        }
    }
    for (node, addresses) in in_use.nodes.iter().flatten() {
        for address in addresses {
            users
                .entry(*address)
                .or_default()
                .push(format!("node {node}"));
        }
    }
    for address in in_use.services.iter().flatten() {
        users
            .entry(*address)
            .or_default()
            .push("service".to_owned());
    }
    users
}

fn allocation(
    block: &Block,
    address: IpAddr,
    held: &AllocationAttribute,
    in_use: &InUse,
    users: &Users,
) -> Allocation {
    let attributes = held.active_owner_attrs.clone();
    let node = attributes.get(attribute::NODE);
    let block_owner = block.owner();
    let is_cooling_down = held.released_at.is_some();
    let is_borrowed = match (node, &block_owner) {
        (Some(node), Some(owner)) => owner.kind == OwnerKind::Host && owner.name != *node,
        (Some(_), None) => true,
        _ => false,
    };
    let state = match users.get(&address) {
        _ if is_cooling_down => State::Unknown,
        Some(users) => State::InUse(users.join(", ")),
        None => machines::absence(held, in_use).unwrap_or_else(|| absence(&attributes, in_use)),
    };
    Allocation {
        address,
        block: block.net(),
        block_owner,
        handle: handle_of(held).map(str::to_owned),
        sequence_number: block.sequence_of(address),
        attributes,
        is_cooling_down,
        is_borrowed,
        state,
    }
}

/// Why an address is held although nobody is known to use it.
fn absence(attributes: &BTreeMap<String, String>, in_use: &InUse) -> State {
    let get = |name: &str| attributes.get(name).map(String::as_str);
    let node_is_gone = |node: &str| {
        let nodes = in_use.nodes.as_ref();
        nodes.is_some_and(|nodes| !nodes.contains_key(node))
    };
    if get(attribute::TYPE).is_some_and(|r#type| attribute::TUNNELS.contains(&r#type)) {
        return match (get(attribute::NODE), &in_use.nodes) {
            (Some(node), Some(_)) if node_is_gone(node) => {
                State::Leaked(format!("node {node} does not exist"))
            }
            (Some(node), Some(_)) => {
                State::Leaked(format!("it is not the address of a tunnel of node {node}"))
            }
            _ => State::Unknown,
        };
    }
    if get(attribute::SERVICE).is_some() || get(attribute::TYPE) == Some("LoadBalancer") {
        return match in_use.services {
            Some(_) => State::Leaked("no service has it".to_owned()),
            None => State::Unknown,
        };
    }
    if let (Some(pod), Some(namespace)) = (get(attribute::POD), get(attribute::NAMESPACE)) {
        let Some(workloads) = &in_use.workloads else {
            return State::Unknown;
        };
        let mut same = workloads
            .iter()
            .filter(|workload| workload.name == pod && workload.namespace == namespace);
        return match same.next() {
            None => State::Leaked(format!("pod {namespace}/{pod} does not exist")),
            // It may be about to get this one.
            Some(workload) if workload.addresses.is_empty() => State::InUse(workload.to_string()),
            Some(_) => State::Leaked(format!("pod {namespace}/{pod} has another address")),
        };
    }
    match get(attribute::NODE) {
        Some(node) if node_is_gone(node) => State::Leaked(format!("node {node} does not exist")),
        // A container's that is no pod. What is kept back for other reasons says why.
        Some(_) if in_use.workloads.is_some() && get(attribute::NOTE).is_none() => {
            State::Leaked("no workload has it".to_owned())
        }
        _ => State::Unknown,
    }
}

fn check_users(
    report: &mut Report,
    users: &Users,
    pools: &[Pool],
    moving: &BTreeMap<IpAddr, BTreeSet<String>>,
) {
    let held: BTreeSet<IpAddr> = report
        .allocations
        .iter()
        .filter(|allocation| !allocation.is_cooling_down)
        .map(|allocation| allocation.address)
        .collect();
    for (address, users) in users {
        let (address, user) = (*address, users.join(", "));
        if pools::containing(pools, address).is_none() {
            report
                .problems
                .push(Problem::OutsidePools { address, user });
        } else if !held.contains(&address) {
            report.problems.push(Problem::Unallocated { address, user });
        }
        let is_moving = moving
            .get(&address)
            .is_some_and(|pods| users.iter().all(|user| pods.contains(user)));
        if users.len() > 1 && !is_moving {
            let users = users.clone();
            report.problems.push(Problem::UsedTwice { address, users });
        }
    }
}

fn check_handles(report: &mut Report, loaded: &Loaded) {
    let mut held: BTreeMap<(&str, IpNet), i64> = BTreeMap::new();
    let mut problems = Vec::new();
    let known: BTreeSet<&str> = loaded
        .handles
        .iter()
        .map(|handle| handle.spec.handle_id.as_str())
        .collect();
    for allocation in &report.allocations {
        if let Some(handle) = &allocation.handle {
            *held.entry((handle, allocation.block)).or_default() += 1;
            if !known.contains(handle.as_str()) {
                problems.push(Problem::MissingHandle {
                    handle: handle.clone(),
                    address: allocation.address,
                });
            }
        }
    }
    for handle in &loaded.handles {
        let id = &handle.spec.handle_id;
        let mut total = 0;
        let mut mentioned = BTreeMap::new();
        for (cidr, counted) in &handle.spec.block {
            if let Some(cidr) = parse_cidr(cidr) {
                mentioned.insert(cidr.network(), *counted);
            }
        }
        let blocks = held
            .keys()
            .filter(|(handle, _)| handle == id)
            .map(|(_, net)| *net);
        let blocks: BTreeSet<IpNet> = blocks.chain(mentioned.keys().copied()).collect();
        for block in blocks {
            let counted = mentioned.get(&block).copied().unwrap_or(0);
            let held = held.get(&(id.as_str(), block)).copied().unwrap_or(0);
            total += held;
            if counted != held {
                problems.push(Problem::HandleCount {
                    handle: id.clone(),
                    block,
                    counted,
                    held,
                });
            }
        }
        if total == 0 {
            problems.push(Problem::EmptyHandle(id.clone()));
        }
    }
    report.problems.extend(problems);
}

fn check_blocks(report: &mut Report, loaded: &Loaded, pools: &[Pool]) {
    let claims: BTreeSet<(&Owner, IpNet)> = loaded
        .affinities
        .iter()
        .map(|(owner, net, _)| (owner, *net))
        .collect();
    let mut nets: Vec<IpNet> = loaded.blocks.iter().map(Block::net).collect();
    nets.sort_unstable();
    for pair in nets.windows(2) {
        if pair[0].contains(&pair[1]) || pair[1].contains(&pair[0]) {
            report
                .problems
                .push(Problem::BlocksOverlap(pair[0], pair[1]));
        }
    }
    for block in &loaded.blocks {
        let net = block.net();
        if !pools.iter().any(|pool| pool.net.contains(&net)) {
            report.problems.push(Problem::BlockOutsidePools(net));
        }
        match block.owner() {
            Some(owner) if !claims.contains(&(&owner, net)) => {
                report.problems.push(Problem::MissingAffinity(net, owner));
            }
            None if block.is_empty() => report.problems.push(Problem::AbandonedBlock(net)),
            _ => {}
        }
    }
}

fn check_affinities(report: &mut Report, loaded: &Loaded, in_use: &InUse) {
    let owners: BTreeMap<IpNet, Option<Owner>> = loaded
        .blocks
        .iter()
        .map(|block| (block.net(), block.owner()))
        .collect();
    for (owner, net, state) in &loaded.affinities {
        let (net, claim) = (*net, owner.clone());
        match owners.get(&net) {
            None => report
                .problems
                .push(Problem::AffinityWithoutBlock(net, claim)),
            Some(found) if found.as_ref() != Some(owner) => {
                report.problems.push(Problem::StaleAffinity(net, claim));
            }
            Some(_) if is_open(*state) => {
                report
                    .problems
                    .push(Problem::UnconfirmedAffinity(net, claim));
            }
            Some(_) => {}
        }
        let nodes = in_use.nodes.as_ref();
        let is_gone = nodes.is_some_and(|nodes| !nodes.contains_key(&owner.name));
        if owner.kind == OwnerKind::Host && is_gone {
            report.problems.push(Problem::OwnerGone(net, owner.clone()));
        }
    }
}

fn is_open(state: BlockAffinityState) -> bool {
    matches!(
        state,
        BlockAffinityState::Pending | BlockAffinityState::PendingDeletion
    )
}

impl std::fmt::Display for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

//! Lists of states and what the data plane holds after them.
//!
//! A state is all objects that there are. Each list also runs backwards, with everything removed between the states, one
//! update at a time, and in one go; what the data plane holds in the end must always be the same.

mod address;
mod data_plane;
mod parameters;
mod random;
mod route;
mod tunnel;

use std::net::IpAddr;

use ipnet::IpNet;

use super::Network;
use crate::config::Config;
use crate::input::{
    Allocation, Block, EncapMode, IpPool, Node, Update, WorkloadEndpoint, WorkloadEndpointKey,
};
use data_plane::DataPlane;

const LOCAL: &str = "node-a";

/// Runs a list of states in all ways, and compares what the data plane holds of one kind.
#[track_caller]
fn check(states: &[Vec<Update>], kind: &str, expected: &[&str]) {
    check_with(&Config::for_node(LOCAL), states, kind, expected);
}

#[track_caller]
fn check_with(config: &Config, states: &[Vec<Update>], kind: &str, expected: &[&str]) {
    let last = states.last().cloned().unwrap_or_default();
    let squashed = run(config, &[flatten(&[], &last)]);
    assert_eq!(squashed.lines(kind), expected, "in one go");

    let expansions: [(&str, Vec<Vec<Update>>); 4] = [
        ("as it is", states.to_vec()),
        (
            "backwards and to the end",
            states.iter().rev().chain([&last]).cloned().collect(),
        ),
        (
            "with everything removed in between",
            states
                .iter()
                .flat_map(|state| [state.clone(), Vec::new()])
                .chain([last.clone()])
                .collect(),
        ),
        ("each state backwards", {
            let reversed = |state: &Vec<Update>| state.iter().rev().cloned().collect();
            states.iter().map(reversed).collect()
        }),
    ];
    for (name, states) in expansions {
        let steps = steps(&states);
        assert_eq!(run(config, &steps), squashed, "{name}");
        let single: Vec<Vec<Update>> = steps.concat().into_iter().map(|one| vec![one]).collect();
        assert_eq!(run(config, &single), squashed, "{name}, one at a time");
        assert_eq!(
            run(config, &[steps.concat()]),
            squashed,
            "{name}, in one go"
        );
    }
}

/// Feeds updates, with a flush after each list of them; the datastore is in sync after the first.
fn run(config: &Config, steps: &[Vec<Update>]) -> DataPlane {
    let mut network = Network::new(config);
    let mut data_plane = DataPlane::default();
    for (number, step) in steps.iter().enumerate() {
        for update in step {
            network.on_update(update);
        }
        flush(&mut network, number > 0, &mut data_plane);
    }
    flush(&mut network, true, &mut data_plane);
    data_plane
}

/// One flush; a second one must have nothing to say.
fn flush(network: &mut Network, in_sync: bool, data_plane: &mut DataPlane) {
    let mut messages = Vec::new();
    network.flush_config(in_sync, &mut |message| messages.push(message));
    network.flush(in_sync, &mut |message| messages.push(message));
    data_plane.apply(messages);
    network.flush_config(in_sync, &mut |message| panic!("sent again: {message:?}"));
    network.flush(in_sync, &mut |message| panic!("sent again: {message:?}"));
}

/// The updates that lead from each state to the next.
fn steps(states: &[Vec<Update>]) -> Vec<Vec<Update>> {
    let mut before: &[Update] = &[];
    let mut steps = Vec::new();
    for state in states {
        steps.push(flatten(before, state));
        before = state;
    }
    steps
}

fn flatten(before: &[Update], state: &[Update]) -> Vec<Update> {
    let gone = before.iter().map(absent).filter(|gone| {
        let same_key = |update: &Update| absent(update) == *gone;
        !state.iter().any(same_key)
    });
    gone.chain(state.iter().cloned()).collect()
}

/// The update that says that an object is absent.
fn absent(update: &Update) -> Update {
    match update.clone() {
        Update::WorkloadEndpoint(key, _) => Update::WorkloadEndpoint(key, None),
        Update::Service(name, _) => Update::Service(name, None),
        Update::IpPool(range, _) => Update::IpPool(range, None),
        Update::Block(range, _) => Update::Block(range, None),
        Update::Node(name, _) => Update::Node(name, None),
        Update::Configuration(name, _) => Update::Configuration(name, None),
        Update::Cluster(_) => Update::Cluster(None),
        Update::BgpConfiguration(_) => Update::BgpConfiguration(None),
        other => panic!("not for these tests: {other:?}"),
    }
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A node with an address for BGP.
fn node(name: &str, address: &str) -> Update {
    node_with(name, address, |_| {})
}

fn node_with(name: &str, address: &str, change: impl FnOnce(&mut Node)) -> Update {
    let mut node = Node::default();
    match net(address) {
        address @ IpNet::V4(_) => node.bgp_ipv4 = Some(address),
        address @ IpNet::V6(_) => node.bgp_ipv6 = Some(address),
    }
    change(&mut node);
    Update::Node(name.to_owned(), Some(Box::new(node)))
}

/// A node with only what `change` sets.
fn bare_node(name: &str, change: impl FnOnce(&mut Node)) -> Update {
    let mut node = Node::default();
    change(&mut node);
    Update::Node(name.to_owned(), Some(Box::new(node)))
}

fn pool(range: &str, change: impl FnOnce(&mut IpPool)) -> Update {
    let mut pool = IpPool::default();
    change(&mut pool);
    Update::IpPool(net(range), Some(pool))
}

fn vxlan_pool(range: &str) -> Update {
    pool(range, |pool| pool.vxlan = EncapMode::Always)
}

fn cross_subnet_pool(range: &str) -> Update {
    pool(range, |pool| pool.vxlan = EncapMode::CrossSubnet)
}

fn block(range: &str, node: Option<&str>, allocations: &[(&str, &str)]) -> Update {
    let allocations = allocations.iter().map(|(address, node)| Allocation {
        address: ip(address),
        node: (*node).to_owned(),
    });
    Update::Block(
        net(range),
        Some(Block {
            node: node.map(str::to_owned),
            allocations: allocations.collect(),
        }),
    )
}

fn workload(node: &str, name: &str, nets: &[&str]) -> Update {
    let (ipv4_nets, ipv6_nets) = nets
        .iter()
        .map(|text| net(text))
        .partition(|net| matches!(net, IpNet::V4(_)));
    Update::WorkloadEndpoint(
        WorkloadEndpointKey {
            node: node.to_owned(),
            orchestrator: "k8s".to_owned(),
            workload: format!("default/{name}"),
            endpoint: "eth0".to_owned(),
        },
        Some(Box::new(WorkloadEndpoint {
            interface: format!("cali{name}"),
            ipv4_nets,
            ipv6_nets,
            ..WorkloadEndpoint::default()
        })),
    )
}

//! Faults of real processes and machines, drawn at random under steady traffic: kills of the agent, of its datastore and of
//! `tortie up`, a datastore that hangs or forgets, a full disk, a clock that jumps.
//!
//! In every test run a few of them; `bench/chaos` runs as many as it is told to and prints figures.

mod agent;
mod up;

use std::time::Instant;

use serde_json::json;
use tortie_api::{Kind, Resource};
use tortie_testkit::chaos::{self, Steady};
use tortie_testkit::net::{Packet, Ports, Probe, Prober};

use crate::killed::objects::{CLOSED, OPEN, policy, resource, rule};
use crate::killed::site::Pods;
use crate::killed::{PATIENCE, Plane};

/// How many faults each test run has, of each sort.
const FEW: usize = 15;

/// A port that is open as the datastore says.
const CHANGING: u16 = 7004;

#[test]
fn a_few_faults_of_an_agent_with_etcd() {
    chaos::run(&mut agent::World::new(Plane::Nftables, 1), FEW).check();
}

#[test]
fn a_few_faults_of_up() {
    chaos::run(&mut up::World::new(1), FEW).check();
}

/// Prints figures. The seed and the number of faults are in the environment.
#[test]
#[ignore = "takes as long as it is told to; bench/chaos runs it"]
fn many_faults() {
    let (faults, seed) = chaos::asked_for();
    let figures = chaos::run(&mut agent::World::new(Plane::Nftables, seed), faults);
    print!("{}", figures.lines("agent_etcd"));
    let figures = chaos::run(&mut up::World::new(seed), faults);
    print!("{}", figures.lines("up"));
}

/// The policy that decides about the server: one more port is open, or not.
fn guard(is_open: bool) -> Resource {
    let mut ports = vec![OPEN];
    ports.extend(is_open.then_some(CHANGING));
    let rules = ports.iter().map(|port| rule("Allow", "UDP", *port, None));
    let rules: Vec<_> = rules.collect();
    let spec = json!({
        "order": 100, "selector": "role == 'server'", "types": ["Ingress"], "ingress": rules,
    });
    policy("guard", &spec)
}

fn information(is_ready: bool) -> Resource {
    let spec = json!({"datastoreReady": is_ready});
    resource(Kind::ClusterInformation, "default", &spec)
}

fn steady(pods: &Pods) -> Steady {
    Steady {
        open: pods.datagrams(OPEN),
        closed: pods.datagrams(CLOSED),
    }
}

/// Waits until packets arrive, or do not, as the policy says.
#[track_caller]
fn await_right(pods: &Pods, is_open: bool, log: impl Fn() -> String) {
    let mut prober = Prober::new();
    let from = prober.add_site(&pods.client.namespace);
    let to = prober.add_site(&pods.server.namespace);
    let addresses = pods.client.addresses.iter().zip(&pods.server.addresses);
    let mut packets = Vec::new();
    let mut expected = Vec::new();
    for (source, destination) in addresses {
        for (port, is_allowed) in [(OPEN, true), (CLOSED, false), (CHANGING, is_open)] {
            packets.push(Probe {
                from,
                to,
                source: *source,
                destination: *destination,
                packet: Packet::Udp(Ports::to(port)),
            });
            expected.push(is_allowed);
        }
    }
    let end = Instant::now() + PATIENCE;
    loop {
        let arrived = prober.probe_all(&packets).unwrap();
        if arrived == expected {
            return;
        }
        assert!(
            Instant::now() < end,
            "expected {expected:?}, and it is {arrived:?}: {}",
            log()
        );
    }
}

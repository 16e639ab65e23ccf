//! Processes are killed again and again, while everything changes: packets never see it, and the kernel ends up as if it had
//! never happened.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has nothing better to do than to say where"
)]

mod agent_process;
mod chaos;
mod churn;
mod objects;
mod site;
mod snapshot;

use std::thread;
use std::time::{Duration, Instant};

use agent_process::AgentProcess;
use churn::Churn;
use objects::{CLOSED, CLOSED_BY_SET, OPEN, OPEN_BY_SET};
use site::Site;
use snapshot::snapshot;
use tortie_testkit::Random;

/// After so many kills the kernel is compared with that of a machine that has just been started.
const BETWEEN_COMPARISONS: u64 = 10;

/// How late after its start, or after it was ready, an agent is killed at most.
const AFTER_START: u64 = 150_000;
const AFTER_READY: u64 = 60_000;

/// How long the kernel may take to be as it should, once nothing changes any more.
const PATIENCE: Duration = Duration::from_secs(30);

/// A data plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plane {
    Nftables,
    Iptables,
}

#[test]
fn nftables_is_right_however_often_the_agent_is_killed() {
    kill_often(Plane::Nftables, 100);
}

#[test]
fn iptables_is_right_however_often_the_agent_is_killed() {
    kill_often(Plane::Iptables, 100);
}

fn kill_often(plane: Plane, times: u64) {
    let site = Site::new();
    let mut agent = AgentProcess::start(&site.pods.node, site.etcd.endpoint(), plane);
    agent.await_ready();
    for port in [OPEN, OPEN_BY_SET] {
        // Routes come a moment after the rules.
        site.pods.datagrams(port).await_arrivals();
    }
    let flows = [OPEN, OPEN_BY_SET, CLOSED, CLOSED_BY_SET];
    let flows = flows.map(|port| site.pods.datagrams(port));
    let churn = Churn::start(&site);
    let mut random = Random::new(0x7027_1e00 + times);
    let mut killed_when_ready = 0;
    let mut starts = Vec::new();
    for number in 1..=times {
        let delay = if random.once_in(2) {
            agent.await_ready();
            random.below(AFTER_READY)
        } else {
            random.below(AFTER_START)
        };
        thread::sleep(Duration::from_micros(delay));
        killed_when_ready += u64::from(agent.is_ready());
        agent.kill();
        starts.push(Instant::now());
        agent = AgentProcess::start(&site.pods.node, site.etcd.endpoint(), plane);
        if number % BETWEEN_COMPARISONS == 0 {
            churn.while_paused(|| compare(&site, &mut agent, plane));
        }
    }
    assert!(
        killed_when_ready >= times / 3 && killed_when_ready < times,
        "of {times} agents {killed_when_ready} were killed when they were ready"
    );
    churn.end(times * 2);
    let [open, open_by_set, closed, closed_by_set] = flows;
    assert_eq!(closed.arrived(), 0, "the closed port was open");
    assert_eq!(closed_by_set.arrived(), 0, "others than members came in");
    for (what, flow) in [("open port", open), ("port for members", open_by_set)] {
        let sent = flow.sent();
        assert!(sent > 10 * times, "only {sent} datagrams were sent");
        let lost: Vec<String> = flow
            .lost()
            .into_iter()
            .map(|at| when(at, &starts))
            .collect();
        assert!(
            lost.is_empty(),
            "lost of {sent} to the {what}: {}",
            lost.join(", ")
        );
    }
}

/// A moment as people can look for it: how long after the start of which agent.
fn when(moment: Instant, starts: &[Instant]) -> String {
    let number = starts.iter().filter(|start| **start <= moment).count();
    let start = number.checked_sub(1).and_then(|last| starts.get(last));
    let after = start.map(|start| moment.duration_since(*start));
    format!("{after:?} after start {number}")
}

/// What was left by agents that were killed is what an agent makes that has never been.
fn compare(site: &Site, agent: &mut AgentProcess, plane: Plane) {
    agent.await_ready();
    let fresh = site.fresh_node();
    let mut elsewhere = AgentProcess::start(&fresh.node, &fresh.endpoint, plane);
    elsewhere.await_ready();
    let end = Instant::now() + PATIENCE;
    loop {
        let (here, there) = (
            snapshot(&site.pods.node, plane),
            snapshot(&fresh.node, plane),
        );
        if here == there {
            return;
        }
        assert!(
            Instant::now() < end,
            "the kernel has\n{}\nand the one of a machine that has just been started has not; that one has\n{}",
            snapshot::only_in(&here, &there),
            snapshot::only_in(&there, &here),
        );
        thread::sleep(Duration::from_millis(20));
    }
}

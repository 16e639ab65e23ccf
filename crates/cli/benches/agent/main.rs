//! The whole agent against a real etcd, and for its start a real kube-apiserver too, in one network namespace: how soon it is ready, how soon a change is enforced as
//! packets see it, and what it needs.
//!
//! Prints `name value unit` lines. Arguments pick data planes, `nftables` or `iptables`, and what is measured, by the first
//! part of its name: `world-a`.

#![expect(clippy::print_stdout, reason = "the figures are the output")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on has nothing better to do than to say where"
)]

mod kubernetes;
#[path = "../support/large_cluster.rs"]
mod large_cluster;
mod process;
mod traffic;
#[path = "../support/usage.rs"]
mod usage;
mod world;

use std::time::Duration;

use tortie_testkit::Etcd;
use tortie_testkit::net::{Node, Pod};

use process::AgentProcess;
use traffic::Traffic;
use world::Store;

/// How often a policy is changed.
const CHANGES: usize = 60;

/// Measures something with a data plane, on a node of its own.
type Measure = fn(&'static str);

/// What can be measured.
const MEASUREMENTS: [(&str, Measure); 6] = [
    ("idle", idle),
    ("world-a", world_a),
    ("rules-12500", many_rules),
    ("set-100000", large_set),
    ("endpoints-500", many_endpoints),
    ("kubernetes", kubernetes::start),
];

fn main() {
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let dataplanes = wanted(&["nftables", "iptables"], &given);
    let measurements = wanted(&MEASUREMENTS.map(|(name, _)| name), &given);
    for dataplane in dataplanes {
        for (name, measure) in MEASUREMENTS {
            if measurements.contains(&name) {
                measure(dataplane);
            }
        }
    }
}

/// Those of all that are given, or all if none is.
fn wanted(all: &[&'static str], given: &[String]) -> Vec<&'static str> {
    let is_given = |name: &&&str| given.iter().any(|given| given == **name);
    let some: Vec<&str> = all.iter().filter(is_given).copied().collect();
    if some.is_empty() { all.to_vec() } else { some }
}

/// A node with two pods, an etcd beside it, and all of it in one network namespace.
struct Setting {
    node: Node,
    client: Pod,
    server: Pod,
    etcd: Etcd,
    dataplane: &'static str,
}

impl Setting {
    fn new(dataplane: &'static str) -> Self {
        let mut node = Node::new().unwrap();
        let client = node
            .add_pod("caliclient", &[world::CLIENT.parse().unwrap()])
            .unwrap();
        let server = node
            .add_pod("caliserver", &[world::SERVER.parse().unwrap()])
            .unwrap();
        let etcd = node.namespace().run(Etcd::start).unwrap().unwrap();
        Self {
            node,
            client,
            server,
            etcd,
            dataplane,
        }
    }

    /// Runs a part of the benchmark in the node's namespace.
    fn run(&self, work: impl FnOnce(&Store) + Send) {
        let endpoint = self.etcd.endpoint().to_owned();
        self.node
            .namespace()
            .run(move || work(&Store::connect(&endpoint)))
            .unwrap();
    }

    fn agent(&self) -> AgentProcess {
        let datastore = [
            ("DATASTORE_TYPE", "etcdv3"),
            ("ETCD_ENDPOINTS", self.etcd.endpoint()),
        ];
        AgentProcess::start(world::NODE, &datastore, self.dataplane)
    }

    fn traffic(&self) -> Traffic {
        Traffic::start(&self.client.namespace, &self.server.namespace)
    }

    fn print(&self, name: &str, value: f64, unit: &str) {
        print(self.dataplane, name, value, unit);
    }

    fn print_ready(&self, name: &str, agent: &AgentProcess) {
        print_ready(self.dataplane, name, agent);
    }

    fn print_memory(&self, name: &str, agent: &AgentProcess) {
        print_memory(self.dataplane, name, agent);
    }

    /// Allows and denies the probes in turn, and tells how soon packets show it.
    fn print_changes(&self, name: &str, store: &Store) {
        let traffic = self.traffic();
        let mut times = Vec::new();
        store.probe_policy(true);
        traffic.wait_until(true);
        for index in 0..CHANGES {
            let is_allowed = index % 2 == 1;
            std::thread::sleep(Duration::from_millis(20));
            store.probe_policy(is_allowed);
            let start = traffic.now();
            times.push(traffic.wait_until(is_allowed).saturating_sub(start));
        }
        times.sort();
        let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
        self.print(&format!("{name}/change-enforced-p50"), at(50), "ms");
        self.print(&format!("{name}/change-enforced-p99"), at(99), "ms");
    }

    fn print_enforced(&self, name: &str, traffic: &Traffic, is_allowed: bool, start: Duration) {
        let took = traffic.wait_until(is_allowed).saturating_sub(start);
        self.print(name, took.as_secs_f64(), "s");
    }
}

fn print(dataplane: &str, name: &str, value: f64, unit: &str) {
    println!("{dataplane}/{name} {value:.3} {unit}");
}

fn print_ready(dataplane: &str, name: &str, agent: &AgentProcess) {
    let (ready, cpu) = (agent.ready.as_secs_f64(), agent.cpu_seconds());
    print(dataplane, &format!("{name}/ready"), ready, "s");
    print(dataplane, &format!("{name}/ready-cpu"), cpu, "s");
}

fn print_memory(dataplane: &str, name: &str, agent: &AgentProcess) {
    for (what, field) in [
        ("resident", "VmRSS:"),
        ("resident-anonymous", "RssAnon:"),
        ("resident-peak", "VmHWM:"),
    ] {
        let value = agent.megabytes(field);
        print(dataplane, &format!("{name}/{what}"), value, "MB");
    }
}

fn idle(dataplane: &'static str) {
    let setting = Setting::new(dataplane);
    setting.run(|store| {
        store.probe_pods();
        let agent = setting.agent();
        setting.print_ready("idle", &agent);
        setting.print_memory("idle", &agent);
        setting.print_changes("idle", store);
    });
}

fn world_a(dataplane: &'static str) {
    let setting = Setting::new(dataplane);
    setting.run(|store| {
        store.probe_pods();
        store.remote_endpoints(10_000);
        store.local_endpoints(108);
        store.policies(1_000);
        let agent = setting.agent();
        setting.print_ready("world-a", &agent);
        setting.print_changes("world-a", store);
        setting.print_memory("world-a", &agent);
    });
}

fn many_rules(dataplane: &'static str) {
    let setting = Setting::new(dataplane);
    setting.run(|store| {
        store.probe_pods();
        let _agent = setting.agent();
        let traffic = setting.traffic();
        traffic.wait_until(true);
        store.rules(12_500, false);
        traffic.wait_until(false);
        let (first, last) = world::prepared_rules(12_500);
        store.remove_rules();
        traffic.wait_until(true);
        store.put_all(first);
        traffic.wait_until(false);
        let start = traffic.now();
        store.put_all(last);
        setting.print_enforced("rules-12500/enforced", &traffic, true, start);
        std::thread::sleep(Duration::from_millis(500));
        let change = world::prepared_rule_change();
        store.put_all(change);
        let start = traffic.now();
        setting.print_enforced("rules-12500/one-changed", &traffic, false, start);
    });
}

fn large_set(dataplane: &'static str) {
    let setting = Setting::new(dataplane);
    setting.run(|store| {
        store.probe_pods();
        store.set_policy();
        let _agent = setting.agent();
        let traffic = setting.traffic();
        traffic.wait_until(false);
        let (most, last) = world::prepared_sets(100_000, true);
        store.put_all(most);
        std::thread::sleep(Duration::from_secs(2));
        let start = traffic.now();
        store.put_all(last);
        setting.print_enforced("set-100000/last-tenth-enforced", &traffic, true, start);
        std::thread::sleep(Duration::from_secs(1));
        for (name, has_client) in [("removed", false), ("added", true)] {
            let (_, last) = world::prepared_sets(100_000, has_client);
            store.put_all(last);
            let start = traffic.now();
            setting.print_enforced(
                &format!("set-100000/100-{name}"),
                &traffic,
                has_client,
                start,
            );
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    let setting = Setting::new(dataplane);
    setting.run(|store| {
        store.probe_pods();
        store.set_policy();
        let _agent = setting.agent();
        let traffic = setting.traffic();
        traffic.wait_until(false);
        let (most, last) = world::prepared_sets(100_000, true);
        let start = traffic.now();
        store.put_all(most);
        store.put_all(last);
        setting.print_enforced("set-100000/written-and-enforced", &traffic, true, start);
    });
}

fn many_endpoints(dataplane: &'static str) {
    let setting = Setting::new(dataplane);
    setting.run(|store| {
        store.probe_pods();
        store.local_endpoints(498);
        store.policies(100);
        let agent = setting.agent();
        setting.print_ready("endpoints-500", &agent);
        setting.print_memory("endpoints-500", &agent);
    });
}

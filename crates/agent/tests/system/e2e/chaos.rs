//! Faults drawn at random under steady traffic: what is denied never passes, what is allowed is never lost, and soon after a
//! fault everything is as the datastore says.
//!
//! In every test run a few of them; `bench/chaos` runs as many as it is told to and prints figures.

mod troubled_store;

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tortie_api::{Kind, Resource};
use tortie_store::Store;
use tortie_testkit::Random;
use tortie_testkit::chaos::{self, Steady};

use self::troubled_store::{Trouble, TroubledStore};
use crate::e2e::agent::RunningAgent;
use crate::e2e::flow::{Machine, PATIENCE};
use crate::e2e::objects::{labelled, policy, resource};
use crate::e2e::planes::Plane;
use crate::e2e::setting::{NODE, Setting};

on_both_data_planes!(a_few_faults);

/// How many faults each test run has.
const FEW: usize = 30;

/// Ports of the server: always open, never open, and open as the datastore says.
const OPEN_PORT: u16 = 7000;
const CLOSED_PORT: u16 = 7001;
const CHANGING_PORT: u16 = 7002;

/// A port of another pod, open for members of a set.
const MEMBERS_PORT: u16 = 7003;

/// Nobody tells of changes to legacy rules and sets: somebody has to look.
const REFRESH: [(&str, &str); 2] = [
    ("iptablesrefreshinterval", "1"),
    ("ipsetsrefreshinterval", "1"),
];

/// What happens to the node.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Datastore(Trouble),
    /// Its contents are being moved.
    Locked,
    /// The object that says that it is ready is gone.
    Uninitialized,
    Restart,
    /// The agent starts with the other data plane.
    Switch,
    /// Somebody deletes rules that decide nothing about the steady traffic.
    Deleted,
    /// Somebody empties such sets.
    Emptied,
    /// An object that cannot be read, or that the kernel refuses.
    Bad(usize),
}

struct World {
    setting: Setting,
    client: Machine,
    server: Machine,
    other: Machine,
    store: Arc<TroubledStore>,
    plane: Plane,
    agent: Option<RunningAgent>,
    random: Random,
    is_open: bool,
}

fn a_few_faults(plane: Plane) {
    chaos::run(&mut World::new(plane, 1), FEW).check();
}

/// Prints figures. The seed and the number of faults are in the environment.
#[test]
#[ignore = "takes as long as it is told to; bench/chaos runs it"]
fn many_faults() {
    let (faults, seed) = chaos::asked_for();
    for plane in [Plane::Nftables, Plane::Iptables] {
        let figures = chaos::run(&mut World::new(plane, seed), faults);
        print!("{}", figures.lines(&format!("{plane:?}").to_lowercase()));
    }
}

impl World {
    fn new(plane: Plane, seed: u64) -> Self {
        let mut setting = Setting::new();
        let client = setting.add_pod("client", 1, &json!({"role": "client"}));
        let server = setting.add_pod("server", 2, &json!({"role": "server"}));
        let other = setting.add_pod("other", 3, &json!({"role": "other"}));
        let rule = json!({
            "action": "Allow", "protocol": "UDP", "source": {"selector": "role == 'client'"},
            "destination": {"ports": [MEMBERS_PORT]},
        });
        let spec = json!({"order": 100, "selector": "role == 'other'", "types": ["Ingress"], "ingress": [rule]});
        setting.put(policy("members", &spec));
        let store = Arc::new(TroubledStore::new(Arc::clone(&setting.store)));
        let mut world = Self {
            setting,
            client,
            server,
            other,
            store,
            plane,
            agent: None,
            random: Random::new(seed),
            is_open: false,
        };
        world.guard();
        world.start();
        world
    }

    /// Opens or closes the port that changes, or not.
    fn change(&mut self) {
        self.is_open = self.random.once_in(2);
        self.guard();
    }

    fn guard(&self) {
        let mut ports = vec![OPEN_PORT];
        ports.extend(self.is_open.then_some(CHANGING_PORT));
        let rule = |protocol: &str| json!({"action": "Allow", "protocol": protocol, "destination": {"ports": ports}});
        let spec = json!({
            "order": 100, "selector": "role == 'server'", "types": ["Ingress"],
            "ingress": [rule("UDP"), rule("TCP")],
        });
        self.setting.put(policy("guard", &spec));
    }

    fn start(&mut self) {
        let store = Arc::clone(&self.store) as Arc<dyn Store>;
        self.agent = Some(self.setting.start_agent_on(store, self.plane, &REFRESH));
    }

    /// Empties the sets of selectors, of which only another pod's policy has one.
    fn empty_sets(&self) {
        let is_nftables = self.plane == Plane::Nftables;
        let listed = if is_nftables {
            self.setting.run("nft", "list sets ip")
        } else {
            self.setting.run("ipset", "list -name")
        };
        let names: Vec<&str> = listed
            .split_whitespace()
            .filter(|word| word.starts_with("cali40s"))
            .collect();
        assert!(!names.is_empty(), "{listed}");
        for name in names {
            if is_nftables {
                self.setting
                    .run("nft", &format!("flush set ip calico {name}"));
            } else {
                self.setting.run("ipset", &format!("flush {name}"));
            }
        }
    }

    fn stop(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.end();
        }
    }
}

impl chaos::World for World {
    type Fault = Fault;

    fn steady(&self) -> Steady {
        let datagrams = |port| self.client.datagrams(&self.server, port);
        Steady {
            open: datagrams(OPEN_PORT),
            closed: datagrams(CLOSED_PORT),
        }
    }

    fn draw(&mut self) -> Fault {
        match self.random.below(17) {
            0 => Fault::Datastore(Trouble::Away),
            1 => Fault::Datastore(Trouble::Unknown),
            2 => Fault::Datastore(Trouble::Forbidden),
            3 => Fault::Datastore(Trouble::Slow),
            4 => Fault::Datastore(Trouble::Forgetful),
            5 => Fault::Datastore(Trouble::Empty),
            6 => Fault::Locked,
            7 => Fault::Uninitialized,
            8 | 9 => Fault::Restart,
            10 => Fault::Switch,
            11 => Fault::Deleted,
            12 => Fault::Emptied,
            bad => Fault::Bad(usize::try_from(bad - 13).unwrap()),
        }
    }

    fn strike(&mut self, fault: &Fault, steady: &Steady) {
        let steady = &steady.open;
        match *fault {
            Fault::Datastore(trouble) => {
                self.store.set(trouble);
                steady.go_on();
                self.change();
                steady.go_on();
                self.store.set(Trouble::None);
            }
            Fault::Locked => {
                self.setting.put(information(false));
                steady.go_on();
                self.change();
                steady.go_on();
                self.setting.put(information(true));
            }
            Fault::Uninitialized => {
                self.setting.delete(&information(true));
                self.change();
                steady.go_on();
                self.setting.put(information(true));
            }
            Fault::Restart => {
                self.stop();
                self.change();
                steady.go_on();
                self.start();
            }
            Fault::Switch => {
                self.stop();
                self.plane = match self.plane {
                    Plane::Nftables => Plane::Iptables,
                    Plane::Iptables | Plane::IptablesNft => Plane::Nftables,
                };
                self.change();
                self.start();
            }
            Fault::Deleted => {
                // What is left out opens nothing of the steady traffic: the chain of another pod is closed.
                if self.plane == Plane::Nftables {
                    let rules = "flush chain ip calico filter-cali-tw-caliother";
                    self.setting.run("nft", rules);
                } else {
                    let rules = "-w -t filter -F cali-tw-caliother";
                    self.setting.run("iptables-legacy", rules);
                }
                self.change();
            }
            Fault::Emptied => {
                self.empty_sets();
                self.change();
            }
            Fault::Bad(which) => {
                let (kind, name) = (which % 4, self.random.below(1_000_000));
                let bad = bad_object(kind, name);
                self.setting.put(bad.clone());
                self.change();
                steady.go_on();
                self.setting.delete(&bad);
            }
        }
    }

    #[track_caller]
    fn await_right(&mut self) {
        let (client, server, other) = (&self.client, &self.server, &self.other);
        let flows = [
            (client.udp(server, CHANGING_PORT), self.is_open),
            (client.tcp(server, OPEN_PORT), true),
            (client.tcp(server, CLOSED_PORT), false),
            (client.udp(other, MEMBERS_PORT), true),
            (server.udp(other, MEMBERS_PORT), false),
        ];
        let end = Instant::now() + PATIENCE;
        loop {
            let differences = self.setting.flow_differences(&flows);
            if differences.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "{differences:#?}");
        }
    }
}

fn information(is_ready: bool) -> Resource {
    let spec = json!({"datastoreReady": is_ready});
    resource(Kind::ClusterInformation, "", "default", &spec)
}

/// Objects that concern nobody here, or only another pod, and of which no sense can be made.
fn bad_object(kind: usize, number: u64) -> Resource {
    let policy_with = |rules: Value| {
        let spec = json!({"order": 1, "selector": "role == 'other'", "types": ["Ingress"], "ingress": rules});
        policy(&format!("bad-{number}"), &spec)
    };
    match kind {
        0 => policy_with(json!([{"action": "Allow", "source": {"nets": ["10.0.0.0/99"]}}])),
        1 => policy_with(json!([{"action": "Allow", "source": {"domains": ["x"]}}])),
        2 => {
            let ports: Vec<String> = (0..50).map(|port| format!("port-{port}")).collect();
            let side = json!({"ports": ports});
            let rule =
                json!({"action": "Allow", "protocol": "TCP", "source": side, "destination": side});
            policy_with(vec![rule; 20].into())
        }
        _ => {
            let name = format!("bad{}", number % 1000);
            let spec = json!({
                "node": NODE, "orchestrator": "k8s", "pod": name, "endpoint": "eth0",
                "interfaceName": format!("cali{name}"), "ipNetworks": ["10.65.9.9/32"],
                "qosControls": {"ingressPacketRate": 1_000_000, "ingressPacketBurst": 1_000_000},
            });
            let full = format!("{NODE}-k8s-{name}-eth0");
            labelled(Kind::WorkloadEndpoint, "default", &full, &json!({}), &spec)
        }
    }
}

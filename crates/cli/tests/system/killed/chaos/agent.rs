//! An agent as a process, with an etcd.

use rustix::process::{Pid, Signal, kill_process};
use tortie_testkit::Random;
use tortie_testkit::chaos::{self, Steady};

use super::{await_right, guard, information, steady};
use crate::killed::Plane;
use crate::killed::agent_process::AgentProcess;
use crate::killed::site::Site;

/// What happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// The agent is killed, and started again after a while.
    AgentKilled,
    /// The same, and the history that it could have gone on from is forgotten.
    AgentKilledAndHistoryForgotten,
    /// The same, with the other data plane.
    AgentKilledAndSwitched,
    /// etcd is killed, and started again after a while.
    StoreKilled,
    /// Both at once; etcd comes back later than the agent.
    BothKilled,
    /// etcd takes connections, and answers nothing.
    StoreHangs,
    /// The contents of the datastore are being moved.
    Locked,
}

const FAULTS: [Fault; 7] = [
    Fault::AgentKilled,
    Fault::AgentKilledAndHistoryForgotten,
    Fault::AgentKilledAndSwitched,
    Fault::StoreKilled,
    Fault::BothKilled,
    Fault::StoreHangs,
    Fault::Locked,
];

pub(super) struct World {
    site: Site,
    agent: Option<AgentProcess>,
    plane: Plane,
    random: Random,
    is_open: bool,
}

impl World {
    pub(super) fn new(plane: Plane, seed: u64) -> Self {
        let site = Site::new();
        let mut world = Self {
            site,
            agent: None,
            plane,
            random: Random::new(seed),
            is_open: false,
        };
        world.change();
        world.start();
        world
    }

    fn start(&mut self) {
        let node = &self.site.pods.node;
        let agent = AgentProcess::start(node, self.site.etcd.endpoint(), self.plane);
        self.agent = Some(agent);
    }

    fn kill(&mut self) {
        self.agent.take().unwrap().kill();
    }

    fn change(&mut self) {
        self.is_open = self.random.once_in(2);
        self.site.datastore.put(guard(self.is_open));
    }

    fn signal_store(&self, signal: Signal) {
        let process = Pid::from_raw(self.site.etcd.pid().cast_signed()).unwrap();
        kill_process(process, signal).unwrap();
    }

    /// Starts etcd again, in the namespace that it was in.
    fn start_store(&self) {
        let namespace = self.site.pods.node.namespace();
        let start = || self.site.etcd.start_again();
        namespace.run(start).unwrap().unwrap();
    }

    fn forget_history(&self) {
        let namespace = self.site.pods.node.namespace();
        let status = ["endpoint", "status", "--write-out=json"];
        let status = || self.site.etcd.etcdctl(&status);
        let status = namespace.run(status).unwrap().unwrap();
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        let revision = status[0]["Status"]["header"]["revision"].as_i64().unwrap();
        let compact = || self.site.etcd.compact(revision);
        namespace.run(compact).unwrap().unwrap();
    }
}

impl chaos::World for World {
    type Fault = Fault;

    fn steady(&self) -> Steady {
        steady(&self.site.pods)
    }

    fn draw(&mut self) -> Fault {
        let number = self.random.below(FAULTS.len() as u64);
        FAULTS[usize::try_from(number).unwrap()]
    }

    fn strike(&mut self, fault: &Fault, steady: &Steady) {
        let steady = &steady.open;
        match fault {
            Fault::AgentKilled => {
                self.kill();
                self.change();
                steady.go_on();
                self.start();
            }
            Fault::AgentKilledAndHistoryForgotten => {
                self.kill();
                self.change();
                self.forget_history();
                self.start();
            }
            Fault::AgentKilledAndSwitched => {
                self.kill();
                self.plane = match self.plane {
                    Plane::Nftables => Plane::Iptables,
                    Plane::Iptables => Plane::Nftables,
                };
                self.change();
                self.start();
            }
            Fault::StoreKilled => {
                self.site.etcd.kill().unwrap();
                steady.go_on();
                self.start_store();
                self.change();
            }
            Fault::BothKilled => {
                self.kill();
                self.site.etcd.kill().unwrap();
                self.start();
                steady.go_on();
                self.start_store();
                self.change();
            }
            Fault::StoreHangs => {
                self.signal_store(Signal::STOP);
                steady.go_on();
                self.signal_store(Signal::CONT);
                self.change();
            }
            Fault::Locked => {
                self.site.datastore.put(information(false));
                steady.go_on();
                self.change();
                steady.go_on();
                self.site.datastore.put(information(true));
            }
        }
    }

    fn await_right(&mut self) {
        let log = || self.agent.as_ref().map_or(String::new(), AgentProcess::log);
        await_right(&self.site.pods, self.is_open, log);
    }
}

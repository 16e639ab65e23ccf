//! A cluster with its datastore in memory, of which the collector sees caches that are behind.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as core;
use serde_json::json;
use tortie_api::node::OrchRef;
use tortie_api::{IpamBlock, Node};
use tortie_ipam::block::Block;
use tortie_ipam::reservations::Reservations;
use tortie_ipam::{Holder, Owner, attribute};
use tortie_testkit::Random;

use super::super::allocation::{Place, Tenant};
use super::super::cached_node::CachedNode;
use super::super::scan::{Grace, Lookup, View};
use super::super::state::State;
use crate::pod::Pod;

pub(super) const GRACE: SignedDuration = SignedDuration::from_secs(900);

/// A pod that exists.
#[derive(Debug, Clone)]
pub(super) struct PodFacts {
    pub(super) node: String,
    pub(super) handle: String,
    /// The address, once it is reported.
    pub(super) reported: Option<IpAddr>,
}

/// What the collector sees of the cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pods: BTreeMap<String, PodFacts>,
    nodes: BTreeSet<String>,
}

pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) pods: BTreeMap<String, PodFacts>,
    pub(super) nodes: BTreeSet<String>,
    pub(super) blocks: BTreeMap<IpNet, Block>,
    seen: Seen,
    /// Blocks that changed and of which the collector was not told.
    untold: BTreeSet<IpNet>,
    untold_nodes: BTreeSet<String>,
    pub(super) state: State,
    containers: u32,
    random: Random,
}

impl View for Seen {
    fn pod(&self, _: &str, name: &str) -> Option<Arc<Pod>> {
        self.pods.get(name).map(|pod| Arc::new(cached(name, pod)))
    }

    fn node(&self, name: &str) -> Option<Arc<CachedNode>> {
        let node = json!({"metadata": {"name": name}});
        let node = || Arc::new(serde_json::from_value(node).unwrap());
        self.nodes.contains(name).then(node)
    }

    fn has_machine(&self, _: &Tenant) -> Option<bool> {
        None
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            now: "2026-01-01T00:00:00Z".parse().expect("a time"),
            pods: BTreeMap::new(),
            nodes: BTreeSet::new(),
            blocks: BTreeMap::new(),
            seen: Seen::default(),
            untold: BTreeSet::new(),
            untold_nodes: BTreeSet::new(),
            state: State::new(),
            containers: 0,
            random: Random::new(seed),
        }
    }

    fn node_name(&mut self) -> String {
        format!("node-{}", self.random.below(4))
    }

    fn pod_name(&mut self) -> String {
        format!("pod-{}", self.random.below(12))
    }

    /// Something happens.
    pub(super) fn step(&mut self) {
        match self.random.below(12) {
            0 => {
                let node = self.node_name();
                self.nodes.insert(node.clone());
                self.untold_nodes.insert(node);
            }
            1 if self.random.once_in(3) => {
                let node = self.node_name();
                if self.nodes.remove(&node) {
                    self.pods.retain(|_, pod| pod.node != node);
                    self.untold_nodes.insert(node);
                }
            }
            2..=4 => self.create_pod(),
            5 => {
                let name = self.pod_name();
                self.report(&name);
            }
            6 | 7 => self.delete_pod(),
            8 => self.seen_catches_up(),
            9 => self.told_of_blocks(),
            10 => {
                let seconds = i64::try_from(self.random.below(600)).expect("small");
                self.now += SignedDuration::from_secs(seconds);
            }
            _ => self.collect(),
        }
    }

    fn create_pod(&mut self) {
        let (name, node) = (self.pod_name(), self.node_name());
        if self.pods.contains_key(&name) || !self.nodes.contains(&node) {
            return;
        }
        self.containers += 1;
        let handle = format!("net.{}", self.containers);
        let count = 1 + u32::from(self.random.once_in(4));
        let attributes = [
            (attribute::NODE, node.as_str()),
            (attribute::NAMESPACE, "default"),
            (attribute::POD, name.as_str()),
        ];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let holder = Holder {
            handle: Some(handle.clone()),
            attributes: attributes.into(),
            ..Holder::default()
        };
        let net = self.block_for(&node);
        let block = self.blocks.get_mut(&net).expect("it was made");
        block.assign_next(count, &holder, &Reservations::default());
        block.bump();
        self.untold.insert(net);
        let reported = None;
        let pod = PodFacts {
            node,
            handle,
            reported,
        };
        self.pods.insert(name, pod);
    }

    /// A block of the node with room, perhaps a new one.
    fn block_for(&mut self, node: &str) -> IpNet {
        let owner = Owner::host(node);
        let with_room = |block: &Block| block.is_of(&owner) && block.spec().unallocated.len() > 1;
        let known = self.blocks.iter().find(|(_, block)| with_room(block));
        if let Some((net, _)) = known {
            return *net;
        }
        let net = (0_u8..=255)
            .map(|third| format!("10.0.{third}.0/29").parse().expect("a network"))
            .find(|net: &IpNet| !self.blocks.contains_key(net))
            .expect("there are enough");
        self.blocks
            .insert(net, Block::new(net, &owner, self.now, None));
        net
    }

    pub(super) fn report(&mut self, name: &str) {
        if let Some(pod) = self.pods.get_mut(name) {
            let blocks = self.blocks.values();
            pod.reported = blocks
                .flat_map(|block| block.addresses_of(&pod.handle))
                .next();
        }
    }

    /// A pod goes; sometimes its addresses are left behind.
    fn delete_pod(&mut self) {
        let name = self.pod_name();
        let Some(pod) = self.pods.remove(&name) else {
            return;
        };
        if self.random.once_in(2) {
            return;
        }
        for (net, block) in &mut self.blocks {
            if !block.release_handle(&pod.handle, -1, self.now).is_empty() {
                block.bump();
                self.untold.insert(*net);
            }
        }
    }

    pub(super) fn seen_catches_up(&mut self) {
        for (name, pod) in &self.seen.pods {
            if !self.pods.contains_key(name) {
                self.state.pod_deleted(&pod.node);
            }
        }
        self.state.all_dirty |= self.seen.nodes.difference(&self.nodes).next().is_some();
        self.seen = Seen {
            pods: self.pods.clone(),
            nodes: self.nodes.clone(),
        };
    }

    pub(super) fn told_of_blocks(&mut self) {
        for net in std::mem::take(&mut self.untold) {
            match self.blocks.get(&net) {
                Some(block) => {
                    let spec = block.spec().clone();
                    self.state.set_block(IpamBlock::new("", "block", spec));
                }
                None => self.state.remove_block(net),
            }
        }
        for name in std::mem::take(&mut self.untold_nodes) {
            if self.nodes.contains(&name) {
                let mut node = Node::default();
                node.metadata.name.clone_from(&name);
                node.spec.orch_refs = vec![OrchRef {
                    node_name: name,
                    orchestrator: "k8s".to_owned(),
                }];
                self.state.set_node(&node);
            } else {
                self.state.remove_node(&name);
            }
        }
    }

    /// What the collector does, with a datastore and an API server that tell and keep the truth.
    pub(super) fn collect(&mut self) {
        let nodes = self.state.nodes_to_check();
        let unknown = self.state.unknown(&nodes).into_iter();
        let looked_up: HashMap<Arc<str>, Lookup> = unknown
            .map(|node| {
                let found = match (self.random.once_in(5), self.nodes.contains(&*node)) {
                    (true, _) => Lookup::Unknown,
                    (false, true) => Lookup::Kubernetes(Arc::clone(&node)),
                    (false, false) => Lookup::Absent,
                };
                (node, found)
            })
            .collect();
        let grace = Grace::For(GRACE);
        let gone = self
            .state
            .scan(&nodes, &looked_up, &self.seen, grace, self.now);
        let mut doubtful: HashSet<Place> = HashSet::new();
        for (tenant, places) in self.state.pods_to_confirm() {
            if self.random.once_in(5) {
                doubtful.extend(places);
                continue;
            }
            let pod = self.pods.get(&*tenant.name);
            let pod = pod.map(|pod| live(&tenant.name, pod));
            self.state.confirm(&places, pod.as_ref());
        }
        for place in self.state.releasable(&self.seen, &doubtful) {
            self.release(place);
        }
        for (net, node) in self.state.unused_blocks(&self.seen, grace, self.now) {
            self.give_up(net, &node);
        }
        for node in gone {
            let blocks = self.state.blocks_of(&node);
            let all_gone = blocks.into_iter().all(|net| self.give_up(net, &node));
            if all_gone {
                self.state.dirty.remove(&node);
            }
        }
    }

    fn release(&mut self, (net, address): Place) {
        let allocation = self.state.allocation((net, address)).expect("it is known");
        let request = allocation.release_of(address);
        let Some(block) = self.blocks.get_mut(&net) else {
            return;
        };
        if block
            .release(std::slice::from_ref(&request), -1, self.now)
            .is_err()
        {
            return;
        }
        block.bump();
        self.untold.insert(net);
        self.state.forget((net, address));
        let handle = request.handle.expect("it was given");
        let holder = self.pods.iter().find(|(_, pod)| pod.handle == handle);
        assert!(holder.is_none(), "{address} of {holder:?} was released");
    }

    /// As the datastore would: only if it is empty and the node's.
    fn give_up(&mut self, net: IpNet, node: &str) -> bool {
        self.untold.insert(net);
        let Some(block) = self.blocks.get(&net) else {
            return true;
        };
        if !block.is_of(&Owner::host(node)) {
            return true;
        }
        if !block.is_empty() {
            return false;
        }
        self.blocks.remove(&net);
        self.state.remove_block(net);
        true
    }
}

fn cached(name: &str, facts: &PodFacts) -> Pod {
    let pod = serde_json::to_value(live(name, facts)).expect("a pod is JSON");
    serde_json::from_value(pod).expect("a pod")
}

fn live(name: &str, facts: &PodFacts) -> core::Pod {
    let mut pod = core::Pod::default();
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.namespace = Some("default".to_owned());
    pod.spec = Some(core::PodSpec {
        node_name: Some(facts.node.clone()),
        ..core::PodSpec::default()
    });
    pod.status = facts.reported.map(|address| core::PodStatus {
        pod_ip: Some(address.to_string()),
        pod_ips: Some(vec![core::PodIP {
            ip: address.to_string(),
        }]),
        ..core::PodStatus::default()
    });
    pod
}

//! The inputs of each node of a cluster in turn, of objects that are read once.
//!
//! What a node's own inputs do not keep, since it concerns others, is kept beside them: blocks, slices, and what is said of one node.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use tortie_api::kinds::bgp_configuration::BgpConfigurationSpec;
use tortie_api::{BlockAffinity, Node, Resource};

use crate::inputs::{NODE_PREFIX, SecretRef, secret_ref};
use crate::{Family, Identity, Inputs, Plan, Update};

/// Names an orchestrator that has nodes of its own.
const KUBERNETES: &str = "k8s";

/// Objects of which the inputs of any node can be made.
#[derive(Debug)]
pub struct Cluster {
    /// Those of the node that was asked for last.
    inputs: Inputs,
    /// Who this machine is.
    own: Identity,
    kubernetes_nodes: BTreeMap<String, String>,
    /// What is said of one node.
    configurations: BTreeMap<String, BgpConfigurationSpec>,
    agent_programs: BTreeMap<String, Option<String>>,
    /// By name.
    affinities: BTreeMap<String, BlockAffinity>,
    /// Names of the affinities of each node.
    affinities_of: BTreeMap<String, BTreeSet<String>>,
    slices: Vec<EndpointSlice>,
    /// Workloads of this machine's node that peer with it.
    workload_peers: Vec<Update>,
    disabled_pools: BTreeSet<String>,
}

impl Cluster {
    /// No objects, as seen by this machine.
    pub fn new(own: Identity) -> Self {
        Self {
            inputs: Inputs::new(Identity::default()),
            own,
            kubernetes_nodes: BTreeMap::new(),
            configurations: BTreeMap::new(),
            agent_programs: BTreeMap::new(),
            affinities: BTreeMap::new(),
            affinities_of: BTreeMap::new(),
            slices: Vec::new(),
            workload_peers: Vec::new(),
            disabled_pools: BTreeSet::new(),
        }
    }

    /// Takes an object that is there. Of versions of one object the last one counts.
    pub fn put(&mut self, update: Update) {
        match update {
            Update::Resource(resource) => self.put_resource(resource),
            Update::EndpointSlice(slice) => self.slices.push(*slice),
            Update::WorkloadPeer(..) => self.workload_peers.push(update),
            update => {
                self.inputs.update(update);
            }
        }
    }

    fn put_resource(&mut self, resource: Resource) {
        let of_node = resource.metadata().name.strip_prefix(NODE_PREFIX);
        let of_node = of_node.map(str::to_owned);
        match (resource, of_node) {
            (Resource::BlockAffinity(affinity), _) => {
                let name = affinity.metadata.name.clone();
                if let Some(before) = self.affinities.get(&name)
                    && let Some(names) = self.affinities_of.get_mut(&before.spec.node)
                {
                    names.remove(&name);
                }
                let of_node = self.affinities_of.entry(affinity.spec.node.clone());
                of_node.or_default().insert(name.clone());
                self.affinities.insert(name, *affinity);
            }
            (Resource::BgpConfiguration(configuration), Some(node)) => {
                let port = configuration.spec.listen_port;
                let ports = &mut self.inputs.listen_ports;
                if port == 0 {
                    ports.remove(&*node);
                } else {
                    ports.insert(node.as_str().into(), port);
                }
                self.configurations.insert(node, configuration.spec);
            }
            (Resource::FelixConfiguration(felix), Some(node)) => {
                let programs = felix.spec.program_cluster_routes;
                self.agent_programs.insert(node, programs);
            }
            (resource, _) => {
                match &resource {
                    Resource::IpPool(pool) if pool.spec.disabled => {
                        self.disabled_pools.insert(pool.metadata.name.clone());
                    }
                    Resource::IpPool(pool) => {
                        self.disabled_pools.remove(&pool.metadata.name);
                    }
                    Resource::Node(node) => self.note_kubernetes_node(node),
                    _ => {}
                }
                self.inputs.update(Update::Resource(resource));
            }
        }
    }

    fn note_kubernetes_node(&mut self, node: &Node) {
        let mut refs = node.spec.orch_refs.iter();
        let of_kubernetes = refs.find(|one| one.orchestrator == KUBERNETES);
        let name = node.metadata.name.clone();
        match of_kubernetes.filter(|one| !one.node_name.is_empty()) {
            Some(found) => self.kubernetes_nodes.insert(name, found.node_name.clone()),
            None => self.kubernetes_nodes.remove(&name),
        };
    }

    /// The name of this machine's node.
    pub fn own_node(&self) -> &str {
        &self.own.node
    }

    /// The names of all nodes, in order.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<str>> {
        self.inputs.nodes.keys()
    }

    /// Whether there is a node of this name.
    pub fn has_node(&self, name: &str) -> bool {
        self.inputs.nodes.contains_key(name)
    }

    /// That there is a node of this name; if not, what is said to who asked for it.
    pub fn check_node(&self, name: &str) -> Result<(), String> {
        if self.has_node(name) {
            return Ok(());
        }
        let names = some_names(self.nodes().map(|name| &**name));
        Err(format!("there is no Node({name}); there is {names}"))
    }

    /// The secrets that sessions of any node have passwords from.
    pub fn secrets(&self) -> BTreeSet<SecretRef> {
        let peers = self.inputs.peers.values();
        let of_peers = peers.filter_map(|peer| peer.spec.password.as_ref());
        let of_mesh = self.inputs.configuration.node_mesh_password.as_ref();
        let all = of_peers.chain(of_mesh);
        all.filter_map(|password| password.secret_key_ref.as_ref())
            .map(secret_ref)
            .collect()
    }

    /// Everything that the plan of a node is made of.
    pub fn inputs(&mut self, node: &str) -> &Inputs {
        self.turn_to(node);
        let inputs = &mut self.inputs;
        let name = inputs.identity.kubernetes_node.as_deref();
        let name = name.unwrap_or(node).to_owned();
        for slice in &self.slices {
            inputs.services.put_slice(slice, &name);
        }
        inputs
    }

    /// What a node's BIRD is to do.
    pub fn plan(&mut self, node: &str) -> Plan {
        Plan::new(self.inputs(node))
    }

    /// The same but for what depends on services.
    pub(crate) fn inputs_of_sessions(&mut self, node: &str) -> &Inputs {
        self.turn_to(node);
        &self.inputs
    }

    fn turn_to(&mut self, node: &str) {
        let inputs = &mut self.inputs;
        let is_own = node == self.own.node;
        inputs.identity = if is_own {
            self.own.clone()
        } else {
            Identity {
                node: node.to_owned(),
                router_id: None,
                kubernetes_node: self.kubernetes_nodes.get(node).cloned(),
            }
        };
        inputs.node_configuration = self.configurations.get(node).cloned().unwrap_or_default();
        inputs.agent_programs[1] = self.agent_programs.get(node).cloned().flatten();
        inputs.blocks.clear();
        let names = self.affinities_of.get(node).into_iter().flatten();
        for affinity in names.filter_map(|name| self.affinities.get(name)) {
            inputs.update(Update::Resource(affinity.clone().into()));
        }
        inputs.workload_peers.clear();
        for peer in self.workload_peers.iter().filter(|_| is_own) {
            inputs.update(peer.clone());
        }
        inputs.place_all_peers();
    }

    pub(crate) fn all(&self) -> &Inputs {
        &self.inputs
    }

    /// All claims on blocks, of all nodes.
    pub(crate) fn affinities(&self) -> impl Iterator<Item = &BlockAffinity> {
        self.affinities.values()
    }

    pub(crate) fn is_pool_disabled(&self, name: &str) -> bool {
        self.disabled_pools.contains(name)
    }

    /// The first node with this address.
    pub(crate) fn node_at(&self, address: IpAddr) -> Option<&Arc<str>> {
        let mut nodes = self.inputs.nodes.iter();
        let found = nodes.find(|(_, node)| node.has_address(address));
        found.map(|(name, _)| name)
    }

    pub(crate) fn address_of(&self, node: &str, family: Family) -> Option<IpAddr> {
        self.inputs.nodes.get(node)?.address(family)
    }
}

fn some_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<&str> = names.take(SHOWN + 1).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    if names.len() > SHOWN {
        names[SHOWN] = "…";
    }
    names.join(", ")
}

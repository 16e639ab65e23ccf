//! Everything that a plan is made of, fed by changes one at a time.
//!
//! [`Inputs::update`] says whether the plan of this node may have changed. What concerns other nodes alone says no, so that it
//! costs neither a plan nor a text.
//!
//! # Invariants
//! - What is kept depends only on the last version of each object, never on the way there.
//! - Blocks of other nodes are not kept, and of a node only what a plan can be made of.

mod concern;
mod node;
mod peer;
mod pool;
mod service;
mod update;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use tortie_api::kinds::bgp_configuration::BgpConfigurationSpec;
use tortie_api::kinds::bgp_filter::BgpFilterSpec;
use tortie_api::kinds::block_affinity::BlockAffinityState;
use tortie_api::meta::SecretKeySelector;
use tortie_api::{BgpConfiguration, BgpPeer, BlockAffinity, IpPool, Kind, Node, Resource};

pub(crate) use node::{NodeFacts, is_unicast};
pub(crate) use peer::{PeerEntry, Remote};
pub use pool::{Encapsulation, Tunnelled};
pub(crate) use pool::{PoolFacts, network};
pub(crate) use service::{ServiceFacts, ServiceName, Services, TrafficPolicy};
pub use update::{SecretRef, SecretText, Update, WorkloadPeer};

/// The resource that holds for all nodes.
const DEFAULT: &str = "default";

/// What the name of a resource for one node begins with.
pub(crate) const NODE_PREFIX: &str = "node.";

/// The kinds that a plan is made of, besides those of Kubernetes.
pub const KINDS: [Kind; 7] = [
    Kind::BgpConfiguration,
    Kind::BgpFilter,
    Kind::BgpPeer,
    Kind::BlockAffinity,
    Kind::FelixConfiguration,
    Kind::IpPool,
    Kind::Node,
];

/// What a node is told from outside the datastore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name of the Node resource.
    pub node: String,
    /// What `CALICO_ROUTER_ID` says, if anything: an address, or `hash`.
    pub router_id: Option<String>,
    /// Name of the Kubernetes node, where it is another one.
    pub kubernetes_node: Option<String>,
}

/// Everything that a plan is made of.
#[derive(Debug)]
pub struct Inputs {
    pub(crate) identity: Identity,
    pub(crate) nodes: BTreeMap<Arc<str>, NodeFacts>,
    pub(crate) peers: BTreeMap<Arc<str>, PeerEntry>,
    /// Names of the peers that a plan of this node can depend on.
    pub(crate) concerning: BTreeSet<Arc<str>>,
    pub(crate) filters: BTreeMap<Arc<str>, BgpFilterSpec>,
    /// That of all nodes.
    pub(crate) configuration: BgpConfigurationSpec,
    /// That of this node.
    pub(crate) node_configuration: BgpConfigurationSpec,
    /// Of other nodes, where they have one of their own.
    pub(crate) listen_ports: BTreeMap<Arc<str>, u16>,
    pub(crate) pools: BTreeMap<Arc<str>, PoolFacts>,
    /// Of this node.
    pub(crate) blocks: BTreeMap<Arc<str>, Block>,
    pub(crate) services: Services,
    pub(crate) secrets: BTreeMap<SecretRef, SecretText>,
    pub(crate) workload_peers: BTreeMap<String, WorkloadPeer>,
    /// What each `FelixConfiguration` says about who programs routes: that of all nodes, and that of this one.
    pub(crate) agent_programs: [Option<String>; 2],
}

/// A block that this node has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// Nothing where it cannot be read.
    pub(crate) network: Result<IpNet, String>,
    pub(crate) state: BlockAffinityState,
}

impl Inputs {
    /// Nothing but what is known from outside the datastore.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            nodes: BTreeMap::new(),
            peers: BTreeMap::new(),
            concerning: BTreeSet::new(),
            filters: BTreeMap::new(),
            configuration: BgpConfigurationSpec::default(),
            node_configuration: BgpConfigurationSpec::default(),
            listen_ports: BTreeMap::new(),
            pools: BTreeMap::new(),
            blocks: BTreeMap::new(),
            services: Services::default(),
            secrets: BTreeMap::new(),
            workload_peers: BTreeMap::new(),
            agent_programs: [None, None],
        }
    }

    /// Takes the newest state of an object, and tells whether the plan of this node may have changed.
    pub fn update(&mut self, update: Update) -> bool {
        match update {
            Update::Resource(resource) => self.put(resource),
            Update::Removed(kind, name) => self.remove(kind, &name),
            Update::Service(service) => self.put_service(&service),
            Update::ServiceRemoved(namespace, name) => {
                let name = (namespace.into(), name.into());
                self.change_services(std::slice::from_ref(&name), |services, _| {
                    services.remove_service(&name);
                })
            }
            Update::EndpointSlice(slice) => {
                let services = self.services.services_of(&slice);
                self.change_services(&services, |services, node| services.put_slice(&slice, node))
            }
            Update::EndpointSliceRemoved(namespace, name) => {
                let slice = (namespace.into(), name.into());
                let service = self.services.service_of(&slice);
                self.change_services(service.as_slice(), |services, _| {
                    services.remove_slice(&slice);
                })
            }
            Update::Secret(secret, text) => {
                let changed = replace(&mut self.secrets, secret.clone(), text);
                changed && self.secrets().contains(&secret)
            }
            Update::WorkloadPeer(id, peer) => replace(&mut self.workload_peers, id, peer),
        }
    }

    /// The secrets that sessions of this node have passwords from.
    pub fn secrets(&self) -> BTreeSet<SecretRef> {
        let of_peers = self.concerning.iter().filter_map(|name| {
            let password = self.peers.get(name)?.spec.password.as_ref()?;
            password.secret_key_ref.as_ref()
        });
        let of_mesh = self.configuration.node_mesh_password.as_ref();
        let of_mesh = of_mesh.and_then(|password| password.secret_key_ref.as_ref());
        of_peers.chain(of_mesh).map(secret_ref).collect()
    }

    /// Whether this node may have sessions with its own workloads.
    pub fn has_workload_peers(&self) -> bool {
        let mut concerning = self.concerning.iter();
        concerning.any(|name| {
            let peer = self.peers.get(name);
            peer.is_some_and(|peer| !peer.spec.local_workload_selector.is_empty())
        })
    }

    fn put(&mut self, resource: Resource) -> bool {
        match resource {
            Resource::Node(node) => self.put_node(&node),
            Resource::BgpPeer(peer) => self.put_peer(*peer),
            Resource::BgpConfiguration(configuration) => self.put_configuration(*configuration),
            Resource::BgpFilter(filter) => {
                let name = filter.metadata.name.as_str().into();
                replace(&mut self.filters, name, Some(filter.spec))
            }
            Resource::IpPool(pool) => self.put_pool(&pool),
            Resource::BlockAffinity(affinity) => self.put_affinity(&affinity),
            Resource::FelixConfiguration(felix) => {
                let name = felix.metadata.name.as_str();
                self.set_agent_programs(name, felix.spec.program_cluster_routes)
            }
            _ => false,
        }
    }

    fn remove(&mut self, kind: Kind, name: &str) -> bool {
        match kind {
            Kind::Node => self.remove_node(name),
            Kind::BgpPeer => {
                self.concerning.remove(name);
                self.peers.remove(name).is_some_and(|peer| peer.concerns())
            }
            Kind::BgpConfiguration => {
                let mut nothing = BgpConfiguration::default();
                name.clone_into(&mut nothing.metadata.name);
                self.put_configuration(nothing)
            }
            Kind::BgpFilter => self.filters.remove(name).is_some(),
            Kind::IpPool => self.pools.remove(name).is_some(),
            Kind::BlockAffinity => self.blocks.remove(name).is_some(),
            Kind::FelixConfiguration => self.set_agent_programs(name, None),
            _ => false,
        }
    }

    fn put_node(&mut self, node: &Node) -> bool {
        let name: Arc<str> = node.metadata.name.as_str().into();
        let facts = NodeFacts::new(node);
        let before = self.nodes.get(&name);
        if before == Some(&facts) {
            return false;
        }
        if *name == *self.identity.node {
            let changed = self.local_concerns(before, &facts);
            self.nodes.insert(name, facts);
            self.place_all_peers();
            return changed;
        }
        let changed = self.remote_concerns(&name, before, Some(&facts));
        self.nodes.insert(name, facts);
        changed
    }

    fn remove_node(&mut self, name: &str) -> bool {
        let Some(facts) = self.nodes.remove(name) else {
            return false;
        };
        if name == self.identity.node {
            self.place_all_peers();
            return true;
        }
        self.remote_concerns(name, Some(&facts), None)
    }

    fn put_peer(&mut self, peer: BgpPeer) -> bool {
        let name: Arc<str> = peer.metadata.name.as_str().into();
        let before = self.peers.get(&name);
        if before.is_some_and(|before| before.spec == peer.spec) {
            return false;
        }
        let concerned = before.is_some_and(PeerEntry::concerns);
        let mut entry = PeerEntry::new(peer);
        self.place_peer(&mut entry);
        let concerns = entry.concerns();
        self.peers.insert(Arc::clone(&name), entry);
        self.note_concern(name, concerns);
        concerned || concerns
    }

    fn put_configuration(&mut self, configuration: BgpConfiguration) -> bool {
        let name = configuration.metadata.name.as_str();
        let slot = match name.strip_prefix(NODE_PREFIX) {
            _ if name == DEFAULT => &mut self.configuration,
            Some(node) if node == self.identity.node => &mut self.node_configuration,
            Some(node) => {
                let port = Some(configuration.spec.listen_port).filter(|port| *port != 0);
                let changed = replace(&mut self.listen_ports, node.into(), port);
                let facts = self.nodes.get(node);
                return changed && facts.is_some_and(|f| self.is_related(node, f));
            }
            None => return false,
        };
        let changed = *slot != configuration.spec;
        *slot = configuration.spec;
        changed
    }

    fn put_pool(&mut self, pool: &IpPool) -> bool {
        let name = pool.metadata.name.as_str().into();
        replace(&mut self.pools, name, Some(PoolFacts::new(pool)))
    }

    fn put_affinity(&mut self, affinity: &BlockAffinity) -> bool {
        let spec = &affinity.spec;
        let is_local = spec.node == self.identity.node && matches!(&*spec.r#type, "" | "host");
        let block = (is_local && !spec.deleted).then(|| Block {
            network: pool::network(&spec.cidr).ok_or_else(|| spec.cidr.clone()),
            state: spec.state,
        });
        let name: Arc<str> = affinity.metadata.name.as_str().into();
        // A claim that is not made yet is as if it were not there.
        let counts = |block: Option<&Block>| {
            block.is_some_and(|block| block.state != BlockAffinityState::Pending)
        };
        let counted = counts(self.blocks.get(&name)) || counts(block.as_ref());
        replace(&mut self.blocks, name, block) && counted
    }

    fn set_agent_programs(&mut self, name: &str, programs: Option<String>) -> bool {
        let slot = match name.strip_prefix(NODE_PREFIX) {
            _ if name == DEFAULT => &mut self.agent_programs[0],
            Some(node) if node == self.identity.node => &mut self.agent_programs[1],
            _ => return false,
        };
        let changed = *slot != programs;
        *slot = programs;
        changed
    }

    fn put_service(&mut self, service: &k8s_openapi::api::core::v1::Service) -> bool {
        let metadata = &service.metadata;
        let text =
            |text: &Option<String>| -> Arc<str> { text.as_deref().unwrap_or_default().into() };
        let name = (text(&metadata.namespace), text(&metadata.name));
        self.change_services(&[name], |services, _| {
            services.put_service(service);
        })
    }

    /// Makes a change, and tells whether what is advertised of these services is another.
    fn change_services(
        &mut self,
        names: &[ServiceName],
        change: impl FnOnce(&mut Services, &str),
    ) -> bool {
        let routes = |inputs: &Self| -> Vec<_> {
            let names = names.iter();
            names
                .map(|name| crate::plan::service_routes(inputs, name))
                .collect()
        };
        let before = routes(self);
        let identity = &self.identity;
        let node = identity.kubernetes_node.as_ref().unwrap_or(&identity.node);
        change(&mut self.services, node);
        before != routes(self)
    }

    pub(crate) fn local(&self) -> Option<&NodeFacts> {
        self.nodes.get(&*self.identity.node)
    }
}

pub(crate) fn secret_ref(selector: &SecretKeySelector) -> SecretRef {
    SecretRef {
        name: selector.name.clone(),
        key: selector.key.clone(),
    }
}

/// Sets or removes a value, and tells whether it is another.
fn replace<K: Ord, V: PartialEq>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> bool {
    match value {
        Some(value) if map.get(&key) == Some(&value) => false,
        Some(value) => {
            map.insert(key, value);
            true
        }
        None => map.remove(&key).is_some(),
    }
}

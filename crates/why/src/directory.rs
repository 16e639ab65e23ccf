//! Who is who: endpoints and hosts by name and by address.
//!
//! The directory notes the same updates that the engine gets, and is [closed](Notes::close) when all are told.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use tortie_engine::Update;
use tortie_engine::input::{
    EndpointPort, HostEndpoint, HostEndpointKey, IpPool, Labels, Node, NodeAddressKind, PolicyId,
    WorkloadEndpoint, WorkloadEndpointKey,
};

use crate::placeholders::Placeholders;
use crate::services::{Candidate, Service, ServiceNotes};
use crate::suggest::Names;

/// What the updates said, so far.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    workloads: HashMap<WorkloadEndpointKey, NotedWorkload>,
    hosts: HashMap<String, Host>,
    /// Pods in the network of their host, by `namespace/name`, with the node.
    host_pods: HashMap<String, String>,
    policies: HashSet<PolicyId>,
    pools: Vec<(IpNet, IpPool)>,
    pub(crate) services: ServiceNotes,
    /// Whether labels of workloads are kept, for services that have no endpoint slices.
    pub(crate) keeps_labels: bool,
}

#[derive(Debug, Default)]
struct NotedWorkload {
    addresses: Vec<IpAddr>,
    ports: Vec<EndpointPort>,
    labels: Labels,
}

/// Who is who.
#[derive(Debug)]
pub struct Directory {
    pub(crate) workloads: Vec<Workload>,
    /// Places in `workloads`, by `namespace/name`.
    pub(crate) by_name: HashMap<String, Vec<usize>>,
    pub(crate) hosts: HashMap<String, Host>,
    /// Nodes of host endpoints, by the name of the endpoint.
    pub(crate) host_endpoints: HashMap<String, String>,
    pub(crate) host_pods: HashMap<String, String>,
    pub(crate) policies: HashSet<PolicyId>,
    by_address: HashMap<IpAddr, Vec<Owner>>,
    pub(crate) pools: Vec<(IpNet, IpPool)>,
    pub(crate) services: Vec<Service>,
    /// Made only for the first error that makes suggestions.
    pub(crate) names: OnceCell<Names>,
}

/// An interface of a workload.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) key: WorkloadEndpointKey,
    /// Its addresses; none if it is not running.
    pub(crate) addresses: Vec<IpAddr>,
    /// Its ports with names.
    pub(crate) ports: Vec<EndpointPort>,
}

/// A node.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// Its addresses, the most usual first.
    pub(crate) addresses: Vec<IpAddr>,
    /// The networks of its own addresses.
    pub(crate) subnets: Vec<IpNet>,
    pub(crate) endpoints: Vec<HostInterface>,
}

/// A host endpoint.
#[derive(Debug)]
pub(crate) struct HostInterface {
    pub(crate) key: HostEndpointKey,
    pub(crate) is_all_interfaces: bool,
    pub(crate) expected: Vec<IpAddr>,
    /// Its ports with names.
    pub(crate) ports: Vec<EndpointPort>,
}

/// Who has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The workload at this place.
    Workload(usize),
    /// The node of this name.
    Host(String),
}

// === impl Notes ===

impl Notes {
    /// Notes an update before the engine gets it.
    pub(crate) fn note(&mut self, update: &Update) {
        match update {
            Update::WorkloadEndpoint(key, endpoint) => {
                let noted = endpoint.as_deref().map(|endpoint| NotedWorkload {
                    addresses: addresses_of(endpoint),
                    ports: endpoint.ports.clone(),
                    labels: if self.keeps_labels {
                        endpoint.labels.clone()
                    } else {
                        Labels::new()
                    },
                });
                self.workloads
                    .insert(key.clone(), noted.unwrap_or_default());
            }
            Update::HostEndpoint(key, Some(endpoint)) => self.host_endpoint(key, endpoint),
            Update::Node(name, Some(node)) => {
                for address in node_addresses(node) {
                    self.host_address(name, address);
                }
                let subnets = [node.bgp_ipv4, node.bgp_ipv6];
                self.host(name).subnets = subnets.into_iter().flatten().collect();
            }
            Update::IpPool(net, Some(pool)) => self.pools.push((*net, pool.clone())),
            Update::Policy(id, Some(_)) => {
                self.policies.insert(id.clone());
            }
            _ => {}
        }
    }

    /// Forgets a workload that an update has just removed.
    pub(crate) fn forget_workload(&mut self, key: &WorkloadEndpointKey) {
        self.workloads.remove(key);
    }

    /// Notes a pod in the network of its host.
    pub(crate) fn host_pod(&mut self, pod: String, node: &str, addresses: &[IpAddr]) {
        for address in addresses {
            self.host_address(node, *address);
        }
        self.host(node);
        self.host_pods.insert(pod, node.to_owned());
    }

    /// Notes an address of a node.
    pub(crate) fn host_address(&mut self, node: &str, address: IpAddr) {
        let host = self.host(node);
        if !host.addresses.contains(&address) {
            host.addresses.push(address);
        }
    }

    fn host_endpoint(&mut self, key: &HostEndpointKey, endpoint: &HostEndpoint) {
        let host = self.host(&key.node);
        host.endpoints.retain(|held| held.key != *key);
        host.endpoints.push(HostInterface {
            key: key.clone(),
            is_all_interfaces: endpoint.interface == "*",
            expected: endpoint.expected_ips.clone(),
            ports: endpoint.ports.clone(),
        });
    }

    /// The endpoint slices that a cluster would make for services that have none.
    pub(crate) fn missing_slices(&self) -> Vec<EndpointSlice> {
        let mut pods: Vec<(&WorkloadEndpointKey, &NotedWorkload)> = self.workloads.iter().collect();
        pods.sort_unstable_by_key(|(key, _)| *key);
        let pods = pods.into_iter().filter_map(|(key, noted)| {
            Some(Candidate {
                namespace: key.workload.split_once('/')?.0,
                labels: &noted.labels,
                addresses: &noted.addresses,
                ports: &noted.ports,
            })
        });
        self.services.missing_slices(&pods.collect::<Vec<_>>())
    }

    fn host(&mut self, node: &str) -> &mut Host {
        self.hosts.entry(node.to_owned()).or_insert_with(|| Host {
            name: node.to_owned(),
            ..Host::default()
        })
    }

    /// Makes the directory; hosts without an address get made-up ones, if there are any.
    pub(crate) fn close(mut self, mut placeholders: Option<&mut Placeholders>) -> Directory {
        let nodes: HashSet<String> = self
            .workloads
            .keys()
            .map(|key| key.node.clone())
            .filter(|node| !self.hosts.contains_key(node) && !Placeholders::is_node(node))
            .collect();
        for node in &nodes {
            self.host(node);
        }
        let mut by_address: HashMap<IpAddr, Vec<Owner>> =
            HashMap::with_capacity(self.workloads.len());
        let mut own = |address: IpAddr, owner: Owner| {
            let owners = by_address.entry(address).or_default();
            if !owners.contains(&owner) {
                owners.push(owner);
            }
        };
        let workloads = self.workloads.into_iter();
        let mut workloads: Vec<Workload> = workloads
            .map(|(key, noted)| Workload {
                key,
                addresses: noted.addresses,
                ports: noted.ports,
            })
            .collect();
        workloads.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::with_capacity(workloads.len());
        for (place, workload) in workloads.iter().enumerate() {
            let name = workload.key.workload.clone();
            by_name.entry(name).or_default().push(place);
            for address in &workload.addresses {
                own(*address, Owner::Workload(place));
            }
        }
        let mut host_endpoints = HashMap::new();
        let mut hosts: Vec<&mut Host> = self.hosts.values_mut().collect();
        hosts.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for host in hosts {
            for endpoint in &host.endpoints {
                host_endpoints.insert(endpoint.key.name.clone(), host.name.clone());
                for address in &endpoint.expected {
                    own(*address, Owner::Host(host.name.clone()));
                    if !host.addresses.contains(address) {
                        host.addresses.push(*address);
                    }
                }
            }
            if let Some(placeholders) = placeholders.as_deref_mut()
                && host.addresses.is_empty()
            {
                host.addresses.extend(placeholders.addresses());
            }
            for address in &host.addresses {
                own(*address, Owner::Host(host.name.clone()));
            }
        }
        Directory {
            workloads,
            by_name,
            hosts: self.hosts,
            host_endpoints,
            host_pods: self.host_pods,
            policies: self.policies,
            by_address,
            pools: self.pools,
            services: self.services.close(),
            names: OnceCell::new(),
        }
    }
}

// === impl Directory ===

impl Directory {
    /// Who has an address; several if it is not clear.
    pub(crate) fn owners(&self, address: IpAddr) -> &[Owner] {
        self.by_address.get(&address).map_or(&[], Vec::as_slice)
    }

    /// The service that has an address of its own.
    pub(crate) fn service_at(&self, address: IpAddr) -> Option<&Service> {
        let mut services = self.services.iter();
        services.find(|service| service.addresses.contains(&address))
    }

    /// A service by `namespace/name`.
    pub(crate) fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }
}

fn addresses_of(endpoint: &WorkloadEndpoint) -> Vec<IpAddr> {
    let nets = endpoint.ipv4_nets.iter().chain(&endpoint.ipv6_nets);
    nets.map(ipnet::IpNet::addr).collect()
}

/// The addresses of a node in the order in which it would rather be known by them.
fn node_addresses(node: &Node) -> Vec<IpAddr> {
    let of_kind = |wanted: &[NodeAddressKind]| {
        let addresses = node.addresses.iter();
        let addresses = addresses.filter(|address| wanted.contains(&address.kind));
        addresses.map(|address| address.address).collect::<Vec<_>>()
    };
    let bgp = [node.bgp_ipv4, node.bgp_ipv6];
    let wireguard = node.wireguard.as_ref();
    let tunnels = [
        node.ipip_tunnel,
        node.vxlan_tunnel_v4,
        node.vxlan_tunnel_v6,
        wireguard.and_then(|wireguard| wireguard.interface_ipv4),
        wireguard.and_then(|wireguard| wireguard.interface_ipv6),
    ];
    let mut addresses: Vec<IpAddr> = bgp.iter().flatten().map(ipnet::IpNet::addr).collect();
    addresses.extend(of_kind(&[NodeAddressKind::CalicoNodeIP]));
    addresses.extend(of_kind(&[NodeAddressKind::InternalIP]));
    addresses.extend(of_kind(&[
        NodeAddressKind::ExternalIP,
        NodeAddressKind::Other,
    ]));
    addresses.extend(tunnels.iter().flatten());
    addresses
}

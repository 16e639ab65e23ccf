//! From resources to updates: the objects of the datastore, reduced to what a node works with.
//!
//! A [`Converter`] is told of every resource that is there, changes or goes, in any order, and gives the updates that
//! follow from it. Kubernetes objects that have no resource, [services](service) and
//! [endpoint slices](endpoint_slice), are converted on their own.
//!
//! # Invariants
//! - Pure and total: no I/O, no clock, and no panic on data.
//! - What cannot be converted says so with a problem, and whether something may be open that should not be: see
//!   [`Fidelity`]. A policy whose rules cannot be read is one that denies.
//! - Selectors are composed as Calico composes them, character by character, since sets are named by a hash of them.

mod cluster;
mod endpoint;
mod felix_configuration;
mod keys;
mod kinds;
mod kubernetes;
mod network;
mod policy;
mod read;
mod rule;
mod selector;

#[cfg(test)]
mod tests;

use std::fmt;

use ipnet::IpNet;
use tortie_api::meta::Metadata;
use tortie_api::{Kind, Path, Problem, Problems, Resource};

use tortie_engine::input::{HostEndpointKey, IpPool, ObjectName, Policy, Update};

use keys::{Contested, Remembered};
pub use kinds::{NODE_KINDS, POLICY_KINDS};
pub use kubernetes::{endpoint_slice, service};
pub use policy::policy_id;

/// The name of the resource that holds for the whole cluster, of kinds with few objects.
const DEFAULT: &str = "default";

/// Turns resources into updates.
///
/// It remembers only what a removal, which names the resource alone, cannot tell: keys that come from the spec, and
/// pools, of which several may claim one range. What it remembers of a resource stays where a newer version of that
/// cannot be converted.
#[derive(Debug, Default)]
pub struct Converter {
    pools: Contested<IpNet, IpPool>,
    host_endpoints: Remembered<HostEndpointKey>,
    blocks: Remembered<IpNet>,
}

/// What became of a resource.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Converted {
    /// The updates, in the order in which they are to be applied.
    pub updates: Vec<Update>,
    /// What was left out, and why.
    pub problems: Vec<ObjectProblem>,
    /// How the updates compare with what the resource says.
    pub fidelity: Fidelity,
}

/// How what a node works with compares with what a resource says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fidelity {
    /// It is the same, but for details that let nothing pass.
    #[default]
    Whole,
    /// The resource cannot be read; what is in its place lets pass less than the resource could.
    Closed,
    /// The resource cannot be read, and what it closes may be open.
    Open,
}

/// What is wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectProblem {
    /// The object, as `Kind(name)` or `Kind(namespace/name)`.
    pub object: String,
    /// The field, its value and the rule.
    pub problem: Problem,
}

// === impl Converter ===

impl Converter {
    /// A converter that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A resource is there, new or changed.
    pub fn set(&mut self, resource: &Resource) -> Converted {
        let mut problems = Problems::default();
        let mut is_stand_in = false;
        let updates = self.updates(resource, &mut problems, &mut is_stand_in);
        let is_lost = !problems.is_empty() && updates.iter().all(Update::is_removal);
        let fidelity = match resource {
            Resource::NetworkPolicy(_) | Resource::GlobalNetworkPolicy(_) => {
                match (is_lost, is_stand_in) {
                    (true, _) => Fidelity::Open,
                    (false, true) => Fidelity::Closed,
                    (false, false) => Fidelity::Whole,
                }
            }
            // A member that is missing may be one that a rule denies.
            Resource::NetworkSet(_) | Resource::GlobalNetworkSet(_) if !problems.is_empty() => {
                Fidelity::Open
            }
            Resource::HostEndpoint(_) if is_lost => Fidelity::Open,
            _ if is_lost => Fidelity::Closed,
            _ => Fidelity::Whole,
        };
        let id = resource.id();
        let problems = problems.iter().map(|problem| ObjectProblem {
            object: id.clone(),
            problem: problem.clone(),
        });
        Converted {
            updates,
            problems: problems.collect(),
            fidelity,
        }
    }

    /// A resource is gone.
    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) -> Vec<Update> {
        match kind {
            Kind::IpPool => pool_updates(self.pools.remove(name)),
            Kind::HostEndpoint => moved(self.host_endpoints.remove(name), Update::HostEndpoint),
            Kind::IpamBlock => moved(self.blocks.remove(name), Update::Block),
            _ => absent(kind, namespace, name).into_iter().collect(),
        }
    }

    fn updates(
        &mut self,
        resource: &Resource,
        problems: &mut Problems,
        is_stand_in: &mut bool,
    ) -> Vec<Update> {
        let metadata = resource.metadata();
        let name = metadata.name.clone();
        let update = match resource {
            Resource::NetworkPolicy(policy) => {
                let converted = policy::network_policy(&metadata.namespace, &policy.spec, problems);
                *is_stand_in = converted.is_stand_in;
                return policy_update(resource, converted.policy, problems);
            }
            Resource::GlobalNetworkPolicy(policy) => {
                let converted = policy::global_network_policy(&policy.spec, problems);
                *is_stand_in = converted.is_stand_in;
                return policy_update(resource, converted.policy, problems);
            }
            Resource::StagedNetworkPolicy(policy) => {
                let value =
                    policy::staged_network_policy(&metadata.namespace, &policy.spec, problems);
                return policy_update(resource, value, problems);
            }
            Resource::StagedGlobalNetworkPolicy(policy) => {
                let value = policy::staged_global_network_policy(&policy.spec, problems);
                return policy_update(resource, value, problems);
            }
            Resource::StagedKubernetesNetworkPolicy(policy) => {
                let value = policy::staged_kubernetes_network_policy(policy, problems);
                return policy_update(resource, value, problems);
            }
            Resource::WorkloadEndpoint(endpoint) => {
                let Some(key) = endpoint::workload_key(&metadata.namespace, &name) else {
                    problems.add(
                        &Path::ROOT.field("metadata").field("name"),
                        &name,
                        "must be the node, the orchestrator, the workload and the interface, \
                         in a namespace",
                    );
                    return Vec::new();
                };
                Update::WorkloadEndpoint(
                    key,
                    endpoint::workload_endpoint(endpoint, problems).map(Box::new),
                )
            }
            Resource::HostEndpoint(endpoint) => {
                let value = endpoint::host_endpoint(endpoint, problems);
                if value.is_none() && self.host_endpoints.contains(&name) {
                    return Vec::new();
                }
                return self.host_endpoints.set(&name, value, |key, value| {
                    Update::HostEndpoint(key, value.map(Box::new))
                });
            }
            Resource::IpPool(pool) => {
                let value = network::pool(&pool.spec, problems);
                if value.is_none() && self.pools.contains(&name) {
                    return Vec::new();
                }
                return pool_updates(self.pools.set(&name, value));
            }
            Resource::IpamBlock(block) => {
                let value = network::block(&block.spec, problems);
                if value.is_none() && self.blocks.contains(&name) {
                    return Vec::new();
                }
                return self.blocks.set(&name, value, Update::Block);
            }
            Resource::Tier(tier) => Update::Tier(name, Some(policy::tier(&tier.spec))),
            Resource::Profile(profile) => {
                Update::Profile(name, policy::profile(&profile.spec, problems))
            }
            Resource::NetworkSet(set) => Update::NetworkSet(
                format!("{}/{name}", metadata.namespace),
                Some(endpoint::network_set(metadata, &set.spec.nets, problems)),
            ),
            Resource::GlobalNetworkSet(set) => Update::NetworkSet(
                name,
                Some(endpoint::global_network_set(
                    metadata,
                    &set.spec.nets,
                    problems,
                )),
            ),
            Resource::Node(node) => Update::Node(name, network::node(node, problems).map(Box::new)),
            Resource::FelixConfiguration(configuration) => Update::Configuration(
                name,
                felix_configuration::configuration(configuration, problems),
            ),
            Resource::BgpPeer(peer) => {
                Update::BgpPeer(name, cluster::bgp_peer(&peer.spec, problems))
            }
            Resource::LiveMigration(migration) => Update::LiveMigration(
                object_name(metadata),
                cluster::live_migration(migration, problems),
            ),
            Resource::ClusterInformation(information) if name == DEFAULT => {
                Update::Cluster(Some(cluster::cluster(&information.spec)))
            }
            Resource::BgpConfiguration(configuration) if name == DEFAULT => {
                Update::BgpConfiguration(Some(cluster::bgp_configuration(&configuration.spec)))
            }
            _ => return Vec::new(),
        };
        vec![update]
    }
}

// === impl ObjectProblem ===

impl fmt::Display for ObjectProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.problem)
    }
}

/// The removal of an object whose key follows from its name.
fn absent(kind: Kind, namespace: &str, name: &str) -> Option<Update> {
    if let Some(id) = policy_id(kind, namespace, name) {
        return Some(Update::Policy(id, None));
    }
    let name = name.to_owned();
    Some(match kind {
        Kind::Tier => Update::Tier(name, None),
        Kind::Profile => Update::Profile(name, None),
        Kind::WorkloadEndpoint => {
            Update::WorkloadEndpoint(endpoint::workload_key(namespace, &name)?, None)
        }
        Kind::NetworkSet => Update::NetworkSet(format!("{namespace}/{name}"), None),
        Kind::GlobalNetworkSet => Update::NetworkSet(name, None),
        Kind::Node => Update::Node(name, None),
        Kind::FelixConfiguration => Update::Configuration(name, None),
        Kind::BgpPeer => Update::BgpPeer(name, None),
        Kind::LiveMigration => {
            let namespace = namespace.to_owned();
            Update::LiveMigration(ObjectName { namespace, name }, None)
        }
        Kind::ClusterInformation if name == DEFAULT => Update::Cluster(None),
        Kind::BgpConfiguration if name == DEFAULT => Update::BgpConfiguration(None),
        _ => return None,
    })
}

/// The update of a policy, unless its name is incomplete.
fn policy_update(
    resource: &Resource,
    value: Option<Policy>,
    problems: &mut Problems,
) -> Vec<Update> {
    let Metadata {
        name, namespace, ..
    } = resource.metadata();
    let id = policy_id(resource.kind(), namespace, name);
    if id.is_none() {
        let root = Path::ROOT;
        let at = root.field("metadata");
        problems.add_missing(&at, "must have a name, and a namespace if the kind has one");
    }
    id.map(|id| Update::Policy(id, value)).into_iter().collect()
}

fn pool_updates(changes: Vec<(IpNet, Option<IpPool>)>) -> Vec<Update> {
    let updates = changes.into_iter();
    updates
        .map(|(range, pool)| Update::IpPool(range, pool))
        .collect()
}

/// The removal of what was at a key.
fn moved<K, V>(key: Option<K>, update: impl FnOnce(K, Option<V>) -> Update) -> Vec<Update> {
    key.map(|key| update(key, None)).into_iter().collect()
}

fn object_name(metadata: &Metadata) -> ObjectName {
    ObjectName {
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
    }
}

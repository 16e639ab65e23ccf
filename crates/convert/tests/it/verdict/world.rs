//! The objects of a cluster as users write them, and an engine that is led from one state of the cluster to another.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::hash::{Hash as _, Hasher as _};

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy as KubePolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tortie_api::k8s::{self, ClusterNetworkPolicy};
use tortie_api::{Kind, Resource};
use tortie_convert::{self as convert, Converter};
use tortie_engine::input::ObjectName;
use tortie_engine::{Config, Engine, Message, Scope, Update};

/// An object, as a user writes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Object {
    Resource(Resource),
    Namespace(Namespace),
    ServiceAccount(ServiceAccount),
    KubePolicy(KubePolicy),
    ClusterPolicy(ClusterNetworkPolicy),
    Slice(EndpointSlice),
}

/// All objects of a cluster, by kind, namespace and name.
#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) objects: BTreeMap<Key, Object>,
}

/// The kind, namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    Resource(Kind, String, String),
    Slice(String, String),
}

/// An engine, with the world that it was last told of.
pub(crate) struct Cluster {
    pub(crate) engine: Engine,
    converter: Converter,
    known: World,
}

// === impl Object ===

impl Object {
    /// The object as the datastore holds it: Calico's and Kubernetes' API servers set defaults, and Kubernetes' own
    /// objects become Calico's. None if a server would refuse it.
    fn stored(&self) -> Option<Resource> {
        match self {
            Self::Resource(resource) => {
                let mut resource = resource.clone();
                resource.set_defaults();
                resource.validate().ok().map(|()| resource)
            }
            Self::Namespace(namespace) => k8s::namespace(namespace).resource.map(Into::into),
            Self::ServiceAccount(account) => k8s::service_account(account).resource.map(Into::into),
            Self::KubePolicy(policy) => {
                let converted = k8s::network_policy(&with_types(policy));
                let mut policy = converted.resource?;
                policy.metadata.name.insert_str(0, "knp.default.");
                converted.problems.is_empty().then(|| policy.into())
            }
            Self::ClusterPolicy(policy) => {
                let converted = k8s::cluster_network_policy(policy);
                let mut policy = converted.resource?;
                policy.metadata.name.insert_str(0, "kcnp.");
                converted.problems.is_empty().then(|| policy.into())
            }
            Self::Slice(_) => None,
        }
    }

    fn key(&self) -> Option<Key> {
        if let Self::Slice(slice) = self {
            let (namespace, name) = names(&slice.metadata);
            return Some(Key::Slice(namespace, name));
        }
        let stored = self.stored()?;
        let metadata = stored.metadata();
        let (namespace, name) = (metadata.namespace.clone(), metadata.name.clone());
        Some(Key::Resource(stored.kind(), namespace, name))
    }
}

/// Kubernetes' API server fills in the directions: ingress, and egress if there are rules for it.
fn with_types(policy: &KubePolicy) -> KubePolicy {
    let mut policy = policy.clone();
    let spec = policy.spec.get_or_insert_default();
    let types = spec.policy_types.get_or_insert_default();
    if types.is_empty() {
        types.push("Ingress".to_owned());
        if spec.egress.as_ref().is_some_and(|rules| !rules.is_empty()) {
            types.push("Egress".to_owned());
        }
    }
    policy
}

/// The namespace and name of a Kubernetes object.
pub(crate) fn names(metadata: &ObjectMeta) -> (String, String) {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    (text(&metadata.namespace), text(&metadata.name))
}

// === impl World ===

impl World {
    /// A world of these objects, without those that a server would refuse. Of several with one name the last stays.
    pub(crate) fn new(objects: impl IntoIterator<Item = Object>) -> Self {
        let objects = objects.into_iter();
        let objects = objects.filter_map(|object| Some((object.key()?, object)));
        Self {
            objects: objects.collect(),
        }
    }

    /// Calico's own objects.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.objects.values().filter_map(|object| match object {
            Object::Resource(resource) => Some(resource),
            _ => None,
        })
    }
}

impl fmt::Display for World {
    /// One object a line, as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for object in self.objects.values() {
            let json = match object {
                Object::Resource(object) => serde_json::to_string(object),
                Object::Namespace(object) => serde_json::to_string(object),
                Object::ServiceAccount(object) => serde_json::to_string(object),
                Object::KubePolicy(object) => serde_json::to_string(object),
                Object::ClusterPolicy(object) => {
                    f.write_str("ClusterNetworkPolicy ")?;
                    serde_json::to_string(object)
                }
                Object::Slice(object) => serde_json::to_string(object),
            };
            f.write_str(&json.map_err(|_| fmt::Error)?)?;
            f.write_char('\n')?;
        }
        Ok(())
    }
}

// === impl Cluster ===

impl Cluster {
    /// An engine that answers for all nodes.
    pub(crate) fn new() -> Self {
        Self::with_scope(Scope::AllNodes)
    }

    pub(crate) fn with_scope(scope: Scope) -> Self {
        let config = Config {
            scope,
            ..Config::for_node("n1")
        };
        Self {
            engine: Engine::new(config),
            converter: Converter::new(),
            known: World::default(),
        }
    }

    /// Tells the engine of all that is different in another world, in an order and with flushes that follow from
    /// `seed`. Gives what each flush told the data plane.
    pub(crate) fn become_world(&mut self, world: &World, seed: u64) -> Vec<Vec<Message>> {
        let mut flushes = Vec::new();
        let keys = self.known.objects.keys().chain(world.objects.keys());
        let keys: BTreeSet<&Key> = keys.collect();
        let changed = keys
            .into_iter()
            .filter(|key| self.known.objects.get(key) != world.objects.get(key));
        let mut changed: Vec<(u64, &Key)> = changed.map(|key| (hash(seed, key), key)).collect();
        changed.sort_unstable();
        for (number, key) in changed {
            let updates = updates(&mut self.converter, key, world.objects.get(key));
            for update in &updates {
                self.engine.on_update(update);
            }
            // The high bits decide the order, the low ones are as good as new.
            if number % 5 == 0 {
                flushes.push(self.engine.flush());
            }
        }
        self.engine.on_in_sync();
        flushes.push(self.engine.flush());
        self.known = world.clone();
        flushes
    }
}

fn updates(converter: &mut Converter, key: &Key, object: Option<&Object>) -> Vec<Update> {
    match (key, object) {
        (Key::Slice(..), Some(Object::Slice(slice))) => vec![convert::endpoint_slice(slice)],
        (Key::Slice(namespace, name), _) => {
            let (namespace, name) = (namespace.clone(), name.clone());
            vec![Update::EndpointSlice(ObjectName { namespace, name }, None)]
        }
        (Key::Resource(kind, namespace, name), None) => converter.remove(*kind, namespace, name),
        (Key::Resource(..), Some(object)) => {
            let stored = object.stored().expect("it was stored before");
            let result = converter.set(&stored);
            assert_eq!(result.problems, [], "of {object:?}");
            result.updates
        }
    }
}

fn hash(seed: u64, key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, key).hash(&mut hasher);
    hasher.finish()
}

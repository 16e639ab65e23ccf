//! Where resources of a kind come from: custom resources, or Kubernetes' own objects that are converted.
//!
//! A kind has one or two sources. Which source a resource comes from follows from its name, so that two sources never
//! hold the same key.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tortie_api::crd::Group;
use tortie_api::k8s::{self, Converted, ProfileOwner};
use tortie_api::names::EndpointIds;
use tortie_api::names::{KUBERNETES_CLUSTER_POLICY, KUBERNETES_POLICY};
use tortie_api::{Kind, Resource};

use super::api::{Endpoint, Selection};
use super::stored;
use crate::key::{Key, Query};
use crate::store::Invalid;

/// What the conversions depend on.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) group: Group,
    pub(super) use_pod_cidr: bool,
    pub(super) veth_prefix: String,
}

/// One kind of Kubernetes objects that are, or become, resources of a kind.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) endpoint: Endpoint,
    kind: Kind,
    view: View,
}

/// How an object becomes a resource.
#[derive(Debug, Clone)]
enum View {
    Crd(Group),
    NetworkPolicy,
    ClusterNetworkPolicy,
    Pod { veth_prefix: String },
    Namespace,
    ServiceAccount,
    Node { use_pod_cidr: bool },
    Migration,
}

/// What an object is to the datastore.
#[derive(Debug)]
pub(super) enum Reading {
    /// A resource.
    Present(Resource),
    /// A resource that counts as deleted.
    Absent(Key),
    /// No resource, and never was one.
    Unrelated,
    /// A resource that cannot be read.
    Invalid(Invalid),
}

impl Source {
    /// The sources of a kind, in the order of the parts of its revision.
    pub(super) fn of(kind: Kind, settings: &Settings) -> Vec<Self> {
        let new = |base: &str, plural, is_namespaced, view| {
            let endpoint = Endpoint {
                base: base.to_owned(),
                plural,
                is_namespaced,
            };
            Self {
                endpoint,
                kind,
                view,
            }
        };
        let crd = || {
            let group = settings.group;
            let base = format!("/apis/{}/{}", group.name(), group.version());
            new(
                &base,
                group.crd_names(kind).1,
                kind.is_namespaced(),
                View::Crd(group),
            )
        };
        match kind {
            Kind::NetworkPolicy => {
                let base = "/apis/networking.k8s.io/v1";
                vec![
                    crd(),
                    new(base, "networkpolicies", true, View::NetworkPolicy),
                ]
            }
            Kind::GlobalNetworkPolicy => {
                let base = "/apis/policy.networking.k8s.io/v1alpha2";
                vec![
                    crd(),
                    new(
                        base,
                        "clusternetworkpolicies",
                        false,
                        View::ClusterNetworkPolicy,
                    ),
                ]
            }
            Kind::Profile => vec![
                new("/api/v1", "namespaces", false, View::Namespace),
                new("/api/v1", "serviceaccounts", true, View::ServiceAccount),
            ],
            Kind::WorkloadEndpoint => {
                let view = View::Pod {
                    veth_prefix: settings.veth_prefix.clone(),
                };
                vec![new("/api/v1", "pods", true, view)]
            }
            Kind::Node => {
                vec![new(
                    "/api/v1",
                    "nodes",
                    false,
                    View::Node {
                        use_pod_cidr: settings.use_pod_cidr,
                    },
                )]
            }
            Kind::LiveMigration => {
                let base = "/apis/kubevirt.io/v1";
                vec![new(
                    base,
                    "virtualmachineinstancemigrations",
                    true,
                    View::Migration,
                )]
            }
            _ => vec![crd()],
        }
    }

    /// Whether a cluster may do without these objects, so that it has none where it does not serve them.
    ///
    /// What decides about packets is never taken for absent: an API server that is starting, or a proxy in front of one,
    /// answers as if it had never heard of the kind.
    pub(super) fn is_optional(&self) -> bool {
        match &self.view {
            View::Crd(_) => !matches!(
                self.kind,
                Kind::ClusterInformation
                    | Kind::FelixConfiguration
                    | Kind::GlobalNetworkPolicy
                    | Kind::GlobalNetworkSet
                    | Kind::HostEndpoint
                    | Kind::IpPool
                    | Kind::NetworkPolicy
                    | Kind::NetworkSet
                    | Kind::Tier
            ),
            View::ClusterNetworkPolicy | View::Migration => true,
            View::NetworkPolicy
            | View::Pod { .. }
            | View::Namespace
            | View::ServiceAccount
            | View::Node { .. } => false,
        }
    }

    /// The group, if the source is a custom resource, which can be written.
    pub(super) fn crd_group(&self) -> Option<Group> {
        match self.view {
            View::Crd(group) => Some(group),
            _ => None,
        }
    }

    /// The object that a resource of this key comes from; nothing if it cannot come from this source.
    pub(super) fn locate(&self, key: &Key) -> Option<Selection> {
        let at = |namespace: &str, name: &str| Selection {
            namespace: namespace.into(),
            name: name.into(),
            ..Selection::default()
        };
        match &self.view {
            View::Crd(_) if is_converted(self.kind, &key.name) => None,
            View::Crd(_) => Some(at(
                &key.namespace,
                &stored::stored_name(self.kind, &key.name),
            )),
            View::NetworkPolicy => Some(at(
                &key.namespace,
                key.name.strip_prefix(KUBERNETES_POLICY)?,
            )),
            View::ClusterNetworkPolicy => {
                Some(at("", key.name.strip_prefix(KUBERNETES_CLUSTER_POLICY)?))
            }
            View::Pod { .. } => {
                let ids = EndpointIds::parse(&key.name).ok()?;
                (!ids.pod.is_empty()).then(|| at(&key.namespace, &ids.pod))
            }
            View::Namespace => match ProfileOwner::of_profile(&key.name)? {
                ProfileOwner::Namespace { name } => Some(at("", &name)),
                _ => None,
            },
            View::ServiceAccount => match ProfileOwner::of_profile(&key.name)? {
                ProfileOwner::ServiceAccount { namespace, name } => Some(at(&namespace, &name)),
                _ => None,
            },
            View::Node { .. } | View::Migration => Some(at(&key.namespace, &key.name)),
        }
    }

    /// The objects that resources of a query come from; nothing if none can come from this source.
    pub(super) fn select(&self, query: &Query) -> Option<Selection> {
        let namespace = query.namespace.clone().unwrap_or_default();
        match &query.name {
            Some(name) => self.locate(&Key {
                kind: query.kind,
                namespace,
                name: name.clone(),
            }),
            None => Some(Selection {
                namespace,
                ..Selection::default()
            }),
        }
    }

    /// What an object is to the datastore.
    pub(super) fn read(&self, object: &Value) -> Reading {
        let reading = match &self.view {
            View::Crd(group) => self.read_stored(*group, object),
            View::NetworkPolicy => self.convert(object, k8s::network_policy),
            View::ClusterNetworkPolicy => self.convert(object, k8s::cluster_network_policy),
            View::Namespace => self.convert(object, k8s::namespace),
            View::ServiceAccount => self.convert(object, k8s::service_account),
            View::Node { use_pod_cidr } => {
                self.convert(object, |node| k8s::node(node, *use_pod_cidr))
            }
            View::Pod { veth_prefix } => match from_json(object) {
                Ok(pod) if !k8s::is_valid_workload_endpoint(&pod) => Reading::Unrelated,
                Ok(pod) => self.converted(object, k8s::pod(&pod, veth_prefix)),
                Err(reason) => self.invalid(object, reason),
            },
            View::Migration => match from_json(object) {
                Ok(migration) => match k8s::live_migration(&migration) {
                    Some(migration) => Reading::Present(migration.into()),
                    None => Reading::Absent(self.raw_key(object)),
                },
                Err(reason) => self.invalid(object, reason),
            },
        };
        match reading {
            Reading::Present(mut resource) => {
                resource.metadata_mut().resource_version = self.object_revision(object);
                Reading::Present(resource)
            }
            other => other,
        }
    }

    fn read_stored(&self, group: Group, object: &Value) -> Reading {
        let key = self.raw_key(object);
        if is_converted(self.kind, &key.name) {
            return Reading::Unrelated;
        }
        match stored::decode(group, self.kind, object) {
            Ok(resource) if stored::is_marked(&resource) => Reading::Absent(Key::of(&resource)),
            Ok(resource) => Reading::Present(resource),
            Err(reason) => Reading::Invalid(Invalid::new(key, reason, Some(object))),
        }
    }

    fn convert<O: DeserializeOwned, R: Into<Resource>>(
        &self,
        object: &Value,
        convert: impl FnOnce(&O) -> Converted<R>,
    ) -> Reading {
        match from_json(object) {
            Ok(typed) => self.converted(object, convert(&typed)),
            Err(reason) => self.invalid(object, reason),
        }
    }

    fn converted<R: Into<Resource>>(&self, object: &Value, converted: Converted<R>) -> Reading {
        let Some(resource) = converted.resource else {
            return self.invalid(object, converted.problems.to_string());
        };
        let mut resource = resource.into();
        resource.metadata_mut().name = self.name_of(&resource.metadata().name);
        if !converted.problems.is_empty() {
            let (object, problems) = (resource.id(), converted.problems);
            tracing::warn!(%object, %problems, "Parts of a Kubernetes object are ignored");
        }
        Reading::Present(resource)
    }

    fn invalid(&self, object: &Value, reason: String) -> Reading {
        Reading::Invalid(Invalid::new(self.raw_key(object), reason, None))
    }

    /// The key of the resource that an object would be, from the object's own name.
    fn raw_key(&self, object: &Value) -> Key {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let name = match &self.view {
            View::Namespace => ProfileOwner::Namespace { name }.profile_name(),
            View::ServiceAccount => ProfileOwner::ServiceAccount {
                namespace: namespace.clone(),
                name,
            }
            .profile_name(),
            View::Pod { .. } => {
                let ids = EndpointIds {
                    node: text("/spec/nodeName"),
                    orchestrator: "k8s".into(),
                    pod: name.clone(),
                    endpoint: "eth0".into(),
                    ..EndpointIds::default()
                };
                ids.name().unwrap_or(name)
            }
            _ => self.name_of(&name),
        };
        Key {
            kind: self.kind,
            namespace: if self.kind.is_namespaced() {
                namespace
            } else {
                String::new()
            },
            name,
        }
    }

    /// The name of the resource, from that of a converted policy.
    fn name_of(&self, name: &str) -> String {
        match self.view {
            View::NetworkPolicy => format!("{KUBERNETES_POLICY}{name}"),
            View::ClusterNetworkPolicy => format!("{KUBERNETES_CLUSTER_POLICY}{name}"),
            _ => name.to_owned(),
        }
    }

    /// The revision of a resource; that of a profile also tells its source.
    fn object_revision(&self, object: &Value) -> String {
        let revision = revision_of(object);
        match self.view {
            View::Namespace => format!("{revision}/"),
            View::ServiceAccount => format!("/{revision}"),
            _ => revision.to_owned(),
        }
    }
}

/// Whether resources of this kind and name are converted policies, which only Kubernetes' own API can change.
pub(super) fn is_converted(kind: Kind, name: &str) -> bool {
    match kind {
        Kind::NetworkPolicy => name.starts_with(KUBERNETES_POLICY),
        Kind::GlobalNetworkPolicy => name.starts_with(KUBERNETES_CLUSTER_POLICY),
        _ => false,
    }
}

/// The API server's revision of an object.
pub(super) fn revision_of(object: &Value) -> &str {
    object
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn from_json<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    T::deserialize(object).map_err(|error| error.to_string())
}

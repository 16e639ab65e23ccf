//! Kubernetes objects seen as resources: which resource an object is, and which object a resource comes from.
//!
//! Every datastore that holds Kubernetes objects shows them through these views, so that all of them give a resource the
//! same name and content.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Converted, ProfileOwner};
use crate::kind::Kind;
use crate::names::{EndpointIds, KUBERNETES_CLUSTER_POLICY, KUBERNETES_POLICY};
use crate::problem::Problems;
use crate::resource::Resource;

/// How Kubernetes objects of one type are seen as resources of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// A `NetworkPolicy` of `networking.k8s.io`, as a policy named `knp.default.<name>`.
    NetworkPolicy,
    /// A `ClusterNetworkPolicy`, as a global policy named `kcnp.<name>`.
    ClusterNetworkPolicy,
    /// A pod, as a workload endpoint.
    Pod {
        /// What the names of pods' interfaces on their hosts start with.
        veth_prefix: String,
    },
    /// A namespace, as a profile named `kns.<name>`.
    Namespace,
    /// A service account, as a profile named `ksa.<namespace>.<name>`.
    ServiceAccount,
    /// A node, under its own name.
    Node {
        /// Whether its `podCIDR` tells which addresses are its own.
        use_pod_cidr: bool,
    },
    /// A live migration of `KubeVirt`, under its own name.
    LiveMigration,
}

/// Namespace and name of an object or a resource; the namespace is empty for what is cluster-wide.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacedName {
    /// The namespace, or nothing.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What an object is, seen as a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// A resource, without a revision, and what of the object was left out or replaced.
    Present(Resource, Problems),
    /// A resource that counts as deleted.
    Absent(NamespacedName),
    /// No resource, and never was one.
    Unrelated,
    /// A resource that cannot be read, for this reason.
    Unreadable(NamespacedName, String),
}

// === impl View ===

impl View {
    /// The kind of the resources.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NetworkPolicy => Kind::NetworkPolicy,
            Self::ClusterNetworkPolicy => Kind::GlobalNetworkPolicy,
            Self::Pod { .. } => Kind::WorkloadEndpoint,
            Self::Namespace | Self::ServiceAccount => Kind::Profile,
            Self::Node { .. } => Kind::Node,
            Self::LiveMigration => Kind::LiveMigration,
        }
    }

    /// What an object is, seen as a resource.
    pub fn read(&self, object: &Value) -> Reading {
        match self {
            Self::NetworkPolicy => self.convert(object, super::network_policy),
            Self::ClusterNetworkPolicy => self.convert(object, super::cluster_network_policy),
            Self::Namespace => self.convert(object, super::namespace),
            Self::ServiceAccount => self.convert(object, super::service_account),
            Self::Node { use_pod_cidr } => {
                self.convert(object, |node| super::node(node, *use_pod_cidr))
            }
            Self::Pod { veth_prefix } => match from_json(object) {
                Ok(pod) if !super::is_valid_workload_endpoint(&pod) => Reading::Unrelated,
                Ok(pod) => self.converted(object, super::pod(&pod, veth_prefix)),
                Err(reason) => self.unreadable(object, reason),
            },
            Self::LiveMigration => match from_json(object) {
                Ok(migration) => match super::live_migration(&migration) {
                    Some(migration) => Reading::Present(migration.into(), Problems::default()),
                    None => Reading::Absent(self.name_of(object)),
                },
                Err(reason) => self.unreadable(object, reason),
            },
        }
    }

    /// The resource that an object of this name is; nothing where the name alone does not tell.
    pub fn resource_name(&self, namespace: &str, name: &str) -> Option<NamespacedName> {
        Some(match self {
            Self::NetworkPolicy => {
                NamespacedName::new(namespace, format!("{KUBERNETES_POLICY}{name}"))
            }
            Self::ClusterNetworkPolicy => {
                NamespacedName::new("", format!("{KUBERNETES_CLUSTER_POLICY}{name}"))
            }
            Self::Namespace => {
                let name = name.to_owned();
                NamespacedName::new("", ProfileOwner::Namespace { name }.profile_name())
            }
            Self::ServiceAccount => {
                let owner = ProfileOwner::ServiceAccount {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                };
                NamespacedName::new("", owner.profile_name())
            }
            Self::Node { .. } => NamespacedName::new("", name),
            Self::LiveMigration => NamespacedName::new(namespace, name),
            Self::Pod { .. } => return None,
        })
    }

    /// The object that a resource of this name comes from; nothing if it cannot come from one of this type.
    pub fn object_name(&self, namespace: &str, name: &str) -> Option<NamespacedName> {
        Some(match self {
            Self::NetworkPolicy => {
                NamespacedName::new(namespace, name.strip_prefix(KUBERNETES_POLICY)?)
            }
            Self::ClusterNetworkPolicy => {
                NamespacedName::new("", name.strip_prefix(KUBERNETES_CLUSTER_POLICY)?)
            }
            Self::Pod { .. } => {
                let ids = EndpointIds::parse(name).ok()?;
                (!ids.pod.is_empty()).then(|| NamespacedName::new(namespace, ids.pod))?
            }
            Self::Namespace => match ProfileOwner::of_profile(name)? {
                ProfileOwner::Namespace { name } => NamespacedName::new("", name),
                _ => return None,
            },
            Self::ServiceAccount => match ProfileOwner::of_profile(name)? {
                ProfileOwner::ServiceAccount { namespace, name } => {
                    NamespacedName::new(namespace, name)
                }
                _ => return None,
            },
            Self::Node { .. } | Self::LiveMigration => NamespacedName::new(namespace, name),
        })
    }

    fn convert<O: DeserializeOwned, R: Into<Resource>>(
        &self,
        object: &Value,
        convert: impl FnOnce(&O) -> Converted<R>,
    ) -> Reading {
        match from_json(object) {
            Ok(typed) => self.converted(object, convert(&typed)),
            Err(reason) => self.unreadable(object, reason),
        }
    }

    /// Policies are converted under their own names.
    fn converted<R: Into<Resource>>(&self, object: &Value, converted: Converted<R>) -> Reading {
        let Some(resource) = converted.resource else {
            return self.unreadable(object, converted.problems.to_string());
        };
        let mut resource = resource.into();
        if let Self::NetworkPolicy | Self::ClusterNetworkPolicy = self {
            resource.metadata_mut().name = self.name_of(object).name;
        }
        Reading::Present(resource, converted.problems)
    }

    fn unreadable(&self, object: &Value, reason: String) -> Reading {
        Reading::Unreadable(self.name_of(object), reason)
    }

    /// The resource that an object would be, whether or not the object can be read.
    fn name_of(&self, object: &Value) -> NamespacedName {
        let text = |pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default()
        };
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let named = self.resource_name(namespace, name);
        named.unwrap_or_else(|| {
            let ids = EndpointIds {
                node: text("/spec/nodeName").to_owned(),
                orchestrator: "k8s".into(),
                pod: name.to_owned(),
                endpoint: "eth0".into(),
                ..EndpointIds::default()
            };
            NamespacedName::new(namespace, ids.name().unwrap_or_else(|_| name.to_owned()))
        })
    }
}

// === impl NamespacedName ===

impl NamespacedName {
    /// Both parts; the namespace is empty for what is cluster-wide.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// Whether policies of this kind and name are made of Kubernetes' own, which only the API of Kubernetes can change.
pub fn is_kubernetes_policy(kind: Kind, name: &str) -> bool {
    match kind {
        Kind::NetworkPolicy => name.starts_with(KUBERNETES_POLICY),
        Kind::GlobalNetworkPolicy => name.starts_with(KUBERNETES_CLUSTER_POLICY),
        _ => false,
    }
}

fn from_json<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    T::deserialize(object).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_names(view: &View, object: [&str; 2], resource: [&str; 2]) {
        let [object, resource] =
            [object, resource].map(|[namespace, name]| NamespacedName::new(namespace, name));
        let named = view.resource_name(&object.namespace, &object.name);
        assert_eq!(named.as_ref(), Some(&resource));
        let back = view.object_name(&resource.namespace, &resource.name);
        assert_eq!(back, Some(object));
    }

    #[test]
    fn object_and_resource_lead_to_each_other() {
        check_names(
            &View::NetworkPolicy,
            ["shop", "web"],
            ["shop", "knp.default.web"],
        );
        check_names(&View::ClusterNetworkPolicy, ["", "web"], ["", "kcnp.web"]);
        check_names(&View::Namespace, ["", "shop"], ["", "kns.shop"]);
        let account = ["shop", "robot.v2"];
        check_names(&View::ServiceAccount, account, ["", "ksa.shop.robot.v2"]);
        let node = View::Node {
            use_pod_cidr: false,
        };
        check_names(&node, ["", "node-1"], ["", "node-1"]);
    }

    #[test]
    fn names_of_others_lead_nowhere() {
        for (view, name) in [
            (View::NetworkPolicy, "default.web"),
            (View::ClusterNetworkPolicy, "web"),
            (View::Namespace, "ksa.shop.robot"),
            (View::Namespace, "projectcalico-default-allow"),
            (View::ServiceAccount, "kns.shop"),
        ] {
            assert_eq!(view.object_name("", name), None, "{name}");
        }
    }

    #[test]
    fn a_policy_is_read_under_its_own_prefix_also_if_it_cannot_be_read() {
        let policy = json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
        });
        let Reading::Present(resource, problems) = View::NetworkPolicy.read(&policy) else {
            panic!("it is a policy");
        };
        assert_eq!(resource.metadata().name, "knp.default.web");
        assert!(problems.is_empty());
        let broken = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": 1});
        let Reading::Unreadable(name, _) = View::NetworkPolicy.read(&broken) else {
            panic!("its spec is no object");
        };
        assert_eq!(name, NamespacedName::new("shop", "knp.default.web"));
    }
}

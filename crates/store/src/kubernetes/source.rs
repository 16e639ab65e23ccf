//! Where resources of a kind come from: custom resources, or Kubernetes' own objects that are converted.
//!
//! A kind has one or two sources. Which source a resource comes from follows from its name, so that two sources never
//! hold the same key.

use serde_json::Value;
use tortie_api::crd::Group;
use tortie_api::k8s::{self, NamespacedName, View};
use tortie_api::{Kind, Resource};
use tortie_sync::kubernetes::{Endpoint, Selection};

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
    form: Form,
}

/// What the objects are.
#[derive(Debug, Clone)]
enum Form {
    /// Custom resources, which can be written.
    Crd(Group),
    /// Kubernetes' own.
    View(View),
}

/// What an object is to the datastore.
#[derive(Debug)]
pub(super) enum Reading {
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
        let new = |base: &str, plural: &'static str, is_namespaced, form| Self {
            endpoint: Endpoint::new(base, plural, is_namespaced),
            kind,
            form,
        };
        let view = |base: &str, plural, is_namespaced, view| {
            new(base, plural, is_namespaced, Form::View(view))
        };
        let crd = || {
            let group = settings.group;
            let base = format!("/apis/{}/{}", group.name(), group.version());
            new(
                &base,
                group.crd_names(kind).1,
                kind.is_namespaced(),
                Form::Crd(group),
            )
        };
        match kind {
            Kind::NetworkPolicy => {
                let base = "/apis/networking.k8s.io/v1";
                vec![
                    crd(),
                    view(base, "networkpolicies", true, View::NetworkPolicy),
                ]
            }
            Kind::GlobalNetworkPolicy => {
                let base = "/apis/policy.networking.k8s.io/v1alpha2";
                let policies = View::ClusterNetworkPolicy;
                vec![crd(), view(base, "clusternetworkpolicies", false, policies)]
            }
            Kind::Profile => vec![
                view("/api/v1", "namespaces", false, View::Namespace),
                view("/api/v1", "serviceaccounts", true, View::ServiceAccount),
            ],
            Kind::WorkloadEndpoint => {
                let veth_prefix = settings.veth_prefix.clone();
                vec![view("/api/v1", "pods", true, View::Pod { veth_prefix })]
            }
            Kind::Node => {
                let use_pod_cidr = settings.use_pod_cidr;
                vec![view("/api/v1", "nodes", false, View::Node { use_pod_cidr })]
            }
            Kind::LiveMigration => {
                let (base, plural) = ("/apis/kubevirt.io/v1", "virtualmachineinstancemigrations");
                vec![view(base, plural, true, View::LiveMigration)]
            }
            _ => vec![crd()],
        }
    }

    /// Whether a cluster may do without these objects, so that it has none where it does not serve them.
    ///
    /// What decides about packets is never taken for absent: an API server that is starting, or a proxy in front of one,
    /// answers as if it had never heard of the kind.
    pub(super) fn is_optional(&self) -> bool {
        match &self.form {
            Form::Crd(_) => !matches!(
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
            Form::View(view) => {
                matches!(view, View::ClusterNetworkPolicy | View::LiveMigration)
            }
        }
    }

    /// The group, if the source is a custom resource, which can be written.
    pub(super) fn crd_group(&self) -> Option<Group> {
        match self.form {
            Form::Crd(group) => Some(group),
            Form::View(_) => None,
        }
    }

    /// The object that a resource of this key comes from; nothing if it cannot come from this source.
    pub(super) fn locate(&self, key: &Key) -> Option<Selection> {
        let object = match &self.form {
            Form::Crd(_) if k8s::is_kubernetes_policy(self.kind, &key.name) => return None,
            Form::Crd(_) => {
                let name = stored::stored_name(self.kind, &key.name);
                NamespacedName::new(&key.namespace, name)
            }
            Form::View(view) => view.object_name(&key.namespace, &key.name)?,
        };
        Some(Selection {
            namespace: object.namespace,
            name: object.name,
            ..Selection::default()
        })
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
        let view = match &self.form {
            Form::Crd(group) => return self.read_stored(*group, object),
            Form::View(view) => view,
        };
        match view.read(object) {
            k8s::Reading::Present(mut resource, problems) => {
                if !problems.is_empty() {
                    let object = resource.id();
                    tracing::warn!(%object, %problems, "Parts of a Kubernetes object are ignored");
                }
                resource.metadata_mut().resource_version = object_revision(view, object);
                Reading::Present(resource)
            }
            k8s::Reading::Absent(name) => Reading::Absent(self.key(name)),
            k8s::Reading::Unrelated => Reading::Unrelated,
            k8s::Reading::Unreadable(name, reason) => {
                Reading::Invalid(Invalid::new(self.key(name), reason, None))
            }
        }
    }

    fn read_stored(&self, group: Group, object: &Value) -> Reading {
        let text = |pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default()
        };
        let name = NamespacedName::new(text("/metadata/namespace"), text("/metadata/name"));
        if k8s::is_kubernetes_policy(self.kind, &name.name) {
            return Reading::Unrelated;
        }
        match stored::decode(group, self.kind, object) {
            Ok(mut resource) => {
                if stored::is_marked(&resource) {
                    return Reading::Absent(Key::of(&resource));
                }
                revision_of(object).clone_into(&mut resource.metadata_mut().resource_version);
                Reading::Present(resource)
            }
            Err(reason) => Reading::Invalid(Invalid::new(self.key(name), reason, Some(object))),
        }
    }

    fn key(&self, NamespacedName { namespace, name }: NamespacedName) -> Key {
        let namespace = if self.kind.is_namespaced() {
            namespace
        } else {
            String::new()
        };
        Key {
            kind: self.kind,
            namespace,
            name,
        }
    }
}

/// The revision of a resource; that of a profile also tells its source.
fn object_revision(view: &View, object: &Value) -> String {
    let revision = revision_of(object);
    match view {
        View::Namespace => format!("{revision}/"),
        View::ServiceAccount => format!("/{revision}"),
        _ => revision.to_owned(),
    }
}

/// The API server's revision of an object.
pub(super) fn revision_of(object: &Value) -> &str {
    object
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

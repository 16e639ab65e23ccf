//! Objects of files: from YAML to what the world is made of.
//!
//! What only a cluster fills in is filled in here as far as one object is enough to know it: the namespace, the
//! service account, the label of a namespace, the node.

mod kubernetes;
mod unknown_fields;

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::Value;
use tortie_api::{Kind, Path, Problems, Resource, WorkloadEndpoint};

use tortie_input as input;

pub(crate) use kubernetes::{bare_namespace, bare_service_account, host_addresses};

/// The API group in which older clusters keep Calico's resources.
const STORED_API_VERSION: &str = "crd.projectcalico.org/v1";

/// The annotation of such an object that holds the metadata of the resource.
const STORED_METADATA: &str = "projectcalico.org/metadata";

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// What an object of a file is to the world.
#[derive(Debug)]
pub(crate) enum Object {
    /// A pod with a network of its own.
    Pod(Box<PodObject>),
    /// A pod in the network of its host.
    HostPod(HostPod),
    Resource(Resource),
    Service(Box<Service>),
    /// Part of what is behind a service.
    EndpointSlice(Box<EndpointSlice>),
    /// Nothing: what it is, in words.
    Unrelated(String),
}

/// A pod with a network of its own.
#[derive(Debug)]
pub(crate) struct PodObject {
    pub(crate) endpoint: WorkloadEndpoint,
    /// Whether it has ended, so that it need not have an address.
    pub(crate) is_finished: bool,
    /// The address of its node.
    pub(crate) host_address: Option<IpAddr>,
}

/// A pod in the network of its host.
#[derive(Debug)]
pub(crate) struct HostPod {
    /// `namespace/name`.
    pub(crate) name: String,
    pub(crate) node: String,
    pub(crate) addresses: Vec<IpAddr>,
}

/// What became of an object.
#[derive(Debug)]
pub(crate) struct Reading {
    /// What it is to the world; nothing if it counts as absent.
    pub(crate) object: Option<Object>,
    /// `Kind(namespace/name)`, where there are problems.
    pub(crate) name: String,
    /// What is wrong with it.
    pub(crate) problems: Problems,
}

/// Reads an object.
pub(crate) fn read(value: &Value) -> Reading {
    let mut problems = Problems::default();
    let object = read_kind(value, &mut problems);
    let name = if problems.is_empty() {
        String::new()
    } else {
        input::name(value)
    };
    Reading {
        object,
        name,
        problems,
    }
}

fn read_kind(value: &Value, problems: &mut Problems) -> Option<Object> {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    match (version, kind) {
        ("v1", "Pod") => kubernetes::pod(value, problems),
        ("v1", "Namespace") => kubernetes::namespace(value, problems),
        ("v1", "ServiceAccount") => kubernetes::service_account(value, problems),
        ("v1", "Node") => kubernetes::node(value, problems),
        ("v1", "Service") => kubernetes::service(value, problems),
        ("discovery.k8s.io/v1", "EndpointSlice") => kubernetes::endpoint_slice(value, problems),
        ("networking.k8s.io/v1", "NetworkPolicy") => kubernetes::network_policy(value, problems),
        (version, "ClusterNetworkPolicy") if version.starts_with("policy.networking.k8s.io/") => {
            kubernetes::cluster_network_policy(value, problems)
        }
        (tortie_api::API_VERSION, _) => {
            let decoded = input::decode(value, None).and_then(|mut resource| {
                resource.set_defaults();
                resource.validate().map(|()| resource)
            });
            or_problems(decoded, problems).map(Object::Resource)
        }
        (STORED_API_VERSION, _) => stored(value, kind, problems),
        _ if !value.is_object() || version.is_empty() || kind.is_empty() => {
            let rule = "must be an object with `apiVersion` and `kind`";
            problems.add(&Path::ROOT, value, rule);
            None
        }
        _ => Some(Object::Unrelated(format!("{version} {kind}"))),
    }
}

/// Reads a resource as older clusters keep it, the way that a cluster itself does: what is not known is left out.
fn stored(value: &Value, kind: &str, problems: &mut Problems) -> Option<Object> {
    let root = Path::ROOT;
    let found = Kind::ALL
        .iter()
        .find(|known| known.v1_crd_names().0 == kind);
    let Some(kind) = found else {
        return Some(Object::Unrelated(format!("{STORED_API_VERSION} {kind}")));
    };
    let mut resource = match Resource::decode_stored(*kind, value) {
        Ok(resource) => resource,
        Err(error) => {
            problems.add_missing(&root, error.to_string());
            return None;
        }
    };
    let metadata = resource.metadata_mut();
    if let Some(json) = metadata.annotations.remove(STORED_METADATA) {
        match serde_json::from_str::<tortie_api::meta::Metadata>(&json) {
            Ok(kept) => {
                metadata.labels.extend(kept.labels);
                metadata.annotations.extend(kept.annotations);
            }
            Err(error) => {
                let (at, text) = (root.field("metadata"), error.to_string());
                let at = at.field("annotations");
                problems.add(&at.field(STORED_METADATA), json, text);
                return None;
            }
        }
    }
    if kind.is_namespaced() && metadata.namespace.is_empty() {
        DEFAULT_NAMESPACE.clone_into(&mut metadata.namespace);
    }
    resource.set_read_defaults();
    Some(Object::Resource(resource))
}

/// The value, or nothing with its problems noted.
fn or_problems<T>(result: Result<T, Problems>, problems: &mut Problems) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(found) => {
            problems.extend(found);
            None
        }
    }
}

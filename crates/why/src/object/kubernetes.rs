//! Kubernetes' own objects.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, PodStatus, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use tortie_api::k8s::{self, ClusterNetworkPolicy, Converted};
use tortie_api::names::DEFAULT_VETH_PREFIX;
use tortie_api::names::{KUBERNETES_CLUSTER_POLICY, KUBERNETES_POLICY};
use tortie_api::net::parse_ip;
use tortie_api::{Path, Problems, Resource};

use super::{DEFAULT_NAMESPACE, HostPod, Object, PodObject, unknown_fields};
use crate::placeholders::Placeholders;

/// The label that Kubernetes gives to every namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The service account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";

/// The UID of objects that are not in a cluster.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

pub(crate) fn pod(value: &Value, problems: &mut Problems) -> Option<Object> {
    let mut pod: Pod = typed(value, problems)?;
    let (namespace, name) = namespaced(&mut pod.metadata, problems)?;
    let spec = pod.spec.get_or_insert_default();
    if is_empty(spec.service_account_name.as_ref()) {
        let account = spec.service_account.take().filter(|name| !name.is_empty());
        spec.service_account_name = Some(account.unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned()));
    }
    if is_empty(spec.node_name.as_ref()) {
        spec.node_name = Some(Placeholders::node(&namespace, &name));
    }
    let node = spec.node_name.clone().unwrap_or_default();
    let is_host_network = spec.host_network.unwrap_or_default();
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    let is_finished = matches!(phase, Some("Succeeded" | "Failed" | "Completed"))
        || pod.metadata.deletion_timestamp.is_some();
    if is_host_network {
        return Some(Object::HostPod(HostPod {
            name: format!("{namespace}/{name}"),
            addresses: host_addresses(pod.status.as_ref()),
            node,
        }));
    }
    let endpoint = converted(k8s::pod(&pod, DEFAULT_VETH_PREFIX), problems)?;
    Some(Object::Pod(Box::new(PodObject {
        endpoint,
        is_finished,
        host_address: pod
            .status
            .and_then(|status| status.host_ip)
            .and_then(|text| parse_ip(&text)),
    })))
}

/// The addresses of a pod in the network of its host, which are those of the host.
pub(crate) fn host_addresses(status: Option<&PodStatus>) -> Vec<IpAddr> {
    let Some(status) = status else {
        return Vec::new();
    };
    let listed = status.pod_ips.iter().flatten().map(|address| &address.ip);
    let hosts = status.host_ips.iter().flatten().map(|address| &address.ip);
    let all = listed.chain(&status.pod_ip).chain(hosts);
    let mut addresses = Vec::new();
    for address in all.chain(&status.host_ip).filter_map(|text| parse_ip(text)) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

pub(crate) fn namespace(value: &Value, problems: &mut Problems) -> Option<Object> {
    let mut namespace: Namespace = typed(value, problems)?;
    complete_namespace(&mut namespace.metadata, problems)?;
    resource(k8s::namespace(&namespace), problems)
}

/// The profile of a namespace of which nothing but the name is known.
pub(crate) fn bare_namespace(name: &str) -> Option<Resource> {
    let mut metadata = ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    complete_namespace(&mut metadata, &mut Problems::default())?;
    let namespace = Namespace {
        metadata,
        ..Namespace::default()
    };
    k8s::namespace(&namespace).resource.map(Resource::from)
}

fn complete_namespace(metadata: &mut ObjectMeta, problems: &mut Problems) -> Option<()> {
    let name = named(metadata, problems)?;
    complete_uid(metadata);
    let labels = metadata.labels.get_or_insert_default();
    labels.entry(NAMESPACE_NAME.to_owned()).or_insert(name);
    Some(())
}

pub(crate) fn service_account(value: &Value, problems: &mut Problems) -> Option<Object> {
    let mut account: ServiceAccount = typed(value, problems)?;
    namespaced(&mut account.metadata, problems)?;
    complete_uid(&mut account.metadata);
    resource(k8s::service_account(&account), problems)
}

/// The profile of a service account of which nothing but the name is known.
pub(crate) fn bare_service_account(namespace: &str, name: &str) -> Option<Resource> {
    let mut metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..ObjectMeta::default()
    };
    complete_uid(&mut metadata);
    let account = ServiceAccount {
        metadata,
        ..ServiceAccount::default()
    };
    k8s::service_account(&account).resource.map(Resource::from)
}

pub(crate) fn node(value: &Value, problems: &mut Problems) -> Option<Object> {
    let mut node: Node = typed(value, problems)?;
    named(&mut node.metadata, problems)?;
    resource(k8s::node(&node, false), problems)
}

pub(crate) fn network_policy(value: &Value, problems: &mut Problems) -> Option<Object> {
    let mut policy: NetworkPolicy = typed(value, problems)?;
    namespaced(&mut policy.metadata, problems)?;
    unknown_fields::note(value, &policy, problems);
    policy.metadata.uid = None;
    fill_in_policy_types(&mut policy);
    let mut policy = converted(k8s::network_policy(&policy), problems)?;
    policy.metadata.name.insert_str(0, KUBERNETES_POLICY);
    Some(Object::Resource(policy.into()))
}

/// Does what an API server does before it stores a policy that does not say which directions it covers.
fn fill_in_policy_types(policy: &mut NetworkPolicy) {
    let Some(spec) = &mut policy.spec else { return };
    let types = spec.policy_types.get_or_insert_default();
    if types.is_empty() {
        types.push("Ingress".to_owned());
        if spec.egress.as_ref().is_some_and(|rules| !rules.is_empty()) {
            types.push("Egress".to_owned());
        }
    }
}

pub(crate) fn cluster_network_policy(value: &Value, problems: &mut Problems) -> Option<Object> {
    let mut policy: ClusterNetworkPolicy = typed(value, problems)?;
    named(&mut policy.metadata, problems)?;
    unknown_fields::note(value, &policy, problems);
    policy.metadata.uid = None;
    let mut policy = converted(k8s::cluster_network_policy(&policy), problems)?;
    policy
        .metadata
        .name
        .insert_str(0, KUBERNETES_CLUSTER_POLICY);
    Some(Object::Resource(policy.into()))
}

pub(crate) fn service(value: &Value, problems: &mut Problems) -> Option<Object> {
    let mut service: Service = typed(value, problems)?;
    namespaced(&mut service.metadata, problems)?;
    Some(Object::Service(Box::new(service)))
}

pub(crate) fn endpoint_slice(value: &Value, problems: &mut Problems) -> Option<Object> {
    let mut slice: EndpointSlice = typed(value, problems)?;
    namespaced(&mut slice.metadata, problems)?;
    Some(Object::EndpointSlice(Box::new(slice)))
}

/// Reads an object of a known type; a field that cannot be read is noted.
fn typed<T: DeserializeOwned>(value: &Value, problems: &mut Problems) -> Option<T> {
    // Knowing the path costs time, so that is found out only for an error.
    if let Ok(object) = T::deserialize(value) {
        return Some(object);
    }
    let error = match serde_path_to_error::deserialize::<_, T>(value) {
        Ok(object) => return Some(object),
        Err(error) => error,
    };
    let rule = error.inner().to_string();
    note_at(value, &Path::ROOT, error.path().iter(), &rule, problems);
    None
}

/// Notes a problem with what is at the end of a path.
fn note_at<'a>(
    value: &Value,
    at: &Path<'_>,
    mut path: impl Iterator<Item = &'a Segment>,
    rule: &str,
    problems: &mut Problems,
) {
    let none = Value::Null;
    match path.next() {
        Some(Segment::Map { key }) => {
            let inner = value.get(key).unwrap_or(&none);
            note_at(inner, &at.field(key), path, rule, problems);
        }
        Some(Segment::Seq { index }) => {
            let inner = value.get(index).unwrap_or(&none);
            note_at(inner, &at.index(*index), path, rule, problems);
        }
        _ => problems.add(at, value, rule),
    }
}

fn converted<T>(converted: Converted<T>, problems: &mut Problems) -> Option<T> {
    problems.extend(converted.problems);
    converted.resource
}

fn resource<T: Into<Resource>>(of: Converted<T>, problems: &mut Problems) -> Option<Object> {
    converted(of, problems).map(|resource| Object::Resource(resource.into()))
}

/// The name of an object, which must have one.
fn named(metadata: &mut ObjectMeta, problems: &mut Problems) -> Option<String> {
    if is_empty(metadata.name.as_ref()) {
        let root = Path::ROOT;
        let at = root.field("metadata");
        problems.add_missing(&at.field("name"), "must be given");
    }
    metadata.name.clone().filter(|name| !name.is_empty())
}

/// The namespace, filled in if it is not given, and the name.
fn namespaced(metadata: &mut ObjectMeta, problems: &mut Problems) -> Option<(String, String)> {
    let name = named(metadata, problems)?;
    if is_empty(metadata.namespace.as_ref()) {
        metadata.namespace = Some(DEFAULT_NAMESPACE.to_owned());
    }
    Some((metadata.namespace.clone().unwrap_or_default(), name))
}

fn complete_uid(metadata: &mut ObjectMeta) {
    if is_empty(metadata.uid.as_ref()) {
        metadata.uid = Some(NO_UID.to_owned());
    }
}

fn is_empty(text: Option<&String>) -> bool {
    text.is_none_or(String::is_empty)
}

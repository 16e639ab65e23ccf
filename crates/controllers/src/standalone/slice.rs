//! Which slices a service has, by the pods that it selects.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ObjectReference, Pod, Service, ServicePort, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The service that a slice is of.
pub(super) const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// Who keeps a slice, and the name for that of who keeps these.
pub(super) const MANAGER_LABEL: &str = "endpointslice.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "endpointslice-controller.tortie";

/// As many as in Kubernetes.
const MAX_ENDPOINTS: usize = 100;

/// The version of addresses, and the ports of all endpoints of a slice: by name, with protocol and number.
type Group = (&'static str, Vec<(String, String, i32)>);

/// Whether slices of a service are kept here; others keep those of services that select nothing.
pub(super) fn selects(spec: &ServiceSpec) -> bool {
    let is_external = spec.type_.as_deref() == Some("ExternalName");
    let selector = spec.selector.as_ref();
    !is_external && selector.is_some_and(|selector| !selector.is_empty())
}

/// The slices that a service is to have, in order of names.
pub(super) fn wanted<'a>(
    service: &Service,
    pods: impl Iterator<Item = &'a Pod>,
) -> Vec<EndpointSlice> {
    let Some(spec) = service.spec.as_ref().filter(|spec| selects(spec)) else {
        return Vec::new();
    };
    let mut groups: BTreeMap<Group, Vec<Endpoint>> = BTreeMap::new();
    for pod in pods.filter(|pod| is_selected(spec, pod)) {
        let ports = ports(spec, pod);
        for address in super::addresses(pod) {
            let version = if address.is_ipv4() { "IPv4" } else { "IPv6" };
            let group = groups.entry((version, ports.clone())).or_default();
            group.push(endpoint(spec, pod, address));
        }
    }
    let mut slices = Vec::new();
    for ((version, ports), mut endpoints) in groups {
        endpoints.sort_by(|one, other| one.addresses.cmp(&other.addresses));
        for endpoints in endpoints.chunks(MAX_ENDPOINTS) {
            let index = slices.len();
            slices.push(slice(service, version, &ports, endpoints, index));
        }
    }
    slices
}

fn is_selected(spec: &ServiceSpec, pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    let mut selector = spec.selector.iter().flatten();
    selector.all(|(name, value)| labels.and_then(|labels| labels.get(name)) == Some(value))
}

/// The ports of a service on a pod. One whose name the pod does not have is left out.
fn ports(spec: &ServiceSpec, pod: &Pod) -> Vec<(String, String, i32)> {
    let ports = spec.ports.iter().flatten();
    ports
        .filter_map(|port| {
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            let number = number_on(port, protocol, pod)?;
            let name = port.name.clone().unwrap_or_default();
            Some((name, protocol.to_owned(), number))
        })
        .collect()
}

fn number_on(port: &ServicePort, protocol: &str, pod: &Pod) -> Option<i32> {
    let name = match &port.target_port {
        None => return Some(port.port),
        Some(IntOrString::Int(number)) => return Some(*number),
        Some(IntOrString::String(name)) => name,
    };
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let found = ports.find(|own| {
        own.name.as_ref() == Some(name) && own.protocol.as_deref().unwrap_or("TCP") == protocol
    });
    found.map(|own| own.container_port)
}

fn endpoint(spec: &ServiceSpec, pod: &Pod, address: IpAddr) -> Endpoint {
    let is_ending = pod.metadata.deletion_timestamp.is_some();
    let is_serving = is_ready(pod);
    let is_published = spec.publish_not_ready_addresses == Some(true);
    Endpoint {
        addresses: vec![address.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(is_published || (is_serving && !is_ending)),
            serving: Some(is_serving),
            terminating: Some(is_ending),
        }),
        node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".to_owned()),
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
        ..Endpoint::default()
    }
}

/// Whether a pod is ready. One with an address of which nobody says so is: there is no kubelet that would.
fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| &status.conditions);
    let mut ready = conditions.flatten().filter(|found| found.type_ == "Ready");
    ready.all(|condition| condition.status == "True")
}

fn slice(
    service: &Service,
    version: &str,
    ports: &[(String, String, i32)],
    endpoints: &[Endpoint],
    index: usize,
) -> EndpointSlice {
    let name = service.metadata.name.clone().unwrap_or_default();
    let ports = ports.iter().map(|(name, protocol, number)| EndpointPort {
        name: Some(name.clone()),
        protocol: Some(protocol.clone()),
        port: Some(*number),
        app_protocol: None,
    });
    let labels = [(SERVICE_LABEL, name.as_str()), (MANAGER_LABEL, MANAGER)];
    let labels = labels.map(|(label, value)| (label.to_owned(), value.to_owned()));
    EndpointSlice {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{}-{index}", version.to_lowercase())),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels.into()),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Service".to_owned(),
                name: name.clone(),
                uid: service.metadata.uid.clone().unwrap_or_default(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        address_type: version.to_owned(),
        endpoints: Some(endpoints.to_vec()),
        ports: Some(ports.collect()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn service(spec: &Value) -> Service {
        let metadata = json!({"name": "web", "namespace": "shop", "uid": "u"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn pod(name: &str, port: u16, status: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web", "name": name}, "uid": name},
            "spec": {"nodeName": "n", "containers": [
                {"name": "c", "ports": [{"name": "http", "containerPort": port}]},
            ]},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn selected_pods_with_addresses_are_endpoints() {
        let spec =
            json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]});
        let other = json!({"selector": {"app": "db"}, "ports": [{"port": 80}]});
        let none = json!({"ports": [{"port": 80}]});
        let unready = json!({
            "podIP": "10.0.0.2", "conditions": [{"type": "Ready", "status": "False"}],
        });
        let pods = [
            pod("a", 8080, &json!({"podIP": "10.0.0.1"})),
            pod("b", 8080, &unready),
            pod("c", 9090, &json!({"podIP": "10.0.0.3"})),
            pod("d", 8080, &json!({})),
            pod(
                "e",
                8080,
                &json!({"podIP": "10.0.0.5", "phase": "Succeeded"}),
            ),
        ];
        let slices = wanted(&service(&spec), pods.iter());
        let told = slices.iter().map(|slice| {
            let endpoints = slice.endpoints.iter().flatten();
            let endpoints: Vec<_> = endpoints
                .map(|found| {
                    (
                        found.addresses[0].as_str(),
                        found.conditions.as_ref().unwrap().ready,
                    )
                })
                .collect();
            let port = slice.ports.as_ref().unwrap()[0].port;
            (slice.metadata.name.as_deref().unwrap(), port, endpoints)
        });
        let told: Vec<_> = told.collect();
        let first = vec![("10.0.0.1", Some(true)), ("10.0.0.2", Some(false))];
        assert_eq!(
            told,
            [
                ("web-ipv4-0", Some(8080), first),
                ("web-ipv4-1", Some(9090), vec![("10.0.0.3", Some(true))]),
            ]
        );
        assert_eq!(wanted(&service(&other), pods.iter()), []);
        assert_eq!(wanted(&service(&none), pods.iter()), []);
    }
}

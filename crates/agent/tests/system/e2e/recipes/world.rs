//! Kubernetes' objects as the resources that Calico makes of them in a cluster.

use std::net::{IpAddr, Ipv6Addr};

use k8s_openapi::api::core::v1::{Namespace, Pod, PodIP, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tortie_api::k8s::{self, ClusterNetworkPolicy, Converted};
use tortie_api::names::{DEFAULT_VETH_PREFIX, KUBERNETES_CLUSTER_POLICY, KUBERNETES_POLICY};
use tortie_api::{Resource, WorkloadEndpoint};

use crate::e2e::setting::NODE;

/// The UID of what is in no cluster.
const UID: &str = "00000000-0000-0000-0000-000000000000";

/// The profiles of a namespace: its own, and that of the service account that it always has.
pub(super) fn profiles(document: &Value) -> [Resource; 2] {
    assert_eq!(document["kind"], "Namespace");
    let mut namespace: Namespace = typed(document);
    let name = namespace.metadata.name.clone().unwrap();
    namespace.metadata.uid = Some(UID.to_owned());
    let labels = namespace.metadata.labels.get_or_insert_default();
    labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
    let account: ServiceAccount =
        typed(&json!({"metadata": {"name": "default", "namespace": name, "uid": UID}}));
    [
        converted(k8s::namespace(&namespace)).into(),
        converted(k8s::service_account(&account)).into(),
    ]
}

/// A pod's `namespace/name` and its endpoint. It is on the node, whatever the document says, and has an IPv6 address
/// too, which ends with its IPv4 address.
pub(super) fn endpoint(document: &Value) -> (String, WorkloadEndpoint) {
    let mut pod: Pod = typed(document);
    let metadata = &pod.metadata;
    let name = [&metadata.namespace, &metadata.name].map(|text| text.clone().unwrap());
    let spec = pod.spec.get_or_insert_default();
    spec.node_name = Some(NODE.to_owned());
    spec.service_account_name = Some("default".to_owned());
    let addresses = pod.status.as_mut().unwrap().pod_ips.as_mut().unwrap();
    let IpAddr::V4(address) = addresses[0].ip.parse().unwrap() else {
        panic!("{name:?} has no IPv4 address");
    };
    let [a, b, c, d] = address.octets().map(u16::from);
    let address = Ipv6Addr::new(0xfd00, 0, 0, 0, a, b, c, d);
    addresses.push(PodIP {
        ip: address.to_string(),
    });
    (
        name.join("/"),
        converted(k8s::pod(&pod, DEFAULT_VETH_PREFIX)),
    )
}

/// A policy of Kubernetes, with the name that Calico knows it by.
pub(super) fn policy(document: &Value) -> Resource {
    let mut resource: Resource = match document["kind"].as_str() {
        Some("NetworkPolicy") => {
            let mut policy = converted(k8s::network_policy(&typed::<NetworkPolicy>(document)));
            policy.metadata.name.insert_str(0, KUBERNETES_POLICY);
            policy.into()
        }
        Some("ClusterNetworkPolicy") => {
            let policy = typed::<ClusterNetworkPolicy>(document);
            let mut policy = converted(k8s::cluster_network_policy(&policy));
            let name = &mut policy.metadata.name;
            name.insert_str(0, KUBERNETES_CLUSTER_POLICY);
            policy.into()
        }
        other => panic!("{other:?} is no policy"),
    };
    resource.set_defaults();
    resource
}

fn typed<T: DeserializeOwned>(document: &Value) -> T {
    T::deserialize(document).unwrap()
}

fn converted<T>(converted: Converted<T>) -> T {
    assert!(converted.problems.is_empty(), "{}", converted.problems);
    converted.resource.unwrap()
}

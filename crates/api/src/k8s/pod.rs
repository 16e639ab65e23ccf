//! Pods as `WorkloadEndpoint`s.

mod qos;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

use super::profile::ProfileOwner;
use super::{Converted, note_annotation};
use crate::kinds::WorkloadEndpoint;
use crate::kinds::workload_endpoint::{IpNat, WorkloadEndpointPort, WorkloadEndpointSpec};
use crate::meta::Metadata;
use crate::names::{EndpointIds, veth_name};
use crate::net::{self, Cidr};
use crate::problem::{Path, Problems};
use crate::scalar::Protocol;

const ORCHESTRATOR: &str = "k8s";
const ENDPOINT: &str = "eth0";

const NAMESPACE_LABEL: &str = "projectcalico.org/namespace";
const ORCHESTRATOR_LABEL: &str = "projectcalico.org/orchestrator";
const SERVICE_ACCOUNT_LABEL: &str = "projectcalico.org/serviceaccount";

/// Names from this length on do not become a label, because a label's value may not be longer than 63.
const MAX_SERVICE_ACCOUNT_LABEL: usize = 63;

/// Written by the CNI plugin together with the address, and emptied when the address is gone.
const POD_IP: &str = "cni.projectcalico.org/podIP";
const POD_IPS: &str = "cni.projectcalico.org/podIPs";
const AWS_POD_IPS: &str = "vpc.amazonaws.com/pod-ips";
const CONTAINER_ID: &str = "cni.projectcalico.org/containerID";
const FLOATING_IPS: &str = "cni.projectcalico.org/floatingIPs";
const ALLOWED_SOURCE_PREFIXES: &str = "cni.projectcalico.org/allowedSourcePrefixes";
const NETWORK_STATUS: &str = "k8s.v1.cni.cncf.io/network-status";

/// Converts a pod; `veth_prefix` is what names of pod interfaces start with. Whether the pod has an endpoint at all is
/// for [`is_valid_workload_endpoint`] to say.
pub fn pod(pod: &Pod, veth_prefix: &str) -> Converted<WorkloadEndpoint> {
    Converted::from_fn(|problems| convert(pod, veth_prefix, problems))
}

/// Whether a pod has an endpoint: it is scheduled and has a network of its own. Once true it stays true.
pub fn is_valid_workload_endpoint(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| {
        let is_scheduled = spec.node_name.as_ref().is_some_and(|node| !node.is_empty());
        is_scheduled && !spec.host_network.unwrap_or_default()
    })
}

/// Whether a pod has an endpoint with an address.
pub fn is_ready(pod: &Pod) -> bool {
    let is_set = |text: Option<&String>| text.is_some_and(|text| !text.is_empty());
    let status = pod
        .status
        .as_ref()
        .and_then(|status| status.pod_ip.as_ref());
    is_valid_workload_endpoint(pod)
        && (is_set(status)
            || is_set(annotation(pod, POD_IP))
            || is_set(annotation(pod, AWS_POD_IPS)))
}

fn convert(pod: &Pod, veth_prefix: &str, problems: &mut Problems) -> Option<WorkloadEndpoint> {
    let meta = &pod.metadata;
    let pod_name = meta.name.clone().unwrap_or_default();
    let namespace = meta.namespace.clone().unwrap_or_default();
    let empty = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&empty);
    let node = spec.node_name.clone().unwrap_or_default();
    let service_account = spec.service_account_name.clone().unwrap_or_default();

    let ids = EndpointIds {
        node: node.clone(),
        orchestrator: ORCHESTRATOR.into(),
        pod: pod_name.clone(),
        endpoint: ENDPOINT.into(),
        ..EndpointIds::default()
    };
    let name = match ids.name() {
        Ok(name) => name,
        Err(error) => {
            problems.add_missing(
                &Path::ROOT.field("metadata").field("name"),
                error.to_string(),
            );
            return None;
        }
    };
    let mut addresses = addresses(pod, problems)?;
    if is_finished(pod) {
        // The addresses went back to the pool and may be another pod's by now.
        addresses.clear();
    }
    let ip_nats = floating_ips(pod, &addresses, problems)?;
    let allow_spoofed_source_prefixes = source_prefixes(pod, problems)?;
    let no_annotations = BTreeMap::new();
    let annotations = meta.annotations.as_ref().unwrap_or(&no_annotations);
    let qos_controls = qos::controls(annotations, problems);

    let mut profiles = vec![
        ProfileOwner::Namespace {
            name: namespace.clone(),
        }
        .profile_name(),
    ];
    if !service_account.is_empty() {
        let owner = ProfileOwner::ServiceAccount {
            namespace: namespace.clone(),
            name: service_account.clone(),
        };
        profiles.push(owner.profile_name());
    }
    let mut ports = Vec::new();
    append_ports(&mut ports, &spec.containers);
    append_ports(
        &mut ports,
        spec.init_containers.as_deref().unwrap_or_default(),
    );

    let metadata = Metadata {
        name,
        namespace: namespace.clone(),
        generate_name: meta.generate_name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        creation_timestamp: meta.creation_timestamp.clone(),
        labels: labels(pod, &namespace, &service_account),
        annotations: annotations
            .get(NETWORK_STATUS)
            .map(|status| (NETWORK_STATUS.to_owned(), status.clone()))
            .into_iter()
            .collect(),
        ..Metadata::default()
    };
    let spec = WorkloadEndpointSpec {
        orchestrator: ORCHESTRATOR.into(),
        endpoint: ENDPOINT.into(),
        interface_name: veth_name(&namespace, &pod_name, veth_prefix),
        container_id: annotations.get(CONTAINER_ID).cloned().unwrap_or_default(),
        ip_networks: addresses
            .iter()
            .map(|address| address.network().to_string())
            .collect(),
        pod: pod_name,
        service_account_name: service_account,
        node,
        profiles,
        ports,
        ip_nats,
        allow_spoofed_source_prefixes,
        qos_controls,
        ..WorkloadEndpointSpec::default()
    };
    Some(WorkloadEndpoint {
        metadata,
        spec,
        ..WorkloadEndpoint::default()
    })
}

fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a String> {
    pod.metadata.annotations.as_ref()?.get(key)
}

fn labels(pod: &Pod, namespace: &str, service_account: &str) -> BTreeMap<String, String> {
    let mut labels = pod.metadata.labels.clone().unwrap_or_default();
    labels.insert(NAMESPACE_LABEL.into(), namespace.into());
    labels.insert(ORCHESTRATOR_LABEL.into(), ORCHESTRATOR.into());
    if !service_account.is_empty() && service_account.len() < MAX_SERVICE_ACCOUNT_LABEL {
        labels.insert(SERVICE_ACCOUNT_LABEL.into(), service_account.into());
    }
    labels
}

/// Whether the pod no longer owns its addresses. In its grace period it still does, until the CNI plugin says
/// otherwise by emptying the annotation.
fn is_finished(pod: &Pod) -> bool {
    let is_emptied = |key| annotation(pod, key).is_some_and(String::is_empty);
    if pod.metadata.deletion_timestamp.is_some() && (is_emptied(POD_IP) || is_emptied(AWS_POD_IPS))
    {
        return true;
    }
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded" | "Completed"))
}

/// The pod's addresses, from the first place that has any; `None` if one cannot be read.
fn addresses(pod: &Pod, problems: &mut Problems) -> Option<Vec<Cidr>> {
    let status = pod.status.as_ref();
    let listed = status
        .and_then(|status| status.pod_ips.as_ref())
        .into_iter()
        .flatten();
    let single = status
        .and_then(|status| status.pod_ip.as_deref())
        .unwrap_or_default();
    let text = |key| annotation(pod, key).map_or("", String::as_str);

    let mut texts: Vec<&str> = listed.map(|address| address.ip.as_str()).collect();
    if texts.is_empty() {
        let candidates = [
            vec![single],
            text(POD_IPS).split(',').collect(),
            vec![text(POD_IP)],
            text(AWS_POD_IPS).split(',').collect(),
        ];
        texts = candidates
            .into_iter()
            .find(|candidate| *candidate != [""])
            .unwrap_or_default();
    }
    let mut addresses = Vec::with_capacity(texts.len());
    for text in texts {
        let Some(address) = net::parse_cidr_or_ip(text) else {
            problems.add(
                &Path::ROOT.field("status").field("podIPs"),
                text,
                "must be an address",
            );
            return None;
        };
        addresses.push(address);
    }
    Some(addresses)
}

/// The floating addresses, each mapped to the pod's address of the same family; `None` if they cannot be read.
fn floating_ips(pod: &Pod, addresses: &[Cidr], problems: &mut Problems) -> Option<Vec<IpNat>> {
    let Some(text) = annotation(pod, FLOATING_IPS).filter(|_| !addresses.is_empty()) else {
        return Some(Vec::new());
    };
    let floating = string_list(FLOATING_IPS, text, problems)?;
    if let Some(range) = addresses.iter().find(|address| !address.is_single()) {
        let rule = "must be a single address, because the pod has floating addresses";
        problems.add(
            &Path::ROOT.field("status").field("podIPs"),
            range.to_string(),
            rule,
        );
        return None;
    }
    // With several addresses of one family, the last one counts.
    let of_family = |is_ipv4| {
        addresses
            .iter()
            .rev()
            .find(|address| address.is_ipv4() == is_ipv4)
    };
    let nats = floating.into_iter().filter_map(|external_ip| {
        let internal = of_family(!external_ip.contains(':'))?;
        Some(IpNat {
            internal_ip: internal.ip().to_string(),
            external_ip,
        })
    });
    Some(nats.collect())
}

/// The foreign ranges that the pod may send from; `None` if they cannot be read.
fn source_prefixes(pod: &Pod, problems: &mut Problems) -> Option<Vec<String>> {
    let Some(text) = annotation(pod, ALLOWED_SOURCE_PREFIXES).filter(|text| !text.is_empty())
    else {
        return Some(Vec::new());
    };
    let mut prefixes = Vec::new();
    for prefix in string_list(ALLOWED_SOURCE_PREFIXES, text, problems)? {
        let Some(cidr) = net::parse_cidr(&prefix) else {
            note_annotation(
                problems,
                ALLOWED_SOURCE_PREFIXES,
                &prefix,
                "must be a CIDR such as 10.0.0.0/8",
            );
            return None;
        };
        prefixes.push(cidr.network().to_string());
    }
    Some(prefixes)
}

fn string_list(key: &str, text: &str, problems: &mut Problems) -> Option<Vec<String>> {
    let Ok(list) = serde_json::from_str::<Option<Vec<String>>>(text) else {
        note_annotation(problems, key, text, "must be a JSON list of strings");
        return None;
    };
    Some(list.unwrap_or_default())
}

/// The ports with a name, which rules can refer to, or a host port.
fn append_ports(ports: &mut Vec<WorkloadEndpointPort>, containers: &[Container]) {
    for port in containers
        .iter()
        .flat_map(|container| container.ports.iter().flatten())
    {
        let name = port.name.clone().unwrap_or_default();
        let numbers = (
            u16::try_from(port.container_port),
            u16::try_from(port.host_port.unwrap_or_default()),
        );
        let (Ok(number), Ok(host_port)) = numbers else {
            continue;
        };
        if number == 0 || (host_port == 0 && name.is_empty()) {
            continue;
        }
        let protocol = match port.protocol.as_deref().unwrap_or_default() {
            "UDP" => Protocol::Udp,
            "SCTP" => Protocol::Sctp,
            "TCP" | "" => Protocol::Tcp,
            _ => continue,
        };
        let host_ip = port.host_ip.clone().unwrap_or_default();
        ports.push(WorkloadEndpointPort {
            name,
            protocol,
            port: number,
            host_port,
            host_ip,
        });
    }
}

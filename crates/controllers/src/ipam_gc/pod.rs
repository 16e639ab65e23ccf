//! Whether a pod as the API server knows it uses an address.

use std::net::IpAddr;

use k8s_openapi::api::core::v1 as core;
use tortie_api::net::parse_cidr;

/// Whether a pod uses an address that it was given on a node, as far as can be told: without certainty it does. `node` is
/// what Kubernetes calls the node, if there is such a node.
pub(super) fn uses(pod: &core::Pod, address: IpAddr, node: Option<&str>) -> bool {
    let text = |text: Option<&String>| text.map(String::as_str).unwrap_or_default().to_owned();
    let spec = pod.spec.as_ref();
    let is_on = text(spec.and_then(|spec| spec.node_name.as_ref()));
    if !is_on.is_empty() && node.is_some_and(|node| node != is_on) {
        return false;
    }
    let Some(status) = &pod.status else {
        return true;
    };
    let has_addresses = status.pod_ips.as_ref().is_some_and(|ips| !ips.is_empty());
    if text(status.pod_ip.as_ref()).is_empty() || !has_addresses {
        return true;
    }
    if status.phase.as_deref() == Some("Failed") && status.reason.as_deref() == Some("Evicted") {
        return false;
    }
    // This conversion knows all the ways in which pods have addresses.
    let Some(endpoint) = tortie_api::k8s::pod(pod, "cali").resource else {
        return true;
    };
    let networks = endpoint.spec.ip_networks.iter();
    networks
        .map(|network| parse_cidr(network).map(tortie_api::net::Cidr::ip))
        .any(|found| found.is_none_or(|found| found == address))
}

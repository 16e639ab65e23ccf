//! What Kubernetes' own controllers and nodes do in a cluster, for an API server that stands alone.

mod endpoint_slices;
mod idle_pods;
mod slice;
mod workload_endpoints;

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Pod;
use tortie_api::k8s;
use tortie_client::Client;
use tortie_operator::Manager;

/// What names of pods' interfaces start with.
const VETH_PREFIX: &str = "cali";

/// Adds the controllers.
pub(crate) fn add(manager: &Manager, datastore: &Client, cluster: &kube::Client) {
    workload_endpoints::add(manager, datastore);
    endpoint_slices::add(manager, cluster);
    idle_pods::add(manager, cluster);
}

/// The addresses of a pod's own network, as its status or the CNI plugin tell them; none once it has finished.
fn addresses(pod: &Pod) -> Vec<IpAddr> {
    if !k8s::is_valid_workload_endpoint(pod) {
        return Vec::new();
    }
    let endpoint = k8s::pod(pod, VETH_PREFIX).resource;
    let networks = endpoint.map(|endpoint| endpoint.spec.ip_networks);
    let networks = networks.unwrap_or_default();
    let addresses = networks.iter().map(|network| {
        let address = network.split('/').next();
        address.unwrap_or_default().parse().ok()
    });
    addresses.flatten().collect()
}

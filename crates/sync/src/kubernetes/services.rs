//! Services and what is behind them, which are no resources of Calico.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServiceSpec, ServiceStatus};
use k8s_openapi::api::discovery::v1::{Endpoint as SliceEndpoint, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::endpoint::Endpoint;
use super::source::{KubernetesSource, item};

/// The label of nodes with their names.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What is used of a service.
#[derive(Deserialize)]
struct ServiceContent {
    metadata: ObjectMeta,
    spec: Option<ServiceSpec>,
    status: Option<ServiceStatus>,
}

/// What is used of a slice.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SliceContent {
    metadata: ObjectMeta,
    #[serde(default)]
    address_type: String,
    endpoints: Option<Vec<EndpointContent>>,
    ports: Option<Vec<EndpointPort>>,
}

/// An endpoint, in all versions of the API.
#[derive(Deserialize)]
struct EndpointContent {
    #[serde(flatten)]
    endpoint: SliceEndpoint,
    /// Where `v1beta1` has the node's name.
    topology: Option<BTreeMap<String, String>>,
}

impl From<EndpointContent> for SliceEndpoint {
    fn from(content: EndpointContent) -> Self {
        let EndpointContent { endpoint, topology } = content;
        let of_topology = || topology.and_then(|mut labels| labels.remove(HOSTNAME));
        let node_name = endpoint.node_name.or_else(of_topology);
        Self {
            node_name,
            ..endpoint
        }
    }
}

/// All services, as what their reader makes of them.
pub fn services<V>(
    client: &kube::Client,
    read: impl Fn(Service) -> V + Send + Sync + 'static,
) -> KubernetesSource<V> {
    let endpoint = Endpoint::new("/api/v1", "services", true);
    KubernetesSource::new(client.clone(), vec![endpoint], move |object| {
        let ServiceContent {
            metadata,
            spec,
            status,
        } = serde_json::from_str(object)?;
        let of = metadata.clone();
        let service = Service {
            metadata,
            spec,
            status,
        };
        Ok(item(&of, read(service)))
    })
}

/// All slices with endpoints of services, of the version of the API that is served.
pub fn endpoint_slices<V>(
    client: &kube::Client,
    read: impl Fn(EndpointSlice) -> V + Send + Sync + 'static,
) -> KubernetesSource<V> {
    let versions = ["v1", "v1beta1"].map(|version| {
        let base = format!("/apis/discovery.k8s.io/{version}");
        Endpoint::new(base, "endpointslices", true)
    });
    KubernetesSource::new(client.clone(), versions.into(), move |object| {
        let slice = read_slice(object)?;
        Ok(item(&slice.metadata.clone(), read(slice)))
    })
}

fn read_slice(object: &str) -> serde_json::Result<EndpointSlice> {
    let SliceContent {
        metadata,
        address_type,
        endpoints,
        ports,
    } = serde_json::from_str(object)?;
    Ok(EndpointSlice {
        address_type,
        metadata,
        endpoints: endpoints.map(|all| all.into_iter().map(Into::into).collect()),
        ports,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_say_of_which_family_and_where_endpoints_are() {
        let nodes = |object: &str| {
            let slice = read_slice(object).unwrap();
            assert_eq!(slice.address_type, "IPv6");
            let endpoints = slice.endpoints.unwrap().into_iter();
            endpoints.map(|one| one.node_name).collect::<Vec<_>>()
        };
        let here = Some("here".to_owned());
        let v1 = r#"{"metadata": {"name": "a"}, "addressType": "IPv6", "endpoints":
            [{"addresses": ["fd00::1"], "nodeName": "here", "deprecatedTopology": {"zone": "z"}}, {"addresses": ["fd00::2"]}]}"#;
        assert_eq!(nodes(v1), [here.clone(), None]);
        let v1beta1 = r#"{"metadata": {"name": "a"}, "addressType": "IPv6", "endpoints":
            [{"addresses": ["fd00::1"], "topology": {"kubernetes.io/hostname": "here"}}]}"#;
        assert_eq!(nodes(v1beta1), [here]);
    }
}

//! Kubernetes objects that have no resource: services, and the endpoints behind them.

use k8s_openapi::api::core::v1::{Service, ServiceSpec, ServiceStatus};
use k8s_openapi::api::discovery::v1::{Endpoint as SliceEndpoint, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use tortie_convert as convert;
use tortie_sync::Item;
use tortie_sync::kubernetes::{Endpoint, KubernetesSource, item};

use super::Input;

/// What is used of a service.
#[derive(Deserialize)]
struct ServiceContent {
    metadata: ObjectMeta,
    spec: Option<ServiceSpec>,
    status: Option<ServiceStatus>,
}

/// What is used of a slice; the same in all versions of the API.
#[derive(Deserialize)]
struct SliceContent {
    metadata: ObjectMeta,
    endpoints: Option<Vec<SliceEndpoint>>,
    ports: Option<Vec<EndpointPort>>,
}

pub(super) fn services(client: &kube::Client) -> KubernetesSource<Input> {
    let endpoint = Endpoint::new("/api/v1", "services", true);
    KubernetesSource::new(client.clone(), vec![endpoint], read_service)
}

pub(super) fn endpoint_slices(client: &kube::Client) -> KubernetesSource<Input> {
    let versions = ["v1", "v1beta1"].map(|version| {
        let base = format!("/apis/discovery.k8s.io/{version}");
        Endpoint::new(base, "endpointslices", true)
    });
    KubernetesSource::new(client.clone(), versions.into(), read_slice)
}

fn read_service(object: &str) -> serde_json::Result<Item<Input>> {
    let ServiceContent {
        metadata,
        spec,
        status,
    } = serde_json::from_str(object)?;
    let service = Service {
        metadata,
        spec,
        status,
    };
    let update = Box::new(convert::service(&service));
    Ok(item(&service.metadata, Input::Update(update)))
}

fn read_slice(object: &str) -> serde_json::Result<Item<Input>> {
    let SliceContent {
        metadata,
        endpoints,
        ports,
    } = serde_json::from_str(object)?;
    let slice = EndpointSlice {
        metadata,
        endpoints,
        ports,
        ..EndpointSlice::default()
    };
    let update = Box::new(convert::endpoint_slice(&slice));
    Ok(item(&slice.metadata, Input::Update(update)))
}

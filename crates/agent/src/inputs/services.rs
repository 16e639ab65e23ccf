//! Kubernetes objects that have no resource: services, and the endpoints behind them.

use k8s_openapi::api::core::v1::{Service, ServiceSpec, ServiceStatus};
use k8s_openapi::api::discovery::v1::{Endpoint as SliceEndpoint, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use tortie_convert as convert;
use tortie_engine::Update;
use tortie_sync::kubernetes::{Endpoint, KubernetesSource};

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
    KubernetesSource::new(client.clone(), vec![endpoint], |object| {
        read_service(object).map(input)
    })
}

pub(super) fn endpoint_slices(client: &kube::Client) -> KubernetesSource<Input> {
    let versions = ["v1", "v1beta1"].map(|version| {
        let base = format!("/apis/discovery.k8s.io/{version}");
        Endpoint::new(base, "endpointslices", true)
    });
    KubernetesSource::new(client.clone(), versions.into(), |object| {
        read_slice(object).map(input)
    })
}

fn input(update: Update) -> Input {
    Input::Update(Box::new(update))
}

fn read_service(object: &str) -> serde_json::Result<Update> {
    let ServiceContent {
        metadata,
        spec,
        status,
    } = serde_json::from_str(object)?;
    Ok(convert::service(&Service {
        metadata,
        spec,
        status,
    }))
}

fn read_slice(object: &str) -> serde_json::Result<Update> {
    let SliceContent {
        metadata,
        endpoints,
        ports,
    } = serde_json::from_str(object)?;
    Ok(convert::endpoint_slice(&EndpointSlice {
        metadata,
        endpoints,
        ports,
        ..EndpointSlice::default()
    }))
}

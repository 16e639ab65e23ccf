//! Kubernetes objects that have no resource: services, and the endpoints behind them.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service as KubeService;
use k8s_openapi::api::discovery::v1::EndpointSlice as KubeSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tortie_api::net::parse_ip;
use tortie_api::scalar::Protocol;

use tortie_engine::input::{EndpointSlice, ObjectName, Service, ServicePort, SlicePort, Update};

/// The label of a slice that names its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Converts part of the endpoints behind a service. Names in place of addresses are left out, and so are ports
/// without a number.
pub fn endpoint_slice(slice: &KubeSlice) -> Update {
    let labels = slice.metadata.labels.as_ref();
    let service = labels.and_then(|labels| labels.get(SERVICE_NAME));
    let endpoints = slice.endpoints.iter().flatten();
    let addresses: Vec<IpAddr> = endpoints
        .flat_map(|endpoint| &endpoint.addresses)
        .filter_map(|text| parse_ip(text))
        .collect();
    let ports = slice.ports.iter().flatten().filter_map(|port| {
        Some(SlicePort {
            protocol: match protocol(port.protocol.as_deref()) {
                "UDP" => Protocol::Udp,
                "SCTP" => Protocol::Sctp,
                _ => Protocol::Tcp,
            },
            port: u16::try_from(port.port?).ok()?,
        })
    });
    let value = EndpointSlice {
        service: service.cloned().unwrap_or_default(),
        addresses,
        ports: ports.collect(),
    };
    Update::EndpointSlice(object_name(&slice.metadata), Some(value))
}

/// Converts a service.
pub fn service(service: &KubeService) -> Update {
    let spec = service.spec.clone().unwrap_or_default();
    let status = service.status.as_ref();
    let load_balancer = status.and_then(|status| status.load_balancer.as_ref());
    let ingress = load_balancer.and_then(|status| status.ingress.as_ref());
    let ingress_ips = ingress
        .into_iter()
        .flatten()
        .filter_map(|ingress| ingress.ip.clone())
        .filter(|ip| !ip.is_empty());
    let number = |port: i32| u16::try_from(port).unwrap_or_default();
    let ports = spec.ports.iter().flatten().map(|port| ServicePort {
        protocol: protocol(port.protocol.as_deref()).to_owned(),
        port: number(port.port),
        node_port: number(port.node_port.unwrap_or_default()),
    });
    let value = Service {
        ports: ports.collect(),
        r#type: spec.type_.unwrap_or_default(),
        cluster_ips: spec.cluster_ips.unwrap_or_default(),
        load_balancer_ip: spec.load_balancer_ip.unwrap_or_default(),
        load_balancer_ingress_ips: ingress_ips.collect(),
        external_ips: spec.external_ips.unwrap_or_default(),
    };
    Update::Service(object_name(&service.metadata), Some(value))
}

/// TCP, unless it is one of the two others that Kubernetes knows.
fn protocol(name: Option<&str>) -> &'static str {
    match name {
        Some("UDP") => "UDP",
        Some("SCTP") => "SCTP",
        _ => "TCP",
    }
}

fn object_name(metadata: &ObjectMeta) -> ObjectName {
    ObjectName {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    }
}

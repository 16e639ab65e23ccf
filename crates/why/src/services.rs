//! Services of Kubernetes, and what is behind them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Service as KubeService, ServicePort as KubePort};
use k8s_openapi::api::discovery::v1::{
    Endpoint as KubeEndpoint, EndpointPort as KubeEndpointPort, EndpointSlice,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tortie_api::net::parse_ip;
use tortie_api::scalar::Protocol;
use tortie_engine::input::{EndpointPort, Labels};

/// The label of a slice that names its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The address of a service that has none.
const NO_ADDRESS: &str = "None";

/// Services and slices as they come.
#[derive(Debug, Default)]
pub(crate) struct ServiceNotes {
    services: BTreeMap<String, KubeService>,
    /// By `namespace/name` of the slice.
    slices: BTreeMap<String, EndpointSlice>,
}

#[derive(Debug)]
pub(crate) struct Service {
    /// `namespace/name`.
    pub(crate) name: String,
    /// Its addresses, that in the cluster first.
    pub(crate) addresses: Vec<IpAddr>,
    /// Whether clients connect to what is behind it by themselves.
    pub(crate) is_headless: bool,
    /// Whether a node sends packets from outside only to its own pods.
    pub(crate) is_local: bool,
    pub(crate) ports: Vec<ServicePort>,
    /// What is behind it and ready.
    pub(crate) endpoints: Vec<ServiceEndpoint>,
}

#[derive(Debug, Clone)]
pub(crate) struct ServicePort {
    /// Its name; empty for a port that is alone.
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) number: u16,
    /// The port of every node that leads to it.
    pub(crate) node_port: Option<u16>,
}

/// An address behind a service.
#[derive(Debug)]
pub(crate) struct ServiceEndpoint {
    pub(crate) address: IpAddr,
    /// Its ports, with the names that the service gives them.
    ports: Vec<(String, Protocol, u16)>,
}

/// A pod that may be behind a service.
pub(crate) struct Candidate<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) labels: &'a Labels,
    pub(crate) addresses: &'a [IpAddr],
    pub(crate) ports: &'a [EndpointPort],
}

// === impl ServiceNotes ===

impl ServiceNotes {
    pub(crate) fn service(&mut self, service: &KubeService) {
        self.services
            .insert(full_name(&service.metadata), service.clone());
    }

    pub(crate) fn slice(&mut self, slice: &EndpointSlice) {
        self.slices
            .insert(full_name(&slice.metadata), slice.clone());
    }

    /// The slices that a cluster would make for services that have none.
    pub(crate) fn missing_slices(&self, pods: &[Candidate<'_>]) -> Vec<EndpointSlice> {
        let mut made = Vec::new();
        for (name, service) in &self.services {
            let has_slices = self.slices.values().any(|slice| service_of(slice) == *name);
            let spec = service.spec.clone().unwrap_or_default();
            let selector = spec.selector.unwrap_or_default();
            if has_slices || selector.is_empty() {
                continue;
            }
            let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
            let is_behind = |pod: &&Candidate<'_>| {
                let mut wanted = selector.iter();
                pod.namespace == namespace
                    && wanted.all(|(key, value)| pod.labels.get(key) == Some(value))
            };
            let ports = spec.ports.unwrap_or_default();
            for pod in pods.iter().filter(is_behind) {
                for address in pod.addresses {
                    let number = made.len();
                    made.push(slice_of(service, number, *address, &ports, pod.ports));
                }
            }
        }
        made
    }

    /// All services, with what is behind them.
    pub(crate) fn close(self) -> Vec<Service> {
        let mut endpoints: BTreeMap<String, Vec<ServiceEndpoint>> = BTreeMap::new();
        for slice in self.slices.values() {
            let behind = endpoints.entry(service_of(slice)).or_default();
            behind.extend(endpoints_of(slice));
        }
        let services = self.services.into_iter().map(|(name, service)| {
            let endpoints = endpoints.remove(&name).unwrap_or_default();
            Service::new(name, &service, endpoints)
        });
        services.collect()
    }
}

// === impl Service ===

impl Service {
    fn new(name: String, service: &KubeService, endpoints: Vec<ServiceEndpoint>) -> Self {
        let spec = service.spec.clone().unwrap_or_default();
        let cluster_ips = spec.cluster_ips.iter().flatten().chain(&spec.cluster_ip);
        let status = service.status.as_ref();
        let balancer = status.and_then(|status| status.load_balancer.as_ref());
        let balancer = balancer.and_then(|balancer| balancer.ingress.as_ref());
        let balancer = balancer.into_iter().flatten();
        let outside = spec.external_ips.iter().flatten();
        let texts = cluster_ips
            .clone()
            .chain(outside)
            .chain(balancer.filter_map(|ingress| ingress.ip.as_ref()));
        let mut addresses = Vec::new();
        for address in texts.filter_map(|text| parse_ip(text)) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        Self {
            name,
            addresses,
            is_headless: cluster_ips.clone().any(|text| text == NO_ADDRESS),
            is_local: spec.external_traffic_policy.as_deref() == Some("Local"),
            ports: spec.ports.iter().flatten().filter_map(port_of).collect(),
            endpoints,
        }
    }

    /// Its ports as people call them: `pg (TCP 5432), TCP 80`.
    pub(crate) fn ports_text(&self) -> String {
        let texts = self.ports.iter().map(|port| match &*port.name {
            "" => format!("{} {}", port.protocol, port.number),
            name => format!("{name} ({} {})", port.protocol, port.number),
        });
        texts.collect::<Vec<_>>().join(", ")
    }
}

// === impl ServiceEndpoint ===

impl ServiceEndpoint {
    /// Its port that a port of the service leads to.
    pub(crate) fn target(&self, port: &ServicePort) -> Option<u16> {
        let mut ports = self.ports.iter();
        let found = ports.find(|(name, protocol, _)| {
            *name == port.name && protocol.number() == port.protocol.number()
        });
        found.map(|(_, _, number)| *number)
    }
}

fn port_of(port: &KubePort) -> Option<ServicePort> {
    let number = |port: i32| u16::try_from(port).ok().filter(|port| *port > 0);
    Some(ServicePort {
        name: port.name.clone().unwrap_or_default(),
        protocol: protocol(port.protocol.as_deref()),
        number: number(port.port)?,
        node_port: port.node_port.and_then(number),
    })
}

fn endpoints_of(slice: &EndpointSlice) -> impl Iterator<Item = ServiceEndpoint> {
    let ports = slice.ports.iter().flatten().filter_map(|port| {
        let name = port.name.clone().unwrap_or_default();
        let number = u16::try_from(port.port?).ok()?;
        Some((name, protocol(port.protocol.as_deref()), number))
    });
    let ports: Vec<(String, Protocol, u16)> = ports.collect();
    let is_ready = |endpoint: &&KubeEndpoint| {
        let conditions = endpoint.conditions.as_ref();
        conditions.and_then(|conditions| conditions.ready) != Some(false)
    };
    let ready = slice.endpoints.iter().flatten().filter(is_ready);
    // Clients use the first address.
    let addresses = ready.filter_map(|endpoint| parse_ip(endpoint.addresses.first()?));
    addresses.map(move |address| ServiceEndpoint {
        address,
        ports: ports.clone(),
    })
}

/// The slice for one address of a pod.
fn slice_of(
    service: &KubeService,
    number: usize,
    address: IpAddr,
    ports: &[KubePort],
    of_pod: &[EndpointPort],
) -> EndpointSlice {
    let name = service.metadata.name.clone().unwrap_or_default();
    let ports = ports.iter().filter_map(|port| {
        let number = match &port.target_port {
            None => port.port,
            Some(IntOrString::Int(number)) => *number,
            Some(IntOrString::String(name)) => {
                let wanted = protocol(port.protocol.as_deref());
                let mut named = of_pod.iter();
                let found = named.find(|own| own.name == *name && own.protocol == wanted);
                i32::from(found?.port)
            }
        };
        Some(KubeEndpointPort {
            name: port.name.clone(),
            protocol: port.protocol.clone(),
            port: Some(number),
            ..KubeEndpointPort::default()
        })
    });
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    EndpointSlice {
        metadata: ObjectMeta {
            name: Some(format!("{name}-made-up-{number}")),
            namespace: service.metadata.namespace.clone(),
            labels: Some([(SERVICE_NAME.to_owned(), name)].into()),
            ..ObjectMeta::default()
        },
        address_type: family.to_owned(),
        endpoints: Some(vec![KubeEndpoint {
            addresses: vec![address.to_string()],
            ..KubeEndpoint::default()
        }]),
        ports: Some(ports.collect()),
    }
}

/// `namespace/name` of the service that a slice is of.
fn service_of(slice: &EndpointSlice) -> String {
    let labels = slice.metadata.labels.as_ref();
    let service = labels.and_then(|labels| labels.get(SERVICE_NAME));
    let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", service.map_or("", String::as_str))
}

fn full_name(metadata: &ObjectMeta) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!("{}/{}", text(&metadata.namespace), text(&metadata.name))
}

fn protocol(name: Option<&str>) -> Protocol {
    match name {
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        _ => Protocol::Tcp,
    }
}

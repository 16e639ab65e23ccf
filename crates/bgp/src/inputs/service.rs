//! Services of Kubernetes, reduced to what decides about their routes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use tortie_api::net;

use crate::Family;

/// Names the service that a slice belongs to.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// What a service has: namespace and name.
pub(crate) type ServiceName = (Arc<str>, Arc<str>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServiceFacts {
    pub(crate) is_load_balancer: bool,
    pub(crate) policy: TrafficPolicy,
    pub(crate) families: Vec<Family>,
    pub(crate) cluster_ips: Vec<IpAddr>,
    pub(crate) external_ips: Vec<IpAddr>,
    pub(crate) load_balancer_ips: Vec<IpAddr>,
    /// What was asked for, which need not be what was given.
    pub(crate) requested_ip: Option<IpAddr>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TrafficPolicy {
    #[default]
    Unset,
    Cluster,
    Local,
}

/// Where the ready endpoints of a service are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) anywhere: bool,
    pub(crate) here: bool,
}

/// Services, and the slices of endpoints behind them.
#[derive(Debug, Default)]
pub(crate) struct Services {
    by_name: BTreeMap<ServiceName, ServiceFacts>,
    slices: BTreeMap<ServiceName, SliceFacts>,
    /// The slices of each service, by their names.
    of_service: BTreeMap<ServiceName, BTreeSet<Arc<str>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SliceFacts {
    service: Arc<str>,
    family: Family,
    ready: Ready,
}

impl ServiceFacts {
    /// Nothing for services that have no address of the cluster, which are never advertised.
    fn new(service: &Service) -> Option<Self> {
        let spec = service.spec.as_ref()?;
        let kind = spec.type_.as_deref().unwrap_or("ClusterIP");
        if !matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer") {
            return None;
        }
        let first = spec.cluster_ip.as_deref().and_then(net::parse_ip)?;
        let addresses = |texts: Option<&Vec<String>>| -> Vec<IpAddr> {
            let texts = texts.into_iter().flatten();
            texts.filter_map(|text| net::parse_ip(text)).collect()
        };
        let mut cluster_ips = addresses(spec.cluster_ips.as_ref());
        if cluster_ips.is_empty() {
            cluster_ips.push(first);
        }
        let families = spec.ip_families.iter().flatten();
        let mut families: Vec<Family> = families.filter_map(|text| family(text)).collect();
        if families.is_empty() {
            families.push(Family::of(first));
        }
        let ingress = service.status.as_ref().and_then(|status| {
            let load_balancer = status.load_balancer.as_ref()?;
            load_balancer.ingress.as_ref()
        });
        let ingress = ingress.into_iter().flatten();
        Some(Self {
            is_load_balancer: kind == "LoadBalancer",
            policy: match spec.external_traffic_policy.as_deref() {
                Some("Local") => TrafficPolicy::Local,
                Some("Cluster") => TrafficPolicy::Cluster,
                _ => TrafficPolicy::Unset,
            },
            families,
            cluster_ips,
            external_ips: addresses(spec.external_ips.as_ref()),
            load_balancer_ips: ingress
                .filter_map(|ingress| net::parse_ip(ingress.ip.as_deref()?))
                .collect(),
            requested_ip: spec.load_balancer_ip.as_deref().and_then(net::parse_ip),
        })
    }
}

impl SliceFacts {
    fn new(slice: &EndpointSlice, node: &str) -> Option<Self> {
        let service = slice.metadata.labels.as_ref()?.get(SERVICE_NAME)?;
        let mut ready = Ready::default();
        for endpoint in slice.endpoints.iter().flatten() {
            let conditions = endpoint.conditions.as_ref();
            if conditions.and_then(|c| c.ready).unwrap_or(true) {
                ready.anywhere = true;
                ready.here |= endpoint.node_name.as_deref() == Some(node);
            }
        }
        Some(Self {
            service: service.as_str().into(),
            family: family(&slice.address_type)?,
            ready,
        })
    }
}

fn family(text: &str) -> Option<Family> {
    match text {
        "IPv4" => Some(Family::V4),
        "IPv6" => Some(Family::V6),
        _ => None,
    }
}

impl Services {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ServiceName, &ServiceFacts)> {
        self.by_name.iter()
    }

    pub(crate) fn get(&self, name: &ServiceName) -> Option<&ServiceFacts> {
        self.by_name.get(name)
    }

    /// Where the ready endpoints of a service are, of its own IP versions.
    pub(crate) fn ready(&self, name: &ServiceName, families: &[Family]) -> Ready {
        let slices = self.of_service.get(name).into_iter().flatten();
        let slices = slices.filter_map(|slice| {
            let key = (Arc::clone(&name.0), Arc::clone(slice));
            self.slices.get(&key)
        });
        slices
            .filter(|slice| families.contains(&slice.family))
            .fold(Ready::default(), |all, slice| Ready {
                anywhere: all.anywhere || slice.ready.anywhere,
                here: all.here || slice.ready.here,
            })
    }

    /// Takes a service, and tells its name.
    pub(crate) fn put_service(&mut self, service: &Service) -> ServiceName {
        let name = named(&service.metadata);
        match ServiceFacts::new(service) {
            Some(facts) => self.by_name.insert(name.clone(), facts),
            None => self.by_name.remove(&name),
        };
        name
    }

    pub(crate) fn remove_service(&mut self, name: &ServiceName) {
        self.by_name.remove(name);
    }

    /// The services whose endpoints a slice holds now, and would hold.
    pub(crate) fn services_of(&self, slice: &EndpointSlice) -> Vec<ServiceName> {
        let name = named(&slice.metadata);
        let labels = slice.metadata.labels.as_ref();
        let after = labels.and_then(|labels| labels.get(SERVICE_NAME));
        let mut services: Vec<ServiceName> = self.service_of(&name).into_iter().collect();
        services.extend(after.map(|service| (Arc::clone(&name.0), service.as_str().into())));
        services.dedup();
        services
    }

    /// The service whose endpoints the slice of this name holds.
    pub(crate) fn service_of(&self, slice: &ServiceName) -> Option<ServiceName> {
        let facts = self.slices.get(slice)?;
        Some((Arc::clone(&slice.0), Arc::clone(&facts.service)))
    }

    pub(crate) fn put_slice(&mut self, slice: &EndpointSlice, node: &str) {
        let name = named(&slice.metadata);
        self.remove_slice(&name);
        if let Some(facts) = SliceFacts::new(slice, node) {
            let service = (Arc::clone(&name.0), Arc::clone(&facts.service));
            let slices = self.of_service.entry(service).or_default();
            slices.insert(Arc::clone(&name.1));
            self.slices.insert(name, facts);
        }
    }

    pub(crate) fn remove_slice(&mut self, name: &ServiceName) {
        let Some(facts) = self.slices.remove(name) else {
            return;
        };
        let service = (Arc::clone(&name.0), facts.service);
        if let Some(slices) = self.of_service.get_mut(&service) {
            slices.remove(&name.1);
            if slices.is_empty() {
                self.of_service.remove(&service);
            }
        }
    }
}

fn named(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> ServiceName {
    let text = |text: &Option<String>| -> Arc<str> { text.as_deref().unwrap_or_default().into() };
    (text(&metadata.namespace), text(&metadata.name))
}

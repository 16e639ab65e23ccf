//! Who can have an address: workloads, host endpoints and network sets, each with all that rules can ask about it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use tortie_api::host_endpoint::HostEndpointSpec;
use tortie_api::meta::Metadata;
use tortie_api::scalar::Protocol;
use tortie_api::{Resource, WorkloadEndpoint};
use tortie_engine::input::{HostEndpointKey, WorkloadEndpointKey};
use tortie_engine::verdict::EndpointKey;

use crate::verdict::world::{Object, World, names};

pub(crate) type Labels = BTreeMap<String, String>;

pub(crate) const NAMESPACE: &str = "projectcalico.org/namespace";
pub(crate) const SERVICE_ACCOUNT: &str = "projectcalico.org/serviceaccount";
pub(crate) const ORCHESTRATOR: &str = "projectcalico.org/orchestrator";
/// The label with its own name that a namespace and a service account always has.
pub(crate) const NAME: &str = "projectcalico.org/name";

/// Something with addresses and labels.
#[derive(Debug, Default)]
pub(crate) struct Party<'a> {
    /// Its own labels, then those that its profiles add.
    pub(crate) labels: Labels,
    /// The labels of its namespace; none if it is in none.
    pub(crate) namespace_labels: Labels,
    /// The labels of its service account; none if it has none.
    pub(crate) account_labels: Labels,
    nets: Vec<IpNet>,
    ports: Vec<(&'a str, Option<u8>, u16)>,
    /// What it is known by, if policy can apply to it.
    pub(crate) key: Option<EndpointKey>,
    pub(crate) profiles: &'a [String],
    pub(crate) host: Option<&'a HostEndpointSpec>,
}

impl Party<'_> {
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.nets.iter().any(|net| net.contains(&address))
    }

    /// Whether it calls this port so. The name is for one protocol.
    pub(crate) fn names_port(&self, name: &str, protocol: Option<u8>, number: u16) -> bool {
        protocol.is_some() && self.ports.contains(&(name, protocol, number))
    }

    /// Whether it is in this namespace.
    pub(crate) fn is_in(&self, namespace: &str) -> bool {
        self.labels.get(NAMESPACE).is_some_and(|is| is == namespace)
    }

    /// Kubernetes knows of nothing else.
    pub(crate) fn is_pod(&self) -> bool {
        self.labels.get(ORCHESTRATOR).is_some_and(|is| is == "k8s")
    }
}

/// Everything with addresses.
pub(crate) fn all(world: &World) -> Vec<Party<'_>> {
    let parties = world.resources().filter_map(|resource| match resource {
        // Without addresses it is not there yet.
        Resource::WorkloadEndpoint(endpoint) if endpoint.spec.ip_networks.is_empty() => None,
        Resource::WorkloadEndpoint(endpoint) => Some(workload(world, endpoint)),
        Resource::HostEndpoint(host) => Some(Party {
            labels: with_profiles(world, host.metadata.labels.clone(), &host.spec.profiles),
            nets: nets(&host.spec.expected_ips),
            ports: host
                .spec
                .ports
                .iter()
                .map(|port| (&*port.name, port.protocol.number(), port.port))
                .collect(),
            key: Some(host_key(&host.metadata, &host.spec)),
            profiles: &host.spec.profiles,
            host: Some(&host.spec),
            ..Party::default()
        }),
        Resource::NetworkSet(set) => {
            let mut labels = set.metadata.labels.clone();
            labels.insert(NAMESPACE.to_owned(), set.metadata.namespace.clone());
            Some(Party {
                labels,
                namespace_labels: namespace_labels(world, &set.metadata.namespace, true),
                nets: nets(&set.spec.nets),
                ..Party::default()
            })
        }
        Resource::GlobalNetworkSet(set) => Some(Party {
            labels: set.metadata.labels.clone(),
            nets: nets(&set.spec.nets),
            ..Party::default()
        }),
        _ => None,
    });
    parties.collect()
}

fn workload<'a>(world: &World, endpoint: &'a WorkloadEndpoint) -> Party<'a> {
    let (namespace, spec) = (&endpoint.metadata.namespace, &endpoint.spec);
    let account = &spec.service_account_name;
    let mut labels = endpoint.metadata.labels.clone();
    labels.insert(NAMESPACE.to_owned(), namespace.clone());
    labels.insert(ORCHESTRATOR.to_owned(), spec.orchestrator.clone());
    if !account.is_empty() {
        labels.insert(SERVICE_ACCOUNT.to_owned(), account.clone());
    }
    Party {
        labels: with_profiles(world, labels, &spec.profiles),
        namespace_labels: namespace_labels(
            world,
            namespace,
            spec.profiles.contains(&format!("kns.{namespace}")),
        ),
        account_labels: account_labels(world, namespace, account),
        nets: nets(&spec.ip_networks),
        ports: spec
            .ports
            .iter()
            .map(|port| (&*port.name, port.protocol.number(), port.port))
            .collect(),
        key: Some(workload_key(endpoint)),
        profiles: &spec.profiles,
        host: None,
    }
}

pub(crate) fn workload_key(endpoint: &WorkloadEndpoint) -> EndpointKey {
    let spec = &endpoint.spec;
    let workload = if spec.orchestrator == "k8s" {
        &spec.pod
    } else {
        &spec.workload
    };
    EndpointKey::Workload(WorkloadEndpointKey {
        node: spec.node.clone(),
        orchestrator: spec.orchestrator.clone(),
        workload: format!("{}/{workload}", endpoint.metadata.namespace),
        endpoint: spec.endpoint.clone(),
    })
}

pub(crate) fn host_key(metadata: &Metadata, spec: &HostEndpointSpec) -> EndpointKey {
    EndpointKey::Host(HostEndpointKey {
        node: spec.node.clone(),
        name: metadata.name.clone(),
    })
}

/// A label of its own wins; then that of the first profile that has it.
fn with_profiles(world: &World, mut labels: Labels, profiles: &[String]) -> Labels {
    for name in profiles {
        for resource in world.resources() {
            if let Resource::Profile(profile) = resource
                && profile.metadata.name == *name
            {
                for (key, value) in &profile.spec.labels_to_apply {
                    labels.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
        }
    }
    labels
}

/// The labels of a namespace, with two that are always there. Calico hands them on through the profile of the
/// namespace; a workload that somebody made without it has only the label that says where it is.
fn namespace_labels(world: &World, wanted: &str, has_profile: bool) -> Labels {
    let found = world.objects.values().find_map(|object| match object {
        Object::Namespace(namespace) if names(&namespace.metadata).1 == wanted => {
            Some(&namespace.metadata)
        }
        _ => None,
    });
    let mut labels = Labels::new();
    if has_profile {
        labels = found
            .and_then(|metadata| metadata.labels.clone())
            .unwrap_or_default();
        labels.insert(NAME.to_owned(), wanted.to_owned());
    }
    labels.insert(NAMESPACE.to_owned(), wanted.to_owned());
    labels
}

fn account_labels(world: &World, namespace: &str, wanted: &str) -> Labels {
    let found = world.objects.values().find_map(|object| match object {
        Object::ServiceAccount(account) => {
            let (of, name) = names(&account.metadata);
            (of == namespace && name == wanted).then_some(&account.metadata)
        }
        _ => None,
    });
    let Some(metadata) = found else {
        return Labels::new();
    };
    let mut labels = metadata.labels.clone().unwrap_or_default();
    labels.insert(NAME.to_owned(), wanted.to_owned());
    labels
}

pub(crate) fn nets(texts: &[String]) -> Vec<IpNet> {
    texts.iter().map(|text| net(text)).collect()
}

/// A network or a single address. A network set may have bits beyond the prefix, which do not count.
pub(crate) fn net(text: &str) -> IpNet {
    let net = text
        .parse::<IpNet>()
        .or_else(|_| text.parse().map(|ip: IpAddr| IpNet::from(ip)));
    net.expect("validation accepts nothing else").trunc()
}

/// Whether two protocols are the same, whichever way they are written.
pub(crate) fn same(protocol: Option<&Protocol>, other: &Protocol) -> bool {
    protocol.is_some_and(|protocol| protocol.number() == other.number())
}

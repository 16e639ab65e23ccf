//! Who takes part: four pods, and what the datastore holds about them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Container, Namespace, Pod, PodIP, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use tortie_api::names::{DEFAULT_VETH_PREFIX, veth_name};
use tortie_api::{Resource, k8s};
use tortie_kernel::link::Mac;

/// The node that all pods run on.
pub(super) const NODE: &str = "demo";

/// The port that every pod answers questions over UDP on.
pub(super) const DNS: u16 = 53;

/// The UID of namespaces that no cluster has.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// A pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
    /// The port of its own service over TCP.
    pub(super) port: u16,
    pub(super) ipv4: Ipv4Addr,
    pub(super) ipv6: Ipv6Addr,
}

/// The pods, in the order in which they are shown.
pub(super) const CAST: [Role; 4] = [
    role("shop", "frontend", 80, 1),
    role("shop", "backend", 8080, 2),
    role("shop", "database", 5432, 3),
    role("elsewhere", "stranger", 80, 4),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "u8")]
pub(super) enum IpVersion {
    V4,
    V6,
}

/// Protocols that are probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

/// A connection from one pod to another, by their places in the cast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) protocol: Protocol,
    pub(super) version: IpVersion,
}

const fn role(namespace: &'static str, name: &'static str, port: u16, number: u8) -> Role {
    Role {
        namespace,
        name,
        port,
        ipv4: Ipv4Addr::new(10, 65, 0, number),
        ipv6: Ipv6Addr::new(0xfd65, 0, 0, 0, 0, 0, 0, number as u16),
    }
}

// === impl IpVersion ===

impl IpVersion {
    /// The versions that pods have.
    pub(super) fn used(with_ipv6: bool) -> &'static [Self] {
        if with_ipv6 {
            &[Self::V4, Self::V6]
        } else {
            &[Self::V4]
        }
    }
}

impl From<IpVersion> for u8 {
    fn from(version: IpVersion) -> Self {
        match version {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

// === impl Protocol ===

impl Protocol {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

// === impl Cell ===

impl Cell {
    /// All connections between different pods, row by row.
    pub(super) fn all(versions: &[IpVersion]) -> Vec<Self> {
        let mut cells = Vec::new();
        for version in versions.iter().copied() {
            for from in 0..CAST.len() {
                for to in (0..CAST.len()).filter(|to| *to != from) {
                    let cell = |protocol| Self {
                        from,
                        to,
                        protocol,
                        version,
                    };
                    cells.extend([cell(Protocol::Tcp), cell(Protocol::Udp)]);
                }
            }
        }
        cells
    }

    pub(super) fn source(&self) -> &'static Role {
        &CAST[self.from]
    }

    pub(super) fn destination(&self) -> &'static Role {
        &CAST[self.to]
    }

    /// The port that it goes to.
    pub(super) fn port(&self) -> u16 {
        match self.protocol {
            Protocol::Tcp => self.destination().port,
            Protocol::Udp => DNS,
        }
    }
}

// === impl Role ===

impl Role {
    /// `shop/backend`.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The name of its interface on the node's side.
    pub(super) fn interface(&self) -> String {
        veth_name(self.namespace, self.name, DEFAULT_VETH_PREFIX)
    }

    pub(super) fn address(&self, version: IpVersion) -> IpAddr {
        match version {
            IpVersion::V4 => self.ipv4.into(),
            IpVersion::V6 => self.ipv6.into(),
        }
    }

    pub(super) fn addresses(&self, versions: &[IpVersion]) -> Vec<IpAddr> {
        versions
            .iter()
            .map(|version| self.address(*version))
            .collect()
    }

    /// What Kubernetes holds about it.
    pub(super) fn object(&self, versions: &[IpVersion]) -> Pod {
        let addresses = self.addresses(versions).into_iter();
        let addresses: Vec<PodIP> = addresses
            .map(|address| PodIP {
                ip: address.to_string(),
            })
            .collect();
        Pod {
            metadata: ObjectMeta {
                namespace: Some(self.namespace.to_owned()),
                name: Some(self.name.to_owned()),
                labels: Some(labels([("app", self.name)])),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec {
                node_name: Some(NODE.to_owned()),
                containers: vec![Container {
                    name: "thread".to_owned(),
                    image: Some("tortie-demo".to_owned()),
                    ..Container::default()
                }],
                ..PodSpec::default()
            }),
            status: Some(PodStatus {
                phase: Some("Running".to_owned()),
                pod_ip: addresses.first().map(|address| address.ip.clone()),
                pod_ips: Some(addresses),
                ..PodStatus::default()
            }),
        }
    }

    /// What the datastore holds about it.
    pub(super) fn endpoint(&self, versions: &[IpVersion], mac: Mac) -> Result<Resource> {
        let converted = k8s::pod(&self.object(versions), DEFAULT_VETH_PREFIX).resource;
        let mut endpoint = converted.context("the endpoint of a pod could not be made")?;
        endpoint.spec.mac = mac.to_string();
        Ok(endpoint.into())
    }
}

/// What the datastore holds about the namespaces of the pods.
pub(super) fn namespaces() -> Result<Vec<Resource>> {
    let profile = |namespace: Namespace| {
        let profile = k8s::namespace(&namespace).resource;
        let profile = profile.context("the profile of a namespace could not be made")?;
        Ok(profile.into())
    };
    namespace_objects().into_iter().map(profile).collect()
}

/// What Kubernetes holds about them.
pub(super) fn namespace_objects() -> Vec<Namespace> {
    let mut names: Vec<&str> = CAST.iter().map(|role| role.namespace).collect();
    names.dedup();
    let object = |name: &str| Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            uid: Some(NO_UID.to_owned()),
            labels: Some(labels([("kubernetes.io/metadata.name", name)])),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    names.into_iter().map(object).collect()
}

fn labels<const N: usize>(labels: [(&str, &str); N]) -> BTreeMap<String, String> {
    labels
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

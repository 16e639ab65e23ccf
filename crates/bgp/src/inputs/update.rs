//! What the inputs are told, one object at a time.

use std::net::{Ipv4Addr, Ipv6Addr};

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use tortie_api::{Kind, Resource};

use crate::text::Password;

/// The newest state of one object.
#[derive(Debug, Clone)]
pub enum Update {
    /// A resource that is there. Kinds that BGP has no use for change nothing.
    Resource(Resource),
    /// The resource of this kind and name is gone.
    Removed(Kind, String),
    /// A service of Kubernetes that is there.
    Service(Box<Service>),
    /// The service of this namespace and name is gone.
    ServiceRemoved(String, String),
    /// A slice with endpoints of a service.
    EndpointSlice(Box<EndpointSlice>),
    /// The slice of this namespace and name is gone.
    EndpointSliceRemoved(String, String),
    /// What a secret has under a key; none where the secret or the key is missing.
    Secret(SecretRef, Option<SecretText>),
    /// A workload of this node that a `BGPPeer` selects, by any text that tells it from others; none when it is gone.
    WorkloadPeer(String, Option<WorkloadPeer>),
}

/// A key of a secret, which is in the namespace of the node's agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretRef {
    /// The secret.
    pub name: String,
    /// Where it is in the data of that.
    pub key: String,
}

/// What a secret has under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretText {
    /// A password that BIRD and the kernel can use.
    Usable(Password),
    /// Something else, which is not kept.
    Unusable,
}

impl SecretText {
    /// Reads the bytes of a secret.
    pub fn new(bytes: &[u8]) -> Self {
        std::str::from_utf8(bytes)
            .ok()
            .and_then(Password::new)
            .map_or(Self::Unusable, Self::Usable)
    }
}

/// A workload that peers with its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadPeer {
    /// Name of the `BGPPeer` that selects it.
    pub bgp_peer: String,
    /// Its first IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Its first IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
}

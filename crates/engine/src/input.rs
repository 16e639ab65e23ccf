//! What the engine is told: objects of the datastore, in the reduced form that a node works with.
//!
//! An update carries the key of an object and its value, or nothing where the object is absent: deleted, invalid, or
//! never there. Updates may be repeated, skipped or come in any order; only the last value of a key counts.
//!
//! Everything here is plain data that serialises, so the input of a node can be recorded and replayed.

mod cluster;
mod endpoint;
mod policy;

use std::collections::BTreeMap;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
pub use tortie_api::names::{PolicyId, PolicyKind};

pub use cluster::{
    Allocation, BgpConfiguration, BgpPeer, Block, Cluster, Configuration, EncapMode, EndpointSlice,
    IpPool, LiveMigration, MigrationSource, MigrationTarget, Node, NodeAddress, NodeAddressKind,
    ObjectName, Service, ServicePort, SlicePort, Wireguard,
};
pub use endpoint::{
    EndpointPort, HostEndpoint, HostEndpointKey, IpNat, NetworkSet, QosControls, WorkloadEndpoint,
    WorkloadEndpointKey,
};
pub use policy::{DefaultAction, Entity, Icmp, Policy, Profile, Rule, Tier};

/// The label that says which namespace an endpoint is in; endpoints of hosts have none.
pub const NAMESPACE: &str = "projectcalico.org/namespace";

/// The label that names the service account of an endpoint.
pub const SERVICE_ACCOUNT: &str = "projectcalico.org/serviceaccount";

/// Labels of an object, by name.
pub type Labels = BTreeMap<String, String>;

/// The state of one object of the datastore; no value where the object is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Update {
    /// A policy of any kind.
    Policy(PolicyId, Option<Policy>),
    /// A tier, by name.
    Tier(String, Option<Tier>),
    /// A profile, by name: the labels that it gives to its endpoints, and its rules.
    Profile(String, Option<Profile>),
    /// An interface of a workload, on any node.
    WorkloadEndpoint(WorkloadEndpointKey, Option<Box<WorkloadEndpoint>>),
    /// An interface of a host, on any node.
    HostEndpoint(HostEndpointKey, Option<Box<HostEndpoint>>),
    /// A set of networks with labels, by `namespace/name`, or `name` for a global one.
    NetworkSet(String, Option<NetworkSet>),
    /// Part of the endpoints behind a Kubernetes service.
    EndpointSlice(ObjectName, Option<EndpointSlice>),
    /// A Kubernetes service.
    Service(ObjectName, Option<Service>),
    /// A pool of addresses, by its range.
    IpPool(IpNet, Option<IpPool>),
    /// A block of addresses of a pool, by its range.
    Block(IpNet, Option<Block>),
    /// A node of the cluster, by name.
    Node(String, Option<Box<Node>>),
    /// Parameters for nodes: `default` for all, `node.NAME` for one, any other name for those that it selects.
    Configuration(String, Option<Configuration>),
    /// What is known of the cluster as a whole.
    Cluster(Option<Cluster>),
    /// The cluster's BGP configuration.
    BgpConfiguration(Option<BgpConfiguration>),
    /// A BGP peer, by name.
    BgpPeer(String, Option<BgpPeer>),
    /// A virtual machine on its way from one node to another.
    LiveMigration(ObjectName, Option<LiveMigration>),
}

impl Update {
    /// Whether the object is absent.
    pub fn is_removal(&self) -> bool {
        match self {
            Self::Policy(_, value) => value.is_none(),
            Self::Tier(_, value) => value.is_none(),
            Self::Profile(_, value) => value.is_none(),
            Self::WorkloadEndpoint(_, value) => value.is_none(),
            Self::HostEndpoint(_, value) => value.is_none(),
            Self::NetworkSet(_, value) => value.is_none(),
            Self::EndpointSlice(_, value) => value.is_none(),
            Self::Service(_, value) => value.is_none(),
            Self::IpPool(_, value) => value.is_none(),
            Self::Block(_, value) => value.is_none(),
            Self::Node(_, value) => value.is_none(),
            Self::Configuration(_, value) => value.is_none(),
            Self::Cluster(value) => value.is_none(),
            Self::BgpConfiguration(value) => value.is_none(),
            Self::BgpPeer(_, value) => value.is_none(),
            Self::LiveMigration(_, value) => value.is_none(),
        }
    }
}

//! What the engine tells the data plane, in the order in which it can be applied.
//!
//! The JSON form is that of Felix's protobuf messages: lowerCamelCase, defaults left out.

mod authentication_header;
mod endpoint;
mod network;
pub(crate) mod policy;
mod set;

use std::sync::Arc;

use ipnet::IpNet;
use serde::Serialize;
pub use tortie_api::names::PolicyId;
use tortie_config::DatastoreConfig;

pub use authentication_header::AUTHENTICATION_HEADER;
pub use endpoint::{
    HostEndpoint, HostEndpointId, LocalBgpPeer, MigrationRole, NatInfo, QosControls, QosPolicy,
    SkipRedirect, TierInfo, Tiers, WorkloadEndpoint, WorkloadEndpointId,
};
pub use network::{
    Encapsulation, GlobalBgpConfig, Host, IpamPool, PoolType, Route, RouteTypes, TunnelType, Vtep,
};
pub use policy::{Original, Policy, Profile, Rule, RuleSide};
pub use set::{Member, PortProtocol, SetId, SetType};
pub use tortie_config::PortRange;

use crate::is_default;

/// One step for the data plane.
///
/// Within one flush, sets come before the policies that use them, and policies and profiles before the endpoints that
/// use those; removals come after, in the reverse order. Only what was sent before is ever removed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Message {
    /// The datastore is being migrated: keep what is programmed, and wait.
    DatastoreNotReady,
    /// The parameters of this node changed.
    ConfigUpdate(DatastoreConfig),
    /// A new set with all its members.
    IpSetUpdate(IpSetUpdate),
    /// A change to the members of a set.
    IpSetDeltaUpdate(IpSetDelta),
    /// A set is not used any more.
    IpSetRemove(SetId),
    /// A policy that applies here, new or changed.
    ActivePolicyUpdate(Arc<PolicyId>, Arc<Policy>),
    /// A policy does not apply here any more.
    ActivePolicyRemove(Arc<PolicyId>),
    /// A profile that is used here, new or changed.
    ActiveProfileUpdate(Arc<str>, Arc<Profile>),
    /// A profile is not used here any more.
    ActiveProfileRemove(Arc<str>),
    /// A workload's endpoint on this node, new or changed.
    WorkloadEndpointUpdate(WorkloadEndpointId, Box<WorkloadEndpoint>),
    /// A workload's endpoint is gone.
    WorkloadEndpointRemove(WorkloadEndpointId),
    /// An endpoint of this host, new or changed.
    HostEndpointUpdate(HostEndpointId, Box<HostEndpoint>),
    /// An endpoint of this host is gone.
    HostEndpointRemove(HostEndpointId),
    /// A route to a destination, new or changed.
    RouteUpdate(Route),
    /// There is no route any more.
    RouteRemove(IpNet),
    /// A node's end of the VXLAN tunnels; a change is sent as removal and update.
    VtepUpdate(Vtep),
    /// A node has no end of the VXLAN tunnels any more.
    VtepRemove(String),
    /// A node of the cluster.
    HostMetadataUpdate(Host),
    /// A node is gone.
    HostMetadataRemove(String),
    /// A pool of addresses, by its identifier.
    IpamPoolUpdate(String, IpamPool),
    /// A pool is gone.
    IpamPoolRemove(String),
    /// Which kinds of tunnel the pools ask for.
    Encapsulation(Encapsulation),
    /// The cluster's BGP configuration.
    GlobalBgpConfigUpdate(GlobalBgpConfig),
    /// All that was known at the start has been sent; sent once.
    InSync,
}

/// A new set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IpSetUpdate {
    /// Its identifier.
    pub id: SetId,
    /// What its members are.
    pub r#type: SetType,
    /// Its members, in order.
    pub members: Vec<Member>,
}

/// A change to a set that was sent before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IpSetDelta {
    /// Its identifier.
    pub id: SetId,
    /// Members that it did not have, in order.
    #[serde(rename = "addedMembers", skip_serializing_if = "is_default")]
    pub added: Vec<Member>,
    /// Members that it has no more, in order.
    #[serde(rename = "removedMembers", skip_serializing_if = "is_default")]
    pub removed: Vec<Member>,
}

//! Endpoints of this node, with the policies that apply to them in order.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use serde::Serialize;
use tortie_api::names::PolicyId;

pub use crate::input::QosControls;
use crate::input::{DefaultAction, IpNat, WorkloadEndpointKey};
use crate::is_default;

/// The identity of a workload's endpoint on its node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadEndpointId {
    /// Who made the workload.
    pub orchestrator_id: String,
    pub workload_id: String,
    /// The interface inside the workload.
    pub endpoint_id: String,
}

/// The name of a host endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostEndpointId {
    /// The name.
    pub endpoint_id: String,
}

/// The policies of one tier that apply to an endpoint, in order. Staged policies are among them: they are computed
/// and reported, never enforced.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TierInfo {
    /// The name of the tier.
    pub name: Arc<str>,
    /// Policies for packets to the endpoint.
    #[serde(skip_serializing_if = "is_default")]
    pub ingress_policies: Vec<Arc<PolicyId>>,
    /// Policies for packets from the endpoint.
    #[serde(skip_serializing_if = "is_default")]
    pub egress_policies: Vec<Arc<PolicyId>>,
    /// What happens at its end; not known while the tier itself is missing, and then a drop.
    #[serde(skip_serializing_if = "is_default")]
    pub default_action: Option<DefaultAction>,
}

/// Tiers in order, shared among the endpoints with the same policies.
pub type Tiers = Arc<[TierInfo]>;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadEndpoint {
    /// `active`
    pub state: &'static str,
    /// The host side of the interface.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// The MAC address of the workload's side.
    #[serde(skip_serializing_if = "is_default")]
    pub mac: String,
    /// Its profiles, in order.
    #[serde(skip_serializing_if = "is_default")]
    pub profile_ids: Vec<String>,
    /// Its IPv4 addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub ipv4_nets: Vec<IpNet>,
    /// Its IPv6 addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub ipv6_nets: Vec<IpNet>,
    /// Its policies.
    #[serde(skip_serializing_if = "is_empty")]
    pub tiers: Tiers,
    /// Floating IPv4 addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub ipv4_nat: Vec<NatInfo>,
    /// Floating IPv6 addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub ipv6_nat: Vec<NatInfo>,
    /// Foreign source ranges that it may send from.
    #[serde(skip_serializing_if = "is_default")]
    pub allow_spoofed_source_prefixes: Vec<IpNet>,
    /// Annotations that the data plane looks at.
    #[serde(skip_serializing_if = "is_default")]
    pub annotations: BTreeMap<String, String>,
    /// Limits on its traffic.
    #[serde(skip_serializing_if = "is_default")]
    pub qos_controls: Option<QosControls>,
    /// The BGP peer that it is.
    #[serde(skip_serializing_if = "is_default")]
    pub local_bgp_peer: Option<LocalBgpPeer>,
    /// Directions in which the eBPF data plane must not take its short cut.
    #[serde(skip_serializing_if = "is_default")]
    pub skip_redir: Option<SkipRedirect>,
    /// Packet marking.
    #[serde(skip_serializing_if = "is_default")]
    pub qos_policies: Vec<QosPolicy>,
    /// Its part in a live migration.
    #[serde(skip_serializing_if = "is_default")]
    pub live_migration_role: MigrationRole,
    /// The live migration that it takes part in.
    #[serde(skip_serializing_if = "is_default")]
    pub live_migration_uid: String,
    /// The virtual machine that it belongs to.
    #[serde(skip_serializing_if = "is_default")]
    pub live_migration_vmi_name: String,
}

/// An endpoint of this host.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostEndpoint {
    /// The interface; `*` for all of them.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// Its profiles, in order.
    #[serde(skip_serializing_if = "is_default")]
    pub profile_ids: Vec<String>,
    /// Policies for packets to and from the host itself.
    #[serde(skip_serializing_if = "is_empty")]
    pub tiers: Tiers,
    /// Its IPv4 addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub expected_ipv4_addrs: Vec<IpAddr>,
    /// Its IPv6 addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub expected_ipv6_addrs: Vec<IpAddr>,
    /// Policies before connection tracking.
    #[serde(skip_serializing_if = "is_empty")]
    pub untracked_tiers: Tiers,
    /// Policies before destination NAT.
    #[serde(skip_serializing_if = "is_empty")]
    pub pre_dnat_tiers: Tiers,
    /// Policies for packets that the host forwards.
    #[serde(skip_serializing_if = "is_empty")]
    pub forward_tiers: Tiers,
    /// Packet marking.
    #[serde(skip_serializing_if = "is_default")]
    pub qos_policies: Vec<QosPolicy>,
}

/// A floating address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NatInfo {
    /// The address that clients use.
    pub ext_ip: IpAddr,
    /// The address of the endpoint.
    pub int_ip: IpAddr,
}

/// The BGP peer that an endpoint is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalBgpPeer {
    /// The name of the `BGPPeer`.
    pub bgp_peer_name: String,
}

/// Directions in which the eBPF data plane must not take its short cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SkipRedirect {
    /// Not from the endpoint.
    #[serde(rename = "Egress", skip_serializing_if = "is_default")]
    pub egress: bool,
    /// Not to the endpoint.
    #[serde(rename = "Ingress", skip_serializing_if = "is_default")]
    pub ingress: bool,
}

/// Packet marking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QosPolicy {
    /// The DSCP value for packets that leave the cluster.
    pub dscp: u8,
}

/// The part of an endpoint in a live migration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MigrationRole {
    /// None.
    #[default]
    NoRole,
    /// The machine leaves it.
    Source,
    /// The machine comes to it.
    Target,
}

impl From<&WorkloadEndpointKey> for WorkloadEndpointId {
    fn from(key: &WorkloadEndpointKey) -> Self {
        Self {
            orchestrator_id: key.orchestrator.clone(),
            workload_id: key.workload.clone(),
            endpoint_id: key.endpoint.clone(),
        }
    }
}

impl From<&IpNat> for NatInfo {
    fn from(nat: &IpNat) -> Self {
        Self {
            ext_ip: nat.external,
            int_ip: nat.internal,
        }
    }
}

fn is_empty(tiers: &Tiers) -> bool {
    tiers.is_empty()
}

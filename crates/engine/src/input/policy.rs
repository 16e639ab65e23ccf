//! Policies, profiles and tiers, with selectors that already hold the conditions on namespace and service account.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tortie_api::rule::{
    Action, HttpMatch, PolicyType, RuleMetadata, ServiceAccountMatch, ServiceMatch,
};
use tortie_api::scalar::{Port, Protocol};

use super::Labels;
use crate::is_default;

/// A policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent flags of the resource"
)]
pub struct Policy {
    /// The tier that it is in.
    pub tier: String,
    /// Its place in the tier, ascending; last where not given.
    #[serde(skip_serializing_if = "is_default")]
    pub order: Option<f64>,
    /// The endpoints that it applies to.
    pub selector: String,
    /// The directions that it governs; both where empty.
    #[serde(skip_serializing_if = "is_default")]
    pub types: Vec<PolicyType>,
    /// Rules for packets to the endpoint.
    #[serde(skip_serializing_if = "is_default")]
    pub inbound: Vec<Rule>,
    /// Rules for packets from the endpoint.
    #[serde(skip_serializing_if = "is_default")]
    pub outbound: Vec<Rule>,
    /// Applies before connection tracking.
    #[serde(skip_serializing_if = "is_default")]
    pub untracked: bool,
    /// Applies before destination NAT.
    #[serde(skip_serializing_if = "is_default")]
    pub pre_dnat: bool,
    /// Applies to packets that a host forwards, too.
    #[serde(skip_serializing_if = "is_default")]
    pub apply_on_forward: bool,
    /// Compute and send it even where no endpoint matches.
    #[serde(skip_serializing_if = "is_default")]
    pub assume_needed_on_every_node: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Tier {
    /// Its place among the tiers, ascending; last where not given.
    #[serde(skip_serializing_if = "is_default")]
    pub order: Option<f64>,
    /// What happens to packets that its policies apply to and no rule decides.
    pub default_action: DefaultAction,
}

/// What happens at the end of a tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DefaultAction {
    /// The packet is dropped.
    #[default]
    Deny,
    /// The packet goes on to the next tier, or to the profiles.
    Pass,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Profile {
    /// Labels that endpoints with this profile inherit.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// Rules for packets to the endpoint.
    #[serde(skip_serializing_if = "is_default")]
    pub inbound: Vec<Rule>,
    /// Rules for packets from the endpoint.
    #[serde(skip_serializing_if = "is_default")]
    pub outbound: Vec<Rule>,
}

/// A rule: all conditions that are set must hold for the action to happen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    /// What happens to a packet that matches.
    pub action: Action,
    /// 4 or 6.
    #[serde(skip_serializing_if = "is_default")]
    pub ip_version: Option<u8>,
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: Option<Protocol>,
    /// Not this protocol.
    #[serde(skip_serializing_if = "is_default")]
    pub not_protocol: Option<Protocol>,
    /// This ICMP message.
    #[serde(skip_serializing_if = "is_default")]
    pub icmp: Option<Icmp>,
    /// Not this ICMP message.
    #[serde(skip_serializing_if = "is_default")]
    pub not_icmp: Option<Icmp>,
    /// Where the packet comes from.
    #[serde(skip_serializing_if = "is_default")]
    pub source: Entity,
    /// Where the packet goes to.
    #[serde(skip_serializing_if = "is_default")]
    pub destination: Entity,
    /// Conditions that only a proxy can check.
    #[serde(skip_serializing_if = "is_default")]
    pub http: Option<HttpMatch>,
    /// Notes that do not take part in matching.
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Option<RuleMetadata>,
}

/// A kind of ICMP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icmp {
    pub r#type: u8,
    /// The code; any where not given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub code: Option<u8>,
}

/// Conditions on one end of a connection.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Entity {
    /// In one of these networks.
    #[serde(skip_serializing_if = "is_default")]
    pub nets: Vec<IpNet>,
    /// In none of these networks.
    #[serde(skip_serializing_if = "is_default")]
    pub not_nets: Vec<IpNet>,
    /// An endpoint or network set with such labels: selector, namespace selector and service accounts in one.
    #[serde(skip_serializing_if = "is_default")]
    pub selector: String,
    /// Not an endpoint or network set with such labels.
    #[serde(skip_serializing_if = "is_default")]
    pub not_selector: String,
    /// One of these ports.
    #[serde(skip_serializing_if = "is_default")]
    pub ports: Vec<Port>,
    /// None of these ports.
    #[serde(skip_serializing_if = "is_default")]
    pub not_ports: Vec<Port>,
    /// Behind this service; the namespace is always given.
    #[serde(skip_serializing_if = "is_default")]
    pub service: Option<ServiceMatch>,
    /// `selector` as the user wrote it.
    #[serde(skip_serializing_if = "is_default")]
    pub original_selector: String,
    /// `notSelector` as the user wrote it.
    #[serde(skip_serializing_if = "is_default")]
    pub original_not_selector: String,
    /// `namespaceSelector` as the user wrote it.
    #[serde(skip_serializing_if = "is_default")]
    pub original_namespace_selector: String,
    /// `serviceAccounts` as the user wrote them.
    #[serde(skip_serializing_if = "is_default")]
    pub original_service_accounts: Option<ServiceAccountMatch>,
}

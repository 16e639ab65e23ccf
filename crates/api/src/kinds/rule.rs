//! `Rule`: match conditions and actions shared by all policy kinds and profiles.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::scalar::{Port, Protocol};

/// One rule; all conditions that are set must hold for the action to happen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["action"]))]
pub struct Rule {
    /// What happens to traffic that matches.
    pub action: Action,
    /// Limits the rule to IPv4 (4) or IPv6 (6) packets; both when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("enum" = [4, 6]))]
    pub ip_version: Option<i64>,
    /// Protocol by name or number; any protocol when left out.
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: Option<Protocol>,
    /// Type and code of ICMP messages to match; needs an ICMP `protocol`.
    #[serde(skip_serializing_if = "is_default")]
    pub icmp: Option<IcmpFields>,
    /// Protocol, by name or number, that must not match.
    #[serde(skip_serializing_if = "is_default")]
    pub not_protocol: Option<Protocol>,
    /// Type and code of ICMP messages that must not match.
    #[serde(rename = "notICMP", skip_serializing_if = "is_default")]
    pub not_icmp: Option<IcmpFields>,
    /// Conditions on the side the traffic comes from.
    #[serde(skip_serializing_if = "is_default")]
    pub source: EntityRule,
    /// Conditions on the side the traffic goes to.
    #[serde(skip_serializing_if = "is_default")]
    pub destination: EntityRule,
    /// Conditions on HTTP requests; only for `Allow` rules on ingress, enforced by an L7 proxy.
    #[serde(skip_serializing_if = "is_default")]
    pub http: Option<HttpMatch>,
    /// Notes carried with the rule; they do not take part in matching.
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Option<RuleMetadata>,
    /// Fields of the stored rule that this version does not know, from a newer one or misspelt. They may be conditions, so
    /// that the rule must not be taken for all that it allows. Written under a name that no version knows: whoever reads
    /// the rule again is told the same.
    #[serde(
        rename = "x-unknown",
        skip_deserializing,
        skip_serializing_if = "is_default"
    )]
    #[schemars(skip)]
    pub unknown: Vec<String>,
}

/// One way to match a request path; exactly one member is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HttpPath {
    /// The whole path must be equal to this.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024))]
    pub exact: String,
    /// The path must start with this.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024))]
    pub prefix: String,
}

/// Conditions on HTTP requests; a list left empty matches everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HttpMatch {
    /// Request methods that match, such as `GET`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 20, "x-kubernetes-list-type" = "atomic"))]
    pub methods: Vec<String>,
    /// Request paths that match; one of them is enough.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 20, "x-kubernetes-list-type" = "atomic"))]
    pub paths: Vec<HttpPath>,
}

/// Kind of an ICMP message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct IcmpFields {
    /// Message type, such as 8 for an IPv4 echo request.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 254, "x-check" = "gte=0,lte=254"))]
    pub r#type: Option<i64>,
    /// Message code within the type; any code when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 255, "x-check" = "gte=0,lte=255"))]
    pub code: Option<i64>,
}

/// Conditions on one side of the traffic; all that are set must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct EntityRule {
    /// Addresses and CIDRs of which one must contain the peer; all of one IP version.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-repeats" = true, "maxItems" = 256, "x-check" = "net"))]
    pub nets: Vec<String>,
    /// Selects endpoints and network sets by label; in the policy's namespace unless told
    /// otherwise.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub selector: String,
    /// Namespaces `selector` looks in; `global()` means only objects outside namespaces.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub namespace_selector: String,
    /// Matches the endpoints behind a Kubernetes service; excludes selectors, nets and ports.
    #[serde(skip_serializing_if = "is_default")]
    pub services: Option<ServiceMatch>,
    /// Ports that match: numbers, `min:max` ranges or names; needs a protocol unless all are names.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 50, "x-kubernetes-list-type" = "atomic"))]
    pub ports: Vec<Port>,
    /// Addresses and CIDRs that must not contain the peer.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-repeats" = true, "maxItems" = 256, "x-check" = "net"))]
    pub not_nets: Vec<String>,
    /// Endpoints and network sets with these labels do not match.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024, "x-check" = "selector"))]
    pub not_selector: String,
    /// Ports that do not match: numbers, `min:max` ranges or names.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 50, "x-kubernetes-list-type" = "atomic"))]
    pub not_ports: Vec<Port>,
    /// Limits the match to pods that run under certain service accounts.
    #[serde(skip_serializing_if = "is_default")]
    pub service_accounts: Option<ServiceAccountMatch>,
}

/// Names a Kubernetes service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ServiceMatch {
    /// Name of the service.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 253, "x-check" = "name"))]
    pub name: String,
    /// Namespace of the service; the policy's own when left out, required in global policies.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 253, "x-check" = "name"))]
    pub namespace: String,
}

/// Selects service accounts; name and label conditions must both hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ServiceAccountMatch {
    /// Names of service accounts, one of which must match; any name when empty.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub names: Vec<String>,
    /// Labels the service account must carry; any when empty.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "selector"))]
    pub selector: String,
}

/// Notes attached to a rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RuleMetadata {
    /// Key-value notes for people and tools; they do not change enforcement.
    #[serde(skip_serializing_if = "is_default")]
    pub annotations: BTreeMap<String, String>,
}

/// Direction of traffic a policy covers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum PolicyType {
    /// Cover traffic into the endpoints.
    Ingress,
    /// Cover traffic out of the endpoints.
    Egress,
}

/// What a rule does with traffic that matches.
#[derive(
    Debug,
    Default,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum Action {
    /// Let the traffic through and stop.
    Allow,
    /// Drop the traffic and stop.
    #[default]
    Deny,
    /// Write the packet to the kernel log and go on with the next rule.
    Log,
    /// Skip the rest of this tier and go on with the next tier, or the profiles after the last.
    Pass,
}

/// What would become of the real policy when the staged one is enforced.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum StagedAction {
    /// It would be created or replaced with this content.
    Set,
    /// It would be deleted.
    Delete,
    /// It is a draft being worked out from observed traffic.
    Learn,
    /// It is set aside and would change nothing.
    Ignore,
}

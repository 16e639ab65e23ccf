//! The wire form of `policy.networking.k8s.io/v1alpha2` `ClusterNetworkPolicy`, as far as it is converted.
//!
//! Actions and tiers are text: an unknown one concerns the rule or policy that has it, not the whole list.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::{Deserialize, Serialize};

/// A policy that the cluster's administrator sets above or below those of the namespaces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetworkPolicy {
    /// Name, labels and bookkeeping.
    pub metadata: ObjectMeta,
    /// Where the policy applies, and its rules.
    pub spec: ClusterNetworkPolicySpec,
}

/// Where the policy applies, and its rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetworkPolicySpec {
    /// `Admin` or `Baseline`.
    pub tier: String,
    /// Position in the tier: lower goes first.
    pub priority: i32,
    /// The pods that the policy covers.
    pub subject: ClusterNetworkPolicySubject,
    /// Rules for traffic into the pods.
    pub ingress: Vec<ClusterNetworkPolicyIngressRule>,
    /// Rules for traffic out of the pods.
    pub egress: Vec<ClusterNetworkPolicyEgressRule>,
}

/// The pods that a policy covers; one member is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetworkPolicySubject {
    /// All pods of these namespaces.
    pub namespaces: Option<LabelSelector>,
    /// Some pods of some namespaces.
    pub pods: Option<NamespacedPods>,
}

/// Pods, by their own labels and those of their namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NamespacedPods {
    /// The namespaces; empty for all of them.
    pub namespace_selector: LabelSelector,
    /// The pods; empty for all of them.
    pub pod_selector: LabelSelector,
}

/// A rule for traffic into the pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetworkPolicyIngressRule {
    /// What people call the rule.
    pub name: String,
    /// `Accept`, `Deny` or `Pass`.
    pub action: String,
    /// Where the traffic comes from.
    pub from: Vec<ClusterNetworkPolicyIngressPeer>,
    /// Protocols and ports; none for all of them.
    pub protocols: Vec<ClusterNetworkPolicyProtocol>,
}

/// A rule for traffic out of the pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetworkPolicyEgressRule {
    /// What people call the rule.
    pub name: String,
    /// `Accept`, `Deny` or `Pass`.
    pub action: String,
    /// Where the traffic goes to.
    pub to: Vec<ClusterNetworkPolicyEgressPeer>,
    /// Protocols and ports; none for all of them.
    pub protocols: Vec<ClusterNetworkPolicyProtocol>,
}

/// Where traffic comes from; one member is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetworkPolicyIngressPeer {
    /// All pods of these namespaces.
    pub namespaces: Option<LabelSelector>,
    /// Some pods of some namespaces.
    pub pods: Option<NamespacedPods>,
}

/// Where traffic goes to; one member is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetworkPolicyEgressPeer {
    /// All pods of these namespaces.
    pub namespaces: Option<LabelSelector>,
    /// Some pods of some namespaces.
    pub pods: Option<NamespacedPods>,
    /// Address ranges.
    pub networks: Vec<String>,
}

/// A protocol, with or without ports; one member is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetworkPolicyProtocol {
    /// TCP.
    pub tcp: Option<ClusterNetworkPolicyPorts>,
    /// UDP.
    pub udp: Option<ClusterNetworkPolicyPorts>,
    /// SCTP.
    pub sctp: Option<ClusterNetworkPolicyPorts>,
    /// The port that a pod gives this name, in whatever protocol.
    pub destination_named_port: String,
}

/// The ports of a protocol.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetworkPolicyPorts {
    /// The ports that traffic goes to; all when left out.
    pub destination_port: Option<ClusterNetworkPolicyPort>,
}

/// A port or a range of ports; one member is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetworkPolicyPort {
    /// One port; 0 for none.
    pub number: i32,
    /// A range of ports.
    pub range: Option<ClusterNetworkPolicyPortRange>,
}

/// A range of ports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetworkPolicyPortRange {
    /// The first port.
    pub start: i32,
    /// The last port.
    pub end: i32,
}

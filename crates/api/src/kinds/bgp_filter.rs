//! `BGPFilter`: route filters that BGP peers apply on import and export.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::scalar::AsNumber;

/// Ordered rule lists per direction and address family; the first match decides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BgpFilterSpec {
    /// Rules for IPv4 routes sent to the peer.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub export_v4: Vec<BgpFilterRuleV4>,
    /// Rules for IPv4 routes received from the peer.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub import_v4: Vec<BgpFilterRuleV4>,
    /// Rules for IPv6 routes sent to the peer.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub export_v6: Vec<BgpFilterRuleV6>,
    /// Rules for IPv6 routes received from the peer.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub import_v6: Vec<BgpFilterRuleV6>,
}

/// One IPv4 filter rule; all conditions that are set must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["action"]))]
pub struct BgpFilterRuleV4 {
    /// IPv4 prefix compared with the route; goes together with `matchOperator`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("format" = "cidr", "maxLength" = 18, "x-check" = "netv4"))]
    pub cidr: String,
    /// Narrows the match to routes with a mask length in this range; needs `cidr`.
    #[serde(skip_serializing_if = "is_default")]
    pub prefix_length: Option<BgpFilterPrefixLengthV4>,
    /// Matches routes by where the node got them; any origin when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub source: Option<BgpFilterMatchSource>,
    /// Matches routes through this interface; `*` works as a wildcard.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 15, "x-check" = "bgpFilterInterface"))]
    pub interface: String,
    /// How the route is compared with `cidr`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub match_operator: Option<BgpFilterMatchOperator>,
    /// Limits the rule to sessions with external or internal peers; both when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub peer_type: Option<BgpFilterPeerType>,
    /// Matches routes that carry the given BGP community.
    #[serde(skip_serializing_if = "is_default")]
    pub communities: Option<BgpFilterCommunityMatch>,
    /// Matches routes whose AS path starts with these numbers, in this order.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub as_path_prefix: Vec<AsNumber>,
    /// Matches routes of exactly this priority (kernel metric).
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 1, "maximum" = 2_147_483_646, "x-check" = "gte=1,lte=2147483646"))]
    pub priority: Option<i64>,
    /// What happens to a route that matches.
    pub action: BgpFilterAction,
    /// Changes made to an accepted route, in order; only with action `Accept`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minItems" = 1, "maxItems" = 10, "x-kubernetes-list-type" = "atomic"))]
    pub operations: Vec<BgpFilterOperation>,
}

/// One IPv6 filter rule; all conditions that are set must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["action"]))]
pub struct BgpFilterRuleV6 {
    /// IPv6 prefix compared with the route; goes together with `matchOperator`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("format" = "cidr", "maxLength" = 43, "x-check" = "netv6"))]
    pub cidr: String,
    /// Narrows the match to routes with a mask length in this range; needs `cidr`.
    #[serde(skip_serializing_if = "is_default")]
    pub prefix_length: Option<BgpFilterPrefixLengthV6>,
    /// Matches routes by where the node got them; any origin when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub source: Option<BgpFilterMatchSource>,
    /// Matches routes through this interface; `*` works as a wildcard.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 15, "x-check" = "bgpFilterInterface"))]
    pub interface: String,
    /// How the route is compared with `cidr`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub match_operator: Option<BgpFilterMatchOperator>,
    /// Limits the rule to sessions with external or internal peers; both when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset"))]
    pub peer_type: Option<BgpFilterPeerType>,
    /// Matches routes that carry the given BGP community.
    #[serde(skip_serializing_if = "is_default")]
    pub communities: Option<BgpFilterCommunityMatch>,
    /// Matches routes whose AS path starts with these numbers, in this order.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub as_path_prefix: Vec<AsNumber>,
    /// Matches routes of exactly this priority (kernel metric).
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 1, "maximum" = 2_147_483_646, "x-check" = "gte=1,lte=2147483646"))]
    pub priority: Option<i64>,
    /// What happens to a route that matches.
    pub action: BgpFilterAction,
    /// Changes made to an accepted route, in order; only with action `Accept`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minItems" = 1, "maxItems" = 10, "x-kubernetes-list-type" = "atomic"))]
    pub operations: Vec<BgpFilterOperation>,
}

/// Range of IPv4 mask lengths, both ends included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BgpFilterPrefixLengthV4 {
    /// Shortest mask length that matches; the length of `cidr` when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 32))]
    pub min: Option<i32>,
    /// Longest mask length that matches; 32 when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 32))]
    pub max: Option<i32>,
}

/// Range of IPv6 mask lengths, both ends included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BgpFilterPrefixLengthV6 {
    /// Shortest mask length that matches; the length of `cidr` when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 128))]
    pub min: Option<i32>,
    /// Longest mask length that matches; 128 when left out.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 128))]
    pub max: Option<i32>,
}

/// Condition on the communities of a route.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["values"]))]
pub struct BgpFilterCommunityMatch {
    /// Exactly one community, standard `a:b` or large `a:b:c`, that the route must carry.
    #[schemars(extend("minItems" = 1, "maxItems" = 1, "x-kubernetes-list-type" = "atomic", "maxLength" = 32, "pattern" = "^(([0-9]|[1-9][0-9]{1,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]):([0-9]|[1-9][0-9]{1,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])|([0-9]|[1-9][0-9]{1,8}|[1-3][0-9]{9}|4[0-1][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[0-1][0-9]{2}|42949672[0-8][0-9]|429496729[0-5]):([0-9]|[1-9][0-9]{1,8}|[1-3][0-9]{9}|4[0-1][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[0-1][0-9]{2}|42949672[0-8][0-9]|429496729[0-5]):([0-9]|[1-9][0-9]{1,8}|[1-3][0-9]{9}|4[0-1][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[0-1][0-9]{2}|42949672[0-8][0-9]|429496729[0-5]))$"))]
    pub values: Vec<String>,
}

/// One change to an accepted route; exactly one member is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct BgpFilterOperation {
    /// Attaches one more community to the route.
    #[serde(skip_serializing_if = "is_default")]
    pub add_community: Option<BgpFilterAddCommunity>,
    /// Puts AS numbers in front of the route's AS path.
    #[serde(rename = "prependASPath", skip_serializing_if = "is_default")]
    pub prepend_as_path: Option<BgpFilterPrependAsPath>,
    /// Gives the route a new priority.
    #[serde(skip_serializing_if = "is_default")]
    pub set_priority: Option<BgpFilterSetPriority>,
}

/// Argument of the `addCommunity` operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["value"]))]
pub struct BgpFilterAddCommunity {
    /// Community to attach, standard `a:b` or large `a:b:c`.
    #[schemars(extend("maxLength" = 32, "pattern" = "^(([0-9]|[1-9][0-9]{1,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]):([0-9]|[1-9][0-9]{1,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])|([0-9]|[1-9][0-9]{1,8}|[1-3][0-9]{9}|4[0-1][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[0-1][0-9]{2}|42949672[0-8][0-9]|429496729[0-5]):([0-9]|[1-9][0-9]{1,8}|[1-3][0-9]{9}|4[0-1][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[0-1][0-9]{2}|42949672[0-8][0-9]|429496729[0-5]):([0-9]|[1-9][0-9]{1,8}|[1-3][0-9]{9}|4[0-1][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[0-1][0-9]{2}|42949672[0-8][0-9]|429496729[0-5]))$"))]
    pub value: Option<String>,
}

/// Argument of the `prependASPath` operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["prefix"]))]
pub struct BgpFilterPrependAsPath {
    /// AS numbers to put in front; the first one listed becomes the leftmost.
    #[schemars(extend("minItems" = 1, "maxItems" = 10, "x-kubernetes-list-type" = "atomic"))]
    pub prefix: Vec<AsNumber>,
}

/// Argument of the `setPriority` operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["value"]))]
pub struct BgpFilterSetPriority {
    /// New priority in kernel metric terms: the lower number is preferred.
    #[schemars(extend("minimum" = 1, "maximum" = 2_147_483_646, "x-check" = "gte=1,lte=2147483646"))]
    pub value: Option<i64>,
}

/// Origin of a route as a filter condition.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BgpFilterMatchSource {
    /// The route was learned from a BGP peer rather than created on this node.
    RemotePeers,
}

/// Comparison between a route and the prefix of a rule.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BgpFilterMatchOperator {
    /// The route is exactly the prefix.
    Equal,
    /// The route is anything but exactly the prefix.
    NotEqual,
    /// The route lies inside the prefix or equals it.
    In,
    /// The route lies outside the prefix.
    NotIn,
}

/// Verdict of a filter rule.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BgpFilterAction {
    /// Let the route through and stop looking at further rules.
    Accept,
    /// Drop the route and stop looking at further rules.
    #[default]
    Reject,
}

/// Kind of BGP session a rule is meant for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BgpFilterPeerType {
    /// Sessions with a peer in another AS.
    #[serde(rename = "eBGP")]
    Ebgp,
    /// Sessions with a peer in the same AS.
    #[serde(rename = "iBGP")]
    Ibgp,
}

//! `GlobalNetworkSet`: named addresses that policies in every namespace can select by label.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;

/// Members of the set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GlobalNetworkSetSpec {
    /// Addresses and CIDRs, IPv4 or IPv6, that belong to the set.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-repeats" = true, "x-check" = "cidr"))]
    pub nets: Vec<String>,
}

//! `IPReservation`: addresses that IPAM must not hand out by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;

/// Addresses kept back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct IpReservationSpec {
    /// Addresses and ranges skipped by automatic assignment; explicit requests still get them.
    #[serde(rename = "reservedCIDRs", skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "format" = "cidr", "x-check" = "cidr"))]
    pub reserved_cidrs: Vec<String>,
}

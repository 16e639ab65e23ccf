//! `BlockAffinity`: claim of a node on one IPAM block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;

/// Which host holds which block and how far the claim has got.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["state", "node", "cidr", "deleted"]))]
pub struct BlockAffinitySpec {
    /// Progress of the claim or of its release.
    pub state: BlockAffinityState,
    /// Host that holds the block; `load-balancer` for blocks that serve `LoadBalancer` addresses.
    pub node: String,
    /// Kind of holder: `host` or `virtual`; empty means `host`.
    #[serde(skip_serializing_if = "is_default")]
    pub r#type: String,
    /// Address range of the claimed block.
    #[schemars(extend("format" = "cidr"))]
    pub cidr: String,
    /// Set by the datastore code while it removes the object; users leave it `false`.
    #[schemars(extend("x-default" = false))]
    pub deleted: bool,
}

/// Step of the claim and release protocol.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BlockAffinityState {
    /// Written by old versions; no step is recorded.
    #[serde(rename = "")]
    #[default]
    Unset,
    /// The host owns the block.
    #[serde(rename = "confirmed")]
    Confirmed,
    /// The host has announced the claim but does not own the block yet.
    #[serde(rename = "pending")]
    Pending,
    /// The host is giving the block up.
    #[serde(rename = "pendingDeletion")]
    PendingDeletion,
}

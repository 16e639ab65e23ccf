//! `IPAMBlock`: one block of addresses and the record of who holds each of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::meta::Time;

/// Content of a block; written by IPAM only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["cidr", "allocations", "unallocated", "attributes", "strictAffinity"]))]
pub struct IpamBlockSpec {
    /// Address range of the block.
    #[schemars(extend("format" = "cidr"))]
    pub cidr: String,
    /// Owner, as `host:<node>` or `virtual:load-balancer`; absent when nobody owns the block.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^(host|virtual):[a-zA-Z0-9\.\-_]+$"))]
    pub affinity: Option<String>,
    /// When the present owner claimed the block.
    #[serde(skip_serializing_if = "is_default")]
    pub affinity_claim_time: Option<Time>,
    /// One entry per address: null when free, else an index into `attributes`.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub allocations: Vec<Option<i64>>,
    /// Offsets of free addresses in the order they will be handed out.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub unallocated: Vec<i64>,
    /// Details of the holders that `allocations` points to.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub attributes: Vec<AllocationAttribute>,
    /// Grows with every change of the block, to tell allocations apart over time.
    #[schemars(extend("x-default" = 0))]
    pub sequence_number: u64,
    /// Sequence number at which each address was given out, keyed by its offset.
    pub sequence_number_for_allocation: BTreeMap<String, u64>,
    /// Set while the block is being removed, so that two writers cannot cross.
    pub deleted: bool,
    /// Old per-block strictness flag; still written, no longer used.
    #[serde(rename = "strictAffinity")]
    pub deprecated_strict_affinity: bool,
}

/// Who holds an address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AllocationAttribute {
    /// Handle that groups all addresses of one holder.
    #[serde(rename = "handle_id", skip_serializing_if = "is_default")]
    pub handle_id: Option<String>,
    /// Facts about the present holder, such as pod, namespace and node.
    #[serde(rename = "secondary", skip_serializing_if = "is_default")]
    pub active_owner_attrs: BTreeMap<String, String>,
    /// Facts about a second holder, such as the target pod of a live migration.
    #[serde(skip_serializing_if = "is_default")]
    pub alternate_owner_attrs: BTreeMap<String, String>,
    /// When the address was released; it becomes free after the cooldown.
    #[serde(skip_serializing_if = "is_default")]
    pub released_at: Option<Time>,
}

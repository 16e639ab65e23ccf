//! `IPAMConfiguration`: cluster-wide IPAM behaviour, kept in one object named `default`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;

/// Settings that steer how nodes claim blocks and give out addresses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["strictAffinity", "autoAllocateBlocks"]))]
pub struct IpamConfigurationSpec {
    /// Forbids nodes to borrow single addresses from blocks of other nodes. Default `false`.
    #[schemars(extend("x-default" = false))]
    pub strict_affinity: bool,
    /// Most blocks one node may own; 0 means no limit. Default 0.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 1_000_000, "x-default" = 0))]
    pub max_blocks_per_host: i32,
    /// Whether nodes claim a new block when theirs are full. Default `true`.
    #[schemars(extend("x-default" = true))]
    pub auto_allocate_blocks: bool,
    /// Whether a virtual machine keeps its address across restarts and moves. Default `Enabled`.
    #[serde(
        rename = "kubeVirtVMAddressPersistence",
        skip_serializing_if = "is_default"
    )]
    pub kube_virt_vm_address_persistence: Option<VmAddressPersistence>,
    /// Seconds a released address rests before it is given out again. Default 0.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 1200))]
    pub ip_cooldown_seconds: i32,
}

/// Whether `KubeVirt` virtual machines keep their addresses.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum VmAddressPersistence {
    /// The address belongs to the machine and outlives its pods.
    Enabled,
    /// The address belongs to the pod and goes away with it.
    Disabled,
}

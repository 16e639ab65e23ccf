//! `IPAMHandle`: index from a holder to the blocks its addresses come from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Blocks in which one holder has addresses; written by IPAM only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["handleID", "block"]))]
pub struct IpamHandleSpec {
    /// Identity of the holder, such as network name plus container ID.
    #[serde(rename = "handleID")]
    pub handle_id: String,
    /// Number of addresses held, keyed by the CIDR of the block.
    pub block: BTreeMap<String, i64>,
    /// Set while the handle is being removed, so that two writers cannot cross.
    pub deleted: bool,
}

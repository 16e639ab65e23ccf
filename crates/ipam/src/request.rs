//! What is asked for, and what comes of it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
pub use tortie_api::ip_pool::IpPoolAllowedUse as Use;

/// The name of the virtual owner of blocks for services.
pub const LOAD_BALANCER: &str = "load-balancer";

/// A request for addresses, whichever are free.
///
/// ```
/// use tortie_ipam::AutoAssign;
/// let request = AutoAssign { num4: 1, handle: Some("net.container".into()), ..AutoAssign::on("node-1") };
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoAssign {
    /// How many IPv4 addresses.
    pub num4: u32,
    /// How many IPv6 addresses.
    pub num6: u32,
    /// Under which handle they can be found and released together.
    pub handle: Option<String>,
    /// Facts about the holder, such as [`attribute::POD`].
    pub attributes: BTreeMap<String, String>,
    /// The node; [`LOAD_BALANCER`] for services.
    pub host: String,
    /// Only from these pools, whatever they select; empty for any that selects node and namespace.
    pub pools4: Vec<IpNet>,
    /// The same for IPv6.
    pub pools6: Vec<IpNet>,
    /// What the addresses are for.
    pub used_for: Use,
    /// The labels of the pod's namespace; none if there is no namespace.
    pub namespace_labels: Option<BTreeMap<String, String>>,
    /// How many blocks the host may own; 0 for what is configured, or 20.
    pub max_blocks_per_host: u32,
    /// How many addresses of each IP version the handle may have; what it has is given again instead of more.
    pub max_per_handle: Option<u32>,
    /// Addresses that new IPv4 blocks keep for the host itself.
    pub reserved4: Option<HostReserved>,
    /// The same for IPv6.
    pub reserved6: Option<HostReserved>,
}

/// A request for blocks of which nobody needs an address yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnsureBlock {
    /// The node.
    pub host: String,
    /// Only from these pools, whatever they select; empty for any that selects the node.
    pub pools4: Vec<IpNet>,
    /// The same for IPv6.
    pub pools6: Vec<IpNet>,
    /// Addresses that a new IPv4 block keeps for the host itself; without them, no IPv4 block is wanted.
    pub reserved4: Option<HostReserved>,
    /// The same for IPv6.
    pub reserved6: Option<HostReserved>,
}

/// A request for one particular address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignIp {
    pub address: IpAddr,
    /// Under which handle it can be found and released.
    pub handle: Option<String>,
    /// Facts about the holder.
    pub attributes: BTreeMap<String, String>,
    /// The node; [`LOAD_BALANCER`] for services.
    pub host: String,
    /// What the address is for; none to take it from any pool.
    pub used_for: Option<Use>,
    /// How many addresses of its IP version the handle may have.
    pub max_per_handle: Option<u32>,
    /// Addresses that a new block keeps for the host itself.
    pub reserved: Option<HostReserved>,
}

/// Addresses at both ends of a block that no workload may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReserved {
    /// How many at its start.
    pub start: u32,
    /// How many at its end.
    pub end: u32,
    /// The handle that holds them.
    pub handle: String,
    /// Why they are held.
    pub note: String,
}

/// An address to be released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseIp {
    pub address: IpAddr,
    /// Only if this handle has it.
    pub handle: Option<String>,
    /// Only if it is this allocation.
    pub sequence_number: Option<u64>,
}

/// The addresses that a request got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assigned {
    /// IPv4 addresses.
    pub v4: Assignment,
    /// IPv6 addresses.
    pub v6: Assignment,
}

/// Addresses of one IP version that a request got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignment {
    /// The addresses, with the prefix length of their blocks.
    pub addresses: Vec<IpNet>,
    /// Why these are fewer than asked for.
    pub shortfall: Option<Shortfall>,
}

/// Why a request got fewer addresses than asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// How many were assigned.
    pub assigned: u32,
    /// How many were asked for.
    pub requested: u32,
    /// 4 or 6.
    pub version: u8,
    /// What stood in the way.
    pub reasons: Vec<String>,
    /// The handle of the addresses kept for the host itself, if any are.
    pub host_reserved: Option<String>,
}

/// What a release did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Released {
    /// What was dealt with: these addresses are free now, or were before.
    pub released: Vec<ReleaseIp>,
    /// Which of the addresses nobody had.
    pub unallocated: Vec<IpAddr>,
}

/// Who has an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    pub handle: Option<String>,
    /// Facts about the holder.
    pub attributes: BTreeMap<String, String>,
    /// Facts about a second holder, such as the target of a live migration.
    pub alternate_attributes: BTreeMap<String, String>,
}

/// Who owns blocks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Of what sort.
    pub kind: OwnerKind,
    /// The node's name, or that of the virtual owner.
    pub name: String,
}

/// The sorts of owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerKind {
    /// A node.
    Host,
    /// Something that is no node.
    Virtual,
}

/// What became of the blocks to be claimed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimedBlocks {
    /// Blocks that are the host's now.
    pub claimed: Vec<IpNet>,
    /// Blocks of others.
    pub failed: Vec<IpNet>,
}

/// Names and values of attributes that several programs agree on.
pub mod attribute {
    /// The pod's name.
    pub const POD: &str = "pod";
    /// The pod's namespace.
    pub const NAMESPACE: &str = "namespace";
    pub const NODE: &str = "node";
    /// What the address is for, if not for a workload.
    pub const TYPE: &str = "type";
    /// The service of a load balancer's address.
    pub const SERVICE: &str = "service";
    /// When the address was assigned.
    pub const TIMESTAMP: &str = "timestamp";
    /// Why addresses are kept back.
    pub const NOTE: &str = "note";
    /// The virtual machine instance.
    pub const VMI_NAME: &str = "vmi-name";

    /// Address of a node's IPIP device.
    pub const IPIP_TUNNEL: &str = "ipipTunnelAddress";
    /// Address of a node's VXLAN device.
    pub const VXLAN_TUNNEL: &str = "vxlanTunnelAddress";
    /// Address of a node's VXLAN device for IPv6.
    pub const VXLAN_V6_TUNNEL: &str = "vxlanV6TunnelAddress";
    /// Address of a node's `WireGuard` device.
    pub const WIREGUARD_TUNNEL: &str = "wireguardTunnelAddress";
    /// Address of a node's `WireGuard` device for IPv6.
    pub const WIREGUARD_V6_TUNNEL: &str = "wireguardV6TunnelAddress";

    /// All types of tunnel addresses.
    pub const TUNNELS: [&str; 5] = [
        IPIP_TUNNEL,
        VXLAN_TUNNEL,
        VXLAN_V6_TUNNEL,
        WIREGUARD_TUNNEL,
        WIREGUARD_V6_TUNNEL,
    ];
}

impl AutoAssign {
    /// A request for no addresses, for a workload on a node.
    pub fn on(host: impl Into<String>) -> Self {
        Self {
            num4: 0,
            num6: 0,
            handle: None,
            attributes: BTreeMap::new(),
            host: host.into(),
            pools4: Vec::new(),
            pools6: Vec::new(),
            used_for: Use::Workload,
            namespace_labels: None,
            max_blocks_per_host: 0,
            max_per_handle: None,
            reserved4: None,
            reserved6: None,
        }
    }
}

impl AssignIp {
    /// A request for an address on a node, for any use.
    pub fn on(host: impl Into<String>, address: IpAddr) -> Self {
        Self {
            address,
            handle: None,
            attributes: BTreeMap::new(),
            host: host.into(),
            used_for: None,
            max_per_handle: None,
            reserved: None,
        }
    }
}

impl From<IpAddr> for ReleaseIp {
    fn from(address: IpAddr) -> Self {
        Self {
            address,
            handle: None,
            sequence_number: None,
        }
    }
}

impl Owner {
    /// A node.
    pub fn host(name: impl Into<String>) -> Self {
        Self {
            kind: OwnerKind::Host,
            name: name.into(),
        }
    }

    /// The owner of blocks that addresses for this use come from.
    pub(crate) fn of_use(host: &str, used_for: Option<Use>) -> Self {
        let kind = match used_for {
            Some(Use::LoadBalancer) => OwnerKind::Virtual,
            _ => OwnerKind::Host,
        };
        Self {
            kind,
            name: host.to_owned(),
        }
    }

    /// Reads `host:<name>` or `virtual:<name>`.
    pub fn parse(affinity: &str) -> Option<Self> {
        let (kind, name) = affinity.split_once(':')?;
        let kind = match kind {
            "host" => OwnerKind::Host,
            "virtual" => OwnerKind::Virtual,
            _ => return None,
        };
        Some(Self {
            kind,
            name: name.to_owned(),
        })
    }
}

impl OwnerKind {
    /// As in the datastore.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Virtual => "virtual",
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.name)
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            assigned,
            requested,
            version,
            ..
        } = self;
        write!(
            f,
            "Assigned {assigned} out of {requested} requested IPv{version} addresses"
        )?;
        for reason in &self.reasons {
            write!(f, "; {reason}")?;
        }
        if let Some(handle) = &self.host_reserved {
            write!(f, "; HostReservedAttr: {handle}")?;
        }
        Ok(())
    }
}

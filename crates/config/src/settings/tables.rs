//! Rules in the kernel.

use std::{net::Ipv4Addr, time::Duration};

use crate::choice::{
    AllowAction, ChainInsertMode, DenyAction, EndpointToHostAction, IptablesBackend,
    NatOutgoingExclusions, NftablesMode, ServiceLoopPrevention, SourceSpoofing,
};
use crate::resolve::Values;
use crate::value::{FailsafePort, PortRange};

/// How rules are programmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableConfig {
    /// Whether they are programmed with nftables.
    pub nftables_mode: NftablesMode,
    /// What holds if they are programmed with nftables.
    pub nftables: BackendConfig,
    /// What holds if they are programmed with iptables.
    pub iptables: BackendConfig,
    /// Which iptables is used.
    pub iptables_backend: IptablesBackend,
    /// Time between attempts to take the iptables lock.
    pub iptables_lock_probe: Duration,
    /// Where our rules go in the kernel's chains.
    pub chain_insert_mode: ChainInsertMode,
}

/// What each of nftables and iptables has its own parameters for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendConfig {
    /// What happens to allowed packets in the filter table.
    pub filter_allow: AllowAction,
    /// What happens to allowed packets in the mangle table.
    pub mangle_allow: AllowAction,
    /// What happens to denied packets.
    pub filter_deny: DenyAction,
    /// Bits of the packet mark that are ours: see [`Marks`](crate::Marks).
    pub mark_mask: u32,
    /// Time between checks that rules are still there, if there are any.
    pub refresh_interval: Option<Duration>,
}

/// What packets meet besides policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyConfig {
    /// What happens to packets from workloads to this host that policy allows.
    pub endpoint_to_host: EndpointToHostAction,
    /// What happens to packets for service addresses that nothing answers.
    pub service_loop_prevention: ServiceLoopPrevention,
    /// Whether annotations may let workloads send from foreign addresses.
    pub source_spoofing: SourceSpoofing,
    /// Whether packets that conntrack calls invalid get to policy.
    pub allow_conntrack_invalid: bool,
    /// Rules that log.
    pub log: PacketLogConfig,
}

/// Rules that log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketLogConfig {
    /// What their lines start with.
    pub prefix: String,
    /// How often each may log, such as `10/minute`.
    pub rate_limit: Option<String>,
    /// Lines that may come at once before that applies.
    pub rate_limit_burst: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpSetConfig {
    /// Time between checks that they are still right, if there are any.
    pub refresh_interval: Option<Duration>,
    /// Most members that one may have.
    pub max_size: u32,
}

/// Address translation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatConfig {
    /// Source ports for outgoing NAT; the kernel's choice without it.
    pub ports: Option<PortRange>,
    /// Source address for outgoing NAT; the interface's without it.
    pub outgoing_address: Option<Ipv4Addr>,
    /// Which destinations outgoing NAT leaves alone.
    pub outgoing_exclusions: NatOutgoingExclusions,
    /// Interface that outgoing NAT is for, with iptables' `+` at the end for any; all without it.
    pub outgoing_interface: Option<String>,
    /// Ports that Kubernetes uses for node ports.
    pub node_ports: Vec<PortRange>,
    /// Whether annotations may give pods floating addresses.
    pub floating_ips: bool,
}

/// Ports that stay open whatever policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailsafeConfig {
    /// Ports of this host that stay reachable.
    pub inbound: Vec<FailsafePort>,
    /// Ports that this host can reach.
    pub outbound: Vec<FailsafePort>,
}

// === impl TableConfig ===

impl TableConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            nftables_mode: values.get("NFTablesMode"),
            nftables: BackendConfig {
                filter_allow: values.get("NftablesFilterAllowAction"),
                mangle_allow: values.get("NftablesMangleAllowAction"),
                filter_deny: values.get("NftablesFilterDenyAction"),
                mark_mask: values.get("NftablesMarkMask"),
                refresh_interval: values.get("NftablesRefreshInterval"),
            },
            iptables: BackendConfig {
                filter_allow: values.get("IptablesFilterAllowAction"),
                mangle_allow: values.get("IptablesMangleAllowAction"),
                filter_deny: values.get("IptablesFilterDenyAction"),
                mark_mask: values.get("IptablesMarkMask"),
                refresh_interval: values.get("IptablesRefreshInterval"),
            },
            iptables_backend: values.get("IptablesBackend"),
            iptables_lock_probe: values.get("IptablesLockProbeIntervalMillis"),
            chain_insert_mode: values.get("ChainInsertMode"),
        }
    }

    /// What holds for the one of the two that is used.
    pub fn backend(&self, nftables: bool) -> &BackendConfig {
        if nftables {
            &self.nftables
        } else {
            &self.iptables
        }
    }
}

// === impl PolicyConfig ===

impl PolicyConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            endpoint_to_host: values.get("DefaultEndpointToHostAction"),
            service_loop_prevention: values.get("ServiceLoopPrevention"),
            source_spoofing: values.get("WorkloadSourceSpoofing"),
            allow_conntrack_invalid: values.get("DisableConntrackInvalidCheck"),
            log: PacketLogConfig {
                prefix: values.get("LogPrefix"),
                rate_limit: values.get("LogActionRateLimit"),
                rate_limit_burst: values.get("LogActionRateLimitBurst"),
            },
        }
    }
}

// === impl IpSetConfig ===

impl IpSetConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            refresh_interval: values.get("IpsetsRefreshInterval"),
            max_size: values.get("MaxIpsetSize"),
        }
    }
}

// === impl NatConfig ===

impl NatConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        let ports: Vec<PortRange> = values.get("NATPortRange");
        Self {
            // Up to port 0 there is none to choose.
            ports: ports.into_iter().find(|range| range.last > 0),
            outgoing_address: values.get("NATOutgoingAddress"),
            outgoing_exclusions: values.get("NATOutgoingExclusions"),
            outgoing_interface: values.get("IptablesNATOutgoingInterfaceFilter"),
            node_ports: values.get("KubeNodePortRanges"),
            floating_ips: values.get("FloatingIPs"),
        }
    }
}

// === impl FailsafeConfig ===

impl FailsafeConfig {
    pub(super) const PARAMETERS: [&str; 2] =
        ["FailsafeInboundHostPorts", "FailsafeOutboundHostPorts"];

    pub(super) fn from_values(values: &Values<'_>) -> Self {
        let [inbound, outbound] = Self::PARAMETERS;
        Self {
            inbound: values.get(inbound),
            outbound: values.get(outbound),
        }
    }
}

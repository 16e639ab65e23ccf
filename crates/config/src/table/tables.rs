//! Rules in the kernel: iptables, nftables, sets, actions, marks, NAT and open ports.

use crate::choice::{
    AllowAction, ChainInsertMode, DenyAction, EndpointToHostAction, FlowTableOffload,
    IptablesBackend, NatOutgoingExclusions, NftablesMode, ServiceLoopPrevention, SourceSpoofing,
};
use crate::parameter::{Kind, Parameter, TOGGLE};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "NFTablesMode",
        Kind::OneOf(NftablesMode::OPTIONS),
        "Auto",
        "whether rules are programmed with nftables; `Auto` follows kube-proxy and the kernel",
    )
    .acted_on(),
    Parameter::new(
        "NFTablesFlowTableOffload",
        Kind::OneOf(FlowTableOffload::OPTIONS),
        "Disabled",
        "which established flows skip the rules through a flow table",
    )
    .ignored("all packets pass the rules: no flow table is made"),
    Parameter::new(
        "NFTablesFlowTableDataIfacePattern",
        Kind::Regex,
        "",
        "which interfaces of the host take part in the flow table",
    )
    .ignored("no interface takes part in a flow table: none is made"),
    Parameter::new(
        "IptablesBackend",
        Kind::OneOf(IptablesBackend::OPTIONS),
        "auto",
        "which iptables to use; `auto` takes the one that the machine already uses",
    )
    .acted_on(),
    Parameter::new(
        "ChainInsertMode",
        Kind::OneOf(ChainInsertMode::OPTIONS),
        "insert",
        "whether our rules come before or after those of others in the kernel's chains",
    )
    .required()
    .fatal()
    .acted_on(),
    Parameter::new(
        "DefaultEndpointToHostAction",
        Kind::OneOf(EndpointToHostAction::OPTIONS),
        "DROP",
        "what happens to packets from workloads to this host that policy allows",
    )
    .required()
    .fatal()
    .acted_on(),
    Parameter::new(
        "IptablesFilterAllowAction",
        Kind::OneOf(AllowAction::OPTIONS),
        "ACCEPT",
        "whether allowed packets skip or still meet others' filter rules, with iptables",
    )
    .required()
    .fatal()
    .acted_on(),
    Parameter::new(
        "IptablesMangleAllowAction",
        Kind::OneOf(AllowAction::OPTIONS),
        "ACCEPT",
        "whether allowed packets skip or still meet others' mangle rules, with iptables",
    )
    .required()
    .fatal()
    .acted_on(),
    Parameter::new(
        "IptablesFilterDenyAction",
        Kind::OneOf(DenyAction::OPTIONS),
        "DROP",
        "how packets are denied with iptables",
    )
    .required()
    .fatal()
    .acted_on(),
    Parameter::new(
        "NftablesFilterAllowAction",
        Kind::OneOf(AllowAction::OPTIONS),
        "ACCEPT",
        "whether allowed packets skip or still meet others' filter rules, with nftables",
    )
    .required()
    .fatal()
    .acted_on(),
    Parameter::new(
        "NftablesMangleAllowAction",
        Kind::OneOf(AllowAction::OPTIONS),
        "ACCEPT",
        "whether allowed packets skip or still meet others' mangle rules, with nftables",
    )
    .required()
    .fatal()
    .acted_on(),
    Parameter::new(
        "NftablesFilterDenyAction",
        Kind::OneOf(DenyAction::OPTIONS),
        "DROP",
        "how packets are denied with nftables",
    )
    .required()
    .fatal()
    .acted_on(),
    Parameter::new(
        "IptablesMarkMask",
        Kind::Mask,
        "0xffff0000",
        "bits of the packet mark that are ours, with iptables",
    )
    .required()
    .fatal()
    .acted_on(),
    Parameter::new(
        "NftablesMarkMask",
        Kind::Mask,
        "0xffff0000",
        "bits of the packet mark that are ours, with nftables",
    )
    .required()
    .fatal()
    .acted_on(),
    Parameter::new(
        "IptablesRefreshInterval",
        Kind::Seconds,
        "180",
        "time between checks that iptables rules are still there; 0 for none",
    )
    .acted_on(),
    Parameter::new(
        "NftablesRefreshInterval",
        Kind::Seconds,
        "180",
        "time between checks that nftables rules are still there; 0 for none",
    )
    .acted_on(),
    Parameter::new(
        "IptablesPostWriteCheckIntervalSecs",
        Kind::Seconds,
        "5",
        "time after a write until iptables is read back; 0 for never",
    )
    .ignored("iptables is read back at the refresh interval, not after each write"),
    Parameter::new(
        "IptablesLockProbeIntervalMillis",
        Kind::Millis,
        "50",
        "time between attempts to take the iptables lock",
    )
    .acted_on(),
    Parameter::new(
        "IpsetsRefreshInterval",
        Kind::Seconds,
        "90",
        "time between checks that IP sets are still right; 0 for none",
    )
    .acted_on(),
    Parameter::new(
        "MaxIpsetSize",
        Kind::Int {
            min: 1,
            max: 4_294_967_295,
        },
        "1048576",
        "most members that an IP set may have",
    )
    .required()
    .acted_on(),
    Parameter::new(
        "LogPrefix",
        Kind::Text,
        "calico-packet",
        "what log lines of rules that log start with",
    )
    .acted_on(),
    Parameter::new(
        "LogActionRateLimit",
        Kind::LogRate,
        "",
        "how often a rule that logs may do so, such as `10/minute`",
    )
    .acted_on(),
    Parameter::new(
        "LogActionRateLimitBurst",
        Kind::Int {
            min: 0,
            max: 4_294_967_295,
        },
        "5",
        "log lines that may come at once before the rate limit applies",
    )
    .acted_on(),
    Parameter::new(
        "DisableConntrackInvalidCheck",
        Kind::Bool,
        "false",
        "whether packets that conntrack calls invalid get to policy",
    )
    .acted_on(),
    Parameter::new(
        "ServiceLoopPrevention",
        Kind::OneOf(ServiceLoopPrevention::OPTIONS),
        "Drop",
        "what happens to packets for service addresses that nothing answers",
    )
    .acted_on(),
    Parameter::new(
        "WorkloadSourceSpoofing",
        Kind::OneOf(SourceSpoofing::OPTIONS),
        "Disabled",
        "whether annotations may let workloads send from foreign addresses",
    )
    .acted_on(),
    Parameter::new(
        "FloatingIPs",
        Kind::OneOf(TOGGLE),
        "Disabled",
        "whether annotations may give pods floating addresses",
    )
    .acted_on(),
    Parameter::new(
        "FailsafeInboundHostPorts",
        Kind::FailsafePorts,
        "tcp:22,udp:68,tcp:179,tcp:2379,tcp:2380,tcp:5473,tcp:6443,tcp:6666,tcp:6667",
        "ports of this host that stay reachable whatever policy says",
    )
    .fatal()
    .acted_on(),
    Parameter::new(
        "FailsafeOutboundHostPorts",
        Kind::FailsafePorts,
        "udp:53,udp:67,tcp:179,tcp:2379,tcp:2380,tcp:5473,tcp:6443,tcp:6666,tcp:6667",
        "ports that this host can reach whatever policy says",
    )
    .fatal()
    .acted_on(),
    Parameter::new(
        "NATPortRange",
        Kind::PortRange,
        "",
        "source ports for outgoing NAT; the kernel's choice without it",
    )
    .acted_on(),
    Parameter::new(
        "NATOutgoingAddress",
        Kind::Ipv4,
        "",
        "source address for outgoing NAT; the interface's without it",
    )
    .acted_on(),
    Parameter::new(
        "NATOutgoingExclusions",
        Kind::OneOf(NatOutgoingExclusions::OPTIONS),
        "IPPoolsOnly",
        "which destinations outgoing NAT leaves alone",
    )
    .acted_on(),
    Parameter::new(
        "IptablesNATOutgoingInterfaceFilter",
        Kind::InterfaceName,
        "",
        "interfaces that outgoing NAT is for; all without it",
    )
    .acted_on(),
    Parameter::new(
        "KubeNodePortRanges",
        Kind::PortRanges,
        "30000:32767",
        "ports that Kubernetes uses for node ports",
    )
    .acted_on(),
    Parameter::new(
        "MetadataAddr",
        Kind::HostName,
        "127.0.0.1",
        "where OpenStack's metadata server is; `none` for no way to it",
    )
    .fatal()
    .acted_on(),
    Parameter::new(
        "MetadataPort",
        Kind::Int {
            min: 0,
            max: 65_535,
        },
        "8775",
        "port of OpenStack's metadata server",
    )
    .fatal()
    .acted_on(),
    Parameter::new(
        "OpenstackRegion",
        Kind::Region,
        "",
        "OpenStack region that this node belongs to",
    )
    .fatal()
    .ignored("endpoints are looked for without a region"),
    Parameter::new(
        "SidecarAccelerationEnabled",
        Kind::Bool,
        "false",
        "whether connections to sidecars skip the network stack",
    )
    .ignored("connections to sidecars pass the whole network stack"),
    Parameter::new(
        "XDPEnabled",
        Kind::Bool,
        "true",
        "whether denied packets are dropped by XDP, with iptables",
    )
    .ignored("XDP drops nothing: nftables or iptables denies"),
    Parameter::new(
        "GenericXDPEnabled",
        Kind::Bool,
        "false",
        "whether XDP may run without support of the network card",
    )
    .ignored("XDP drops nothing, with or without support of the network card: nftables or iptables denies"),
    Parameter::new(
        "XDPRefreshInterval",
        Kind::Seconds,
        "90",
        "time between checks that XDP state is still right",
    )
    .ignored("XDP state is not checked: there is none"),
    Parameter::new(
        "WindowsManageFirewallRules",
        Kind::OneOf(TOGGLE),
        "Disabled",
        "whether to program the Windows firewall",
    )
    .ignored("no Windows firewall is programmed"),
];

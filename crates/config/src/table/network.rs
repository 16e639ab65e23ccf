//! Interfaces, routes and what else is not a rule.

use crate::choice::{LocalSubnetL2Reachability, ProgramClusterRoutes, RouteSource};
use crate::parameter::{Kind, Parameter, TOGGLE};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "InterfacePrefix",
        Kind::InterfacePrefixes,
        "cali",
        "what names of workload interfaces start with",
    )
    .required()
    .fatal()
    .acted_on(),
    Parameter::new(
        "InterfaceExclude",
        Kind::InterfacePatterns,
        "kube-ipvs0",
        "interfaces that count as absent, as names or `/patterns/`",
    )
    .acted_on(),
    Parameter::new(
        "InterfaceRefreshInterval",
        Kind::Seconds,
        "90",
        "time between checks of all interfaces; 0 for none",
    )
    .acted_on(),
    Parameter::new(
        "MTUIfacePattern",
        Kind::Regex,
        "^((en|wl|ww|sl|ib)[Pcopsvx].*|(eth|wlan|wwan).*)",
        "interfaces of the host whose MTU limits that of workloads",
    )
    .acted_on(),
    Parameter::new(
        "RequireMTUFile",
        Kind::Bool,
        "false",
        "whether to wait until the file with the MTU is written",
    )
    .ignored("nothing waits for the file with the MTU: the agent writes it itself"),
    Parameter::new("Ipv6Support", Kind::Bool, "true", "whether to program IPv6").acted_on(),
    Parameter::new(
        "IPForwarding",
        Kind::OneOf(TOGGLE),
        "Enabled",
        "whether to switch on forwarding in the kernel",
    )
    .acted_on(),
    Parameter::new(
        "RouteRefreshInterval",
        Kind::Seconds,
        "90",
        "time between checks that routes are still right; 0 for none",
    )
    .acted_on(),
    Parameter::new(
        "DeviceRouteSourceAddress",
        Kind::Ipv4,
        "",
        "source address of this host on routes to workloads",
    )
    .acted_on(),
    Parameter::new(
        "DeviceRouteSourceAddressIPv6",
        Kind::Ipv6,
        "",
        "source address of this host on IPv6 routes to workloads",
    )
    .acted_on(),
    Parameter::new(
        "DeviceRouteProtocol",
        Kind::Int { min: 0, max: 255 },
        "3",
        "protocol number that marks our routes in the kernel",
    )
    .acted_on(),
    Parameter::new(
        "RemoveExternalRoutes",
        Kind::Bool,
        "true",
        "whether others' routes to workload interfaces are removed",
    )
    .acted_on(),
    Parameter::new(
        "ProgramClusterRoutes",
        Kind::OneOf(ProgramClusterRoutes::OPTIONS),
        "EnabledIPIPOnly",
        "routes to other nodes that the agent programs, rather than BGP",
    )
    .acted_on(),
    Parameter::new(
        "RouteSource",
        Kind::OneOf(RouteSource::OPTIONS),
        "CalicoIPAM",
        "what routes to other nodes are made from",
    )
    .acted_on(),
    Parameter::new(
        "RouteTableRange",
        Kind::RouteTableRange,
        "",
        "numbers of routing tables that are ours; older form of `RouteTableRanges`",
    )
    .fatal()
    .ignored("no routing tables are taken from this range: routes are in the main one"),
    Parameter::new(
        "RouteTableRanges",
        Kind::RouteTableRanges,
        "",
        "numbers of routing tables that are ours; 1-250 without it",
    )
    .fatal()
    .ignored("no routing tables are taken from these ranges: routes are in the main one"),
    Parameter::new(
        "RouteSyncDisabled",
        Kind::Bool,
        "false",
        "whether to leave all routes alone",
    )
    .acted_on(),
    Parameter::new(
        "IPv4NormalRoutePriority",
        Kind::Int {
            min: 1,
            max: 2_147_483_646,
        },
        "1024",
        "metric of IPv4 routes to workloads",
    )
    .acted_on(),
    Parameter::new(
        "IPv4ElevatedRoutePriority",
        Kind::Int {
            min: 1,
            max: 2_147_483_646,
        },
        "512",
        "metric of IPv4 routes to workloads that have just moved here",
    )
    .ignored("IPv4 routes to workloads that have just moved here have the usual metric"),
    Parameter::new(
        "IPv6NormalRoutePriority",
        Kind::Int {
            min: 1,
            max: 2_147_483_646,
        },
        "1024",
        "metric of IPv6 routes to workloads",
    )
    .acted_on(),
    Parameter::new(
        "IPv6ElevatedRoutePriority",
        Kind::Int {
            min: 1,
            max: 2_147_483_646,
        },
        "512",
        "metric of IPv6 routes to workloads that have just moved here",
    )
    .ignored("IPv6 routes to workloads that have just moved here have the usual metric"),
    Parameter::new(
        "LiveMigrationRouteConvergenceTime",
        Kind::Seconds,
        "30",
        "time that a workload that has moved keeps the elevated metric",
    )
    .ignored("no route to a workload that has moved is preferred for a while"),
    Parameter::new(
        "NetlinkTimeoutSecs",
        Kind::Seconds,
        "10",
        "time that the kernel may take to answer over netlink",
    )
    .ignored("no such limit is set on the kernel's answers"),
    Parameter::new(
        "LocalSubnetL2Reachability",
        Kind::OneOf(LocalSubnetL2Reachability::OPTIONS),
        "Disabled",
        "for which addresses in the host's own subnet to answer ARP and NDP",
    )
    .ignored("ARP and NDP are not answered for addresses in the host's own subnet"),
    Parameter::new(
        "LocalSubnetL2ReachabilityRefreshInterval",
        Kind::Seconds,
        "120",
        "time between announcements of those addresses; 0 for none",
    )
    .ignored("addresses in the host's own subnet are not announced"),
    Parameter::new(
        "ExternalNodesCIDRList",
        Kind::Cidrs,
        "",
        "nodes outside the cluster that may send tunnelled packets",
    )
    .fatal()
    .ignored("tunnelled packets of these nodes are dropped"),
    Parameter::new(
        "UseInternalDataplaneDriver",
        Kind::Bool,
        "true",
        "whether the agent programs the kernel itself",
    )
    .ignored("the agent programs the kernel itself, always"),
    Parameter::new(
        "DataplaneDriver",
        Kind::Path,
        "calico-iptables-plugin",
        "program that programs the kernel, if the agent does not",
    )
    .required()
    .fatal()
    .ignored("this program is not started: the agent programs the kernel itself"),
    Parameter::new(
        "DataplaneWatchdogTimeout",
        Kind::Seconds,
        "90",
        "time after which a silent data plane counts as hung",
    )
    .ignored("a hung agent is told by /liveness after 90 seconds, whatever is set"),
    Parameter::new(
        "PolicySyncPathPrefix",
        Kind::Path,
        "",
        "folder for sockets that serve policy to workloads; none without it",
    )
    .ignored("no sockets are made there: policy on HTTP is not enforced by proxies"),
    Parameter::new(
        "CgroupV2Path",
        Kind::Text,
        "",
        "where the start-up container mounts cgroup v2",
    )
    .ignored("no cgroup is mounted there"),
    Parameter::new(
        "AWSSrcDstCheck",
        Kind::OneOf(&["DoNothing", "Enable", "Disable"]),
        "DoNothing",
        "what to do about the check of addresses by EC2",
    )
    .required()
    .ignored("the check of addresses by EC2 stays as it is"),
    Parameter::new(
        "IstioAmbientMode",
        Kind::OneOf(TOGGLE),
        "Disabled",
        "whether to leave traffic of Istio's ambient mesh to it",
    )
    .ignored("traffic of Istio's ambient mesh is treated like any other"),
    Parameter::new(
        "IstioDSCPMark",
        Kind::Dscp,
        "23",
        "DSCP that Istio's ambient mesh marks its packets with",
    )
    .ignored("packets of Istio's ambient mesh are not recognised by this mark"),
    Parameter::new(
        "FlowLogsFlushInterval",
        Kind::Seconds,
        "300",
        "time between reports about flows",
    )
    .ignored("no flows are reported"),
    Parameter::new(
        "FlowLogsCollectorDebugTrace",
        Kind::Bool,
        "false",
        "whether to log every step of collecting flows",
    )
    .ignored("no flows are collected, and nothing is logged about it"),
    Parameter::new(
        "FlowLogsGoldmaneServer",
        Kind::Text,
        "",
        "server that flows are reported to; none without it",
    )
    .ignored("no flows are sent to this server"),
    Parameter::new(
        "FlowLogsLocalReporter",
        Kind::OneOf(TOGGLE),
        "Disabled",
        "whether flows are reported to a socket on this node",
    )
    .ignored("no flows are reported to a socket on this node"),
    Parameter::new(
        "FlowLogsPolicyEvaluationMode",
        Kind::OneOf(&["None", "Continuous"]),
        "Continuous",
        "whether pending policies of a flow are kept up to date",
    )
    .ignored("no flows are reported, with or without pending policies"),
];

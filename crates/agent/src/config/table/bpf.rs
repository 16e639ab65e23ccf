//! The eBPF data plane.

use crate::config::parameter::{Kind, Parameter, TOGGLE};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "BPFEnabled",
        Kind::Bool,
        "false",
        "whether to use the eBPF data plane",
    ),
    Parameter::new(
        "BPFOverlayHostSourceIP",
        Kind::OneOf(&["TunnelAddress", "HostAddress"]),
        "TunnelAddress",
        "source address of this host's packets into a tunnel",
    )
    .required(),
    Parameter::new(
        "BPFDisableUnprivileged",
        Kind::Bool,
        "true",
        "whether to forbid eBPF to users without privileges",
    ),
    Parameter::new(
        "BPFJITHardening",
        Kind::OneOf(&["Auto", "Strict"]),
        "Auto",
        "how the kernel hardens compiled eBPF programs",
    )
    .required(),
    Parameter::new(
        "BPFLogLevel",
        Kind::OneOf(&["off", "info", "debug"]),
        "off",
        "how much eBPF programs log",
    )
    .required(),
    Parameter::new(
        "BPFConntrackLogLevel",
        Kind::OneOf(&["off", "debug"]),
        "off",
        "how much the cleaning of connections logs",
    )
    .required(),
    Parameter::new(
        "BPFConntrackCleanupMode",
        Kind::OneOf(&["Auto", "Userspace", "BPFProgram"]),
        "Auto",
        "who removes connections that have ended",
    ),
    Parameter::new(
        "BPFConntrackTimeouts",
        Kind::Pairs,
        "CreationGracePeriod=10s,TCPSynSent=20s,TCPEstablished=1h,TCPFinsSeen=Auto,TCPResetSeen=40s,UDPTimeout=60s,GenericTimeout=10m,ICMPTimeout=5s",
        "time that connections are kept, by their state",
    ),
    Parameter::new(
        "BPFIPFragTimeout",
        Kind::Seconds,
        "0",
        "time that fragments of a packet are waited for",
    ),
    Parameter::new(
        "BPFLogFilters",
        Kind::Pairs,
        "",
        "which packets are logged, by interface",
    ),
    Parameter::new(
        "BPFCTLBLogFilter",
        Kind::OneOf(&["all"]),
        "",
        "which connections connect-time load balancing logs",
    ),
    Parameter::new(
        "BPFDataIfacePattern",
        Kind::Regex,
        "^((en|wl|ww|sl|ib)[Popsx].*|(eth|wlan|wwan|bond).*)",
        "interfaces of the host that programs are attached to",
    ),
    Parameter::new(
        "BPFL3IfacePattern",
        Kind::Regex,
        "",
        "interfaces of the host that have no Ethernet header",
    ),
    Parameter::new(
        "BPFConnectTimeLoadBalancingEnabled",
        Kind::Bool,
        "",
        "older form of `BPFConnectTimeLoadBalancing`",
    ),
    Parameter::new(
        "BPFConnectTimeLoadBalancing",
        Kind::OneOf(&["TCP", "Enabled", "Disabled"]),
        "TCP",
        "for which protocols services are resolved when connecting",
    )
    .required(),
    Parameter::new(
        "BPFHostNetworkedNATWithoutCTLB",
        Kind::OneOf(TOGGLE),
        "Enabled",
        "whether services are resolved for host processes without that",
    )
    .required(),
    Parameter::new(
        "BPFExternalServiceMode",
        Kind::OneOf(&["tunnel", "dsr"]),
        "tunnel",
        "whether answers to clients outside go back through the first node",
    )
    .required(),
    Parameter::new(
        "BPFDSROptoutCIDRs",
        Kind::Cidrs,
        "",
        "clients whose answers do go back through the first node",
    ),
    Parameter::new(
        "BPFKubeProxyIptablesCleanupEnabled",
        Kind::Bool,
        "true",
        "whether to remove kube-proxy's rules",
    ),
    Parameter::new(
        "BPFKubeProxyMinSyncPeriod",
        Kind::Seconds,
        "1",
        "least time between updates of services",
    ),
    Parameter::new(
        "BPFKubeProxyHealthzPort",
        Kind::ANY_INT,
        "10256",
        "port of the health server that stands in for kube-proxy's",
    ),
    Parameter::new(
        "BPFExtToServiceConnmark",
        Kind::ANY_INT,
        "0",
        "connection mark on connections from outside to services",
    ),
    Parameter::new(
        "BPFPSNATPorts",
        Kind::PortRange,
        "20000:29999",
        "source ports that are chosen on a collision",
    ),
    Parameter::new(
        "BPFMapSizeNATFrontend",
        Kind::ANY_INT,
        "65536",
        "most service addresses and ports",
    )
    .required(),
    Parameter::new(
        "BPFMapSizeNATBackend",
        Kind::ANY_INT,
        "262144",
        "most endpoints of services",
    )
    .required(),
    Parameter::new(
        "BPFMapSizeNATAffinity",
        Kind::ANY_INT,
        "65536",
        "most clients that services remember",
    )
    .required(),
    Parameter::new("BPFMapSizeRoute", Kind::ANY_INT, "262144", "most routes").required(),
    Parameter::new(
        "BPFMapSizeConntrack",
        Kind::ANY_INT,
        "512000",
        "most connections",
    )
    .required(),
    Parameter::new(
        "BPFMapSizePerCPUConntrack",
        Kind::ANY_INT,
        "0",
        "most connections for each processor, instead",
    ),
    Parameter::new(
        "BPFMapSizeConntrackScaling",
        Kind::OneOf(&["Disabled", "DoubleIfFull"]),
        "DoubleIfFull",
        "whether the table of connections grows when full",
    )
    .required(),
    Parameter::new(
        "BPFMapSizeConntrackCleanupQueue",
        Kind::ANY_INT,
        "100000",
        "most connections that wait to be removed",
    )
    .required(),
    Parameter::new(
        "BPFMapSizeIPSets",
        Kind::ANY_INT,
        "1048576",
        "most members of all IP sets",
    )
    .required(),
    Parameter::new(
        "BPFMapSizeIfState",
        Kind::ANY_INT,
        "1000",
        "most interfaces",
    )
    .required(),
    Parameter::new(
        "BPFHostConntrackBypass",
        Kind::Bool,
        "false",
        "whether the kernel need not track connections of workloads",
    ),
    Parameter::new(
        "BPFIPFragmentReassemblyEnabled",
        Kind::Bool,
        "true",
        "whether fragments are put together",
    ),
    Parameter::new(
        "BPFEnforceRPF",
        Kind::OneOf(&["Disabled", "Strict", "Loose"]),
        "Loose",
        "how strictly the way back to a source is checked",
    )
    .required(),
    Parameter::new(
        "BPFPolicyDebugEnabled",
        Kind::Bool,
        "true",
        "whether policy programs can be shown with their rules",
    ),
    Parameter::new(
        "BPFForceTrackPacketsFromIfaces",
        Kind::InterfaceFilters,
        "docker+",
        "interfaces whose packets the kernel must track, too",
    ),
    Parameter::new(
        "BPFDisableGROForIfaces",
        Kind::Regex,
        "",
        "interfaces on which receive offload is switched off",
    ),
    Parameter::new(
        "BPFExcludeCIDRsFromNAT",
        Kind::Cidrs,
        "",
        "service addresses that are left to others",
    ),
    Parameter::new(
        "BPFRedirectToPeer",
        Kind::OneOf(&["Disabled", "Enabled", "L2Only"]),
        "Enabled",
        "whether packets go to workloads past their host interface",
    )
    .required(),
    Parameter::new(
        "BPFAttachType",
        Kind::OneOf(&["Netkit", "TCX", "TC"]),
        "Netkit",
        "how programs are attached to interfaces",
    )
    .required(),
    Parameter::new(
        "BPFExportBufferSizeMB",
        Kind::ANY_INT,
        "1",
        "size of the buffer for events",
    )
    .required(),
    Parameter::new(
        "BPFProfiling",
        Kind::OneOf(TOGGLE),
        "Disabled",
        "whether to measure the time that programs take",
    )
    .required(),
    Parameter::new(
        "BPFMaglevMaxEndpointsPerService",
        Kind::Int { min: 1, max: 3000 },
        "100",
        "most endpoints of a service with Maglev",
    ),
    Parameter::new(
        "BPFMaglevMaxServices",
        Kind::Int { min: 1, max: 3000 },
        "100",
        "most services with Maglev",
    ),
];

//! The eBPF data plane.

use crate::parameter::{Kind, Parameter, TOGGLE};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "BPFEnabled",
        Kind::Bool,
        "false",
        "whether to use the eBPF data plane",
    )
    .ignored("BPF programs are not loaded: nftables or iptables enforces"),
    Parameter::new(
        "BPFOverlayHostSourceIP",
        Kind::OneOf(&["TunnelAddress", "HostAddress"]),
        "TunnelAddress",
        "source address of this host's packets into a tunnel",
    )
    .required()
    .ignored("BPF programs are not loaded: the kernel chooses the source address of this host's packets into a tunnel"),
    Parameter::new(
        "BPFDisableUnprivileged",
        Kind::Bool,
        "true",
        "whether to forbid eBPF to users without privileges",
    )
    .ignored("users without privileges may use eBPF as far as the machine lets them"),
    Parameter::new(
        "BPFJITHardening",
        Kind::OneOf(&["Auto", "Strict"]),
        "Auto",
        "how the kernel hardens compiled eBPF programs",
    )
    .required()
    .ignored("hardening of compiled eBPF programs stays as the machine has it"),
    Parameter::new(
        "BPFLogLevel",
        Kind::OneOf(&["off", "info", "debug"]),
        "off",
        "how much eBPF programs log",
    )
    .required()
    .ignored("BPF programs are not loaded: none of them logs"),
    Parameter::new(
        "BPFConntrackLogLevel",
        Kind::OneOf(&["off", "debug"]),
        "off",
        "how much the cleaning of connections logs",
    )
    .required()
    .ignored("BPF programs are not loaded: no cleaning of connections logs"),
    Parameter::new(
        "BPFConntrackCleanupMode",
        Kind::OneOf(&["Auto", "Userspace", "BPFProgram"]),
        "Auto",
        "who removes connections that have ended",
    )
    .ignored("BPF programs are not loaded: the kernel's own conntrack removes connections"),
    Parameter::new(
        "BPFConntrackTimeouts",
        Kind::Pairs,
        "CreationGracePeriod=10s,TCPSynSent=20s,TCPEstablished=1h,TCPFinsSeen=Auto,TCPResetSeen=40s,UDPTimeout=60s,GenericTimeout=10m,ICMPTimeout=5s",
        "time that connections are kept, by their state",
    )
    .ignored("BPF programs are not loaded: connections are kept as long as the kernel's own conntrack says"),
    Parameter::new(
        "BPFIPFragTimeout",
        Kind::Seconds,
        "0",
        "time that fragments of a packet are waited for",
    )
    .ignored("BPF programs are not loaded: the kernel puts fragments together as it is set to"),
    Parameter::new(
        "BPFLogFilters",
        Kind::Pairs,
        "",
        "which packets are logged, by interface",
    )
    .ignored("BPF programs are not loaded: no packets are logged by them"),
    Parameter::new(
        "BPFCTLBLogFilter",
        Kind::OneOf(&["all"]),
        "",
        "which connections connect-time load balancing logs",
    )
    .ignored("BPF programs are not loaded: no connections are logged by them"),
    Parameter::new(
        "BPFDataIfacePattern",
        Kind::Regex,
        "^((en|wl|ww|sl|ib)[Popsx].*|(eth|wlan|wwan|bond).*)",
        "interfaces of the host that programs are attached to",
    )
    .ignored("BPF programs are not loaded: none is attached to these interfaces"),
    Parameter::new(
        "BPFL3IfacePattern",
        Kind::Regex,
        "",
        "interfaces of the host that have no Ethernet header",
    )
    .ignored("BPF programs are not loaded: none is attached to these interfaces"),
    Parameter::new(
        "BPFConnectTimeLoadBalancingEnabled",
        Kind::Bool,
        "",
        "older form of `BPFConnectTimeLoadBalancing`",
    )
    .ignored("BPF programs are not loaded: kube-proxy resolves services, not connect()"),
    Parameter::new(
        "BPFConnectTimeLoadBalancing",
        Kind::OneOf(&["TCP", "Enabled", "Disabled"]),
        "TCP",
        "for which protocols services are resolved when connecting",
    )
    .required()
    .ignored("BPF programs are not loaded: kube-proxy resolves services, not connect()"),
    Parameter::new(
        "BPFHostNetworkedNATWithoutCTLB",
        Kind::OneOf(TOGGLE),
        "Enabled",
        "whether services are resolved for host processes without that",
    )
    .required()
    .ignored("BPF programs are not loaded: kube-proxy resolves services for host processes"),
    Parameter::new(
        "BPFExternalServiceMode",
        Kind::OneOf(&["tunnel", "dsr"]),
        "tunnel",
        "whether answers to clients outside go back through the first node",
    )
    .required()
    .ignored("BPF programs are not loaded: answers to clients outside go back as kube-proxy has them go"),
    Parameter::new(
        "BPFDSROptoutCIDRs",
        Kind::Cidrs,
        "",
        "clients whose answers do go back through the first node",
    )
    .ignored("BPF programs are not loaded: answers to these clients go back as kube-proxy has them go"),
    Parameter::new(
        "BPFKubeProxyIptablesCleanupEnabled",
        Kind::Bool,
        "true",
        "whether to remove kube-proxy's rules",
    )
    .ignored("kube-proxy's rules stay"),
    Parameter::new(
        "BPFKubeProxyMinSyncPeriod",
        Kind::Seconds,
        "1",
        "least time between updates of services",
    )
    .ignored("services are updated by kube-proxy, at its own pace"),
    Parameter::new(
        "BPFKubeProxyHealthzPort",
        Kind::ANY_INT,
        "10256",
        "port of the health server that stands in for kube-proxy's",
    )
    .ignored("no health server stands in for kube-proxy's"),
    Parameter::new(
        "BPFExtToServiceConnmark",
        Kind::ANY_INT,
        "0",
        "connection mark on connections from outside to services",
    )
    .ignored("BPF programs are not loaded: connections from outside to services get no such mark"),
    Parameter::new(
        "BPFPSNATPorts",
        Kind::PortRange,
        "20000:29999",
        "source ports that are chosen on a collision",
    )
    .ignored("BPF programs are not loaded: the kernel chooses source ports on a collision"),
    Parameter::new(
        "BPFMapSizeNATFrontend",
        Kind::ANY_INT,
        "65536",
        "most service addresses and ports",
    )
    .required()
    .ignored("BPF programs are not loaded: there is no map of service addresses"),
    Parameter::new(
        "BPFMapSizeNATBackend",
        Kind::ANY_INT,
        "262144",
        "most endpoints of services",
    )
    .required()
    .ignored("BPF programs are not loaded: there is no map of endpoints of services"),
    Parameter::new(
        "BPFMapSizeNATAffinity",
        Kind::ANY_INT,
        "65536",
        "most clients that services remember",
    )
    .required()
    .ignored("BPF programs are not loaded: there is no map of clients that services remember"),
    Parameter::new("BPFMapSizeRoute", Kind::ANY_INT, "262144", "most routes").required()
    .ignored("BPF programs are not loaded: there is no map of routes"),
    Parameter::new(
        "BPFMapSizeConntrack",
        Kind::ANY_INT,
        "512000",
        "most connections",
    )
    .required()
    .ignored("BPF programs are not loaded: the kernel's own conntrack has its own limit"),
    Parameter::new(
        "BPFMapSizePerCPUConntrack",
        Kind::ANY_INT,
        "0",
        "most connections for each processor, instead",
    )
    .ignored("BPF programs are not loaded: the kernel's own conntrack has its own limit"),
    Parameter::new(
        "BPFMapSizeConntrackScaling",
        Kind::OneOf(&["Disabled", "DoubleIfFull"]),
        "DoubleIfFull",
        "whether the table of connections grows when full",
    )
    .required()
    .ignored("BPF programs are not loaded: the kernel's own conntrack does not grow when full"),
    Parameter::new(
        "BPFMapSizeConntrackCleanupQueue",
        Kind::ANY_INT,
        "100000",
        "most connections that wait to be removed",
    )
    .required()
    .ignored("BPF programs are not loaded: no connections wait in a map to be removed"),
    Parameter::new(
        "BPFMapSizeIPSets",
        Kind::ANY_INT,
        "1048576",
        "most members of all IP sets",
    )
    .required()
    .ignored("BPF programs are not loaded: IP sets are bounded by maxIpsetSize"),
    Parameter::new(
        "BPFMapSizeIfState",
        Kind::ANY_INT,
        "1000",
        "most interfaces",
    )
    .required()
    .ignored("BPF programs are not loaded: there is no map of interfaces"),
    Parameter::new(
        "BPFHostConntrackBypass",
        Kind::Bool,
        "false",
        "whether the kernel need not track connections of workloads",
    )
    .ignored("the kernel tracks connections of workloads"),
    Parameter::new(
        "BPFIPFragmentReassemblyEnabled",
        Kind::Bool,
        "true",
        "whether fragments are put together",
    )
    .ignored("BPF programs are not loaded: the kernel puts fragments together as it is set to"),
    Parameter::new(
        "BPFEnforceRPF",
        Kind::OneOf(&["Disabled", "Strict", "Loose"]),
        "Loose",
        "how strictly the way back to a source is checked",
    )
    .required()
    .ignored("BPF programs are not loaded: the way back to a source is checked by rules, as strictly as ever"),
    Parameter::new(
        "BPFPolicyDebugEnabled",
        Kind::Bool,
        "true",
        "whether policy programs can be shown with their rules",
    )
    .ignored("BPF programs are not loaded: there are no policy programs to show; see `tortie render`"),
    Parameter::new(
        "BPFForceTrackPacketsFromIfaces",
        Kind::InterfaceFilters,
        "docker+",
        "interfaces whose packets the kernel must track, too",
    )
    .ignored("the kernel tracks packets of all interfaces"),
    Parameter::new(
        "BPFDisableGROForIfaces",
        Kind::Regex,
        "",
        "interfaces on which receive offload is switched off",
    )
    .ignored("receive offload stays as it is on these interfaces"),
    Parameter::new(
        "BPFExcludeCIDRsFromNAT",
        Kind::Cidrs,
        "",
        "service addresses that are left to others",
    )
    .ignored("BPF programs are not loaded: kube-proxy resolves these service addresses like all others"),
    Parameter::new(
        "BPFRedirectToPeer",
        Kind::OneOf(&["Disabled", "Enabled", "L2Only"]),
        "Enabled",
        "whether packets go to workloads past their host interface",
    )
    .required()
    .ignored("BPF programs are not loaded: packets go to workloads through their host interface"),
    Parameter::new(
        "BPFAttachType",
        Kind::OneOf(&["Netkit", "TCX", "TC"]),
        "Netkit",
        "how programs are attached to interfaces",
    )
    .required()
    .ignored("BPF programs are not loaded: none is attached, in any way"),
    Parameter::new(
        "BPFExportBufferSizeMB",
        Kind::ANY_INT,
        "1",
        "size of the buffer for events",
    )
    .required()
    .ignored("BPF programs are not loaded: there is no buffer for their events"),
    Parameter::new(
        "BPFProfiling",
        Kind::OneOf(TOGGLE),
        "Disabled",
        "whether to measure the time that programs take",
    )
    .required()
    .ignored("BPF programs are not loaded: no time of theirs is measured"),
    Parameter::new(
        "BPFMaglevMaxEndpointsPerService",
        Kind::Int { min: 1, max: 3000 },
        "100",
        "most endpoints of a service with Maglev",
    )
    .ignored("BPF programs are not loaded: no service uses Maglev"),
    Parameter::new(
        "BPFMaglevMaxServices",
        Kind::Int { min: 1, max: 3000 },
        "100",
        "most services with Maglev",
    )
    .ignored("BPF programs are not loaded: no service uses Maglev"),
];

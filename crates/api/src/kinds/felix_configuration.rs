//! `FelixConfiguration`: settings of the per-node agent, for the cluster or for some nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::scalar::{Dscp, GoDuration, Port};

/// Felix settings; named `default`, `node.<name>`, or anything else with a node selector.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct FelixConfigurationSpec {
    /// Nodes these settings apply to; only on objects not named `default` or `node.<name>`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 1024))]
    pub node_selector: Option<String>,
    /// Whether Felix programs the kernel itself instead of starting a driver. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub use_internal_dataplane_driver: Option<bool>,
    /// External driver program, used when the internal one is off. Default
    /// `calico-iptables-plugin`.
    #[serde(skip_serializing_if = "is_default")]
    pub dataplane_driver: String,
    /// Time after which a stuck dataplane counts as unhealthy; superseded by
    /// `healthTimeoutOverrides`. Default 90s.
    #[serde(skip_serializing_if = "is_default")]
    pub dataplane_watchdog_timeout: Option<GoDuration>,
    /// Whether Felix handles IPv6 traffic at all. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub ipv6_support: Option<bool>,
    /// How often kernel routes are checked and repaired; 0 turns the check off. Default 90s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub route_refresh_interval: Option<GoDuration>,
    /// How often interfaces are listed again to catch missed events; 0 turns it off. Default 90s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub interface_refresh_interval: Option<GoDuration>,
    /// How often all iptables chains are checked and repaired; 0 turns it off. Default 3m.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub iptables_refresh_interval: Option<GoDuration>,
    /// Delay after a write until Felix checks that no other program undid it. Default 5s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub iptables_post_write_check_interval: Option<GoDuration>,
    /// Wait between attempts to take the iptables lock. Default 50ms.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub iptables_lock_probe_interval: Option<GoDuration>,
    /// Forces detected kernel features on or off, as `Name=true,Other=false`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^([a-zA-Z0-9-_]+=(true|false|),)*([a-zA-Z0-9-_]+=(true|false|))?$", "x-check" = "keyValueList"))]
    pub feature_detect_override: String,
    /// Turns unfinished features on or off, as `Name=value` pairs separated by commas.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^([a-zA-Z0-9-_]+=([^=]+),)*([a-zA-Z0-9-_]+=([^=]+))?$", "x-check" = "keyValueList"))]
    pub feature_gates: String,
    /// How often IP sets are checked and repaired; 0 turns the check off. Default 90s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub ipsets_refresh_interval: Option<GoDuration>,
    /// Most members one IP set can hold; nftables ignores it. Default 1048576.
    #[serde(skip_serializing_if = "is_default")]
    pub max_ipset_size: Option<i64>,
    /// Which iptables variant Felix writes to. Default `Auto`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Auto|Legacy|NFT)?$"))]
    pub iptables_backend: Option<IptablesBackend>,
    /// How often XDP programs and maps are checked and repaired; 0 turns it off. Default 90s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub xdp_refresh_interval: Option<GoDuration>,
    /// How long Felix waits for the kernel to answer a netlink request. Default 10s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub netlink_timeout: Option<GoDuration>,
    /// Host of the `OpenStack` metadata server; `none` sets up no NAT for it. Default `127.0.0.1`.
    #[serde(skip_serializing_if = "is_default")]
    pub metadata_addr: String,
    /// Port of the `OpenStack` metadata server. Default 8775.
    #[serde(skip_serializing_if = "is_default")]
    pub metadata_port: Option<i64>,
    /// `OpenStack` region this node belongs to, in clouds with more than one.
    #[serde(skip_serializing_if = "is_default")]
    pub openstack_region: String,
    /// Comma-separated name prefixes by which workload interfaces are recognised. Default `cali`.
    #[serde(skip_serializing_if = "is_default")]
    pub interface_prefix: String,
    /// Interfaces never treated as host endpoints: names or `/regex/`, comma-separated. Default
    /// `kube-ipvs0`.
    #[serde(skip_serializing_if = "is_default")]
    pub interface_exclude: String,
    /// Whether Felix hooks go to the top (`Insert`) or end (`Append`) of chains. Default `Insert`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Insert|Append)?$"))]
    pub chain_insert_mode: String,
    /// Fate of traffic from workloads to their own host after policy allowed it. Default `Drop`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Drop|Accept|Return)?$"))]
    pub default_endpoint_to_host_action: String,
    /// Fate of allowed packets: final `Accept`, or `Return` to other rules. Default `Accept`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Accept|Return)?$"))]
    pub iptables_filter_allow_action: String,
    /// As `iptablesFilterAllowAction`, for packets allowed by pre-DNAT policy. Default `Accept`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Accept|Return)?$"))]
    pub iptables_mangle_allow_action: String,
    /// Whether denied packets vanish (`Drop`) or get an error (`Reject`). Default `Drop`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Drop|Reject)?$"))]
    pub iptables_filter_deny_action: String,
    /// Text before packets logged by `Log` rules; `%t`, `%k`, `%n`, `%p` are filled in. Default
    /// `calico-packet`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^([a-zA-Z0-9%: /_-])*$"))]
    pub log_prefix: String,
    /// Limit on packets logged by `Log` rules, such as `10/second`; no limit when unset.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^[1-9]\d{0,3}/(?:second|minute|hour|day)$"))]
    pub log_action_rate_limit: Option<String>,
    /// Log lines allowed at once before the rate limit takes hold. Default 5.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 9999))]
    pub log_action_rate_limit_burst: Option<i64>,
    /// Log file of the agent; `none` turns it off. Default `/var/log/calico/felix.log`.
    #[serde(skip_serializing_if = "is_default")]
    pub log_file_path: String,
    /// Lowest severity written to the log file. Default `Info`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Trace|Debug|Info|Warning|Error|Fatal)?$"))]
    pub log_severity_file: String,
    /// Lowest severity written to the standard output. Default `Info`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Trace|Debug|Info|Warning|Error|Fatal)?$"))]
    pub log_severity_screen: String,
    /// Lowest severity sent to syslog. Default `Info`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Trace|Debug|Info|Warning|Error|Fatal)?$"))]
    pub log_severity_sys: String,
    /// Keeps debug lines only from source files whose name matches this expression.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "regexp"))]
    pub log_debug_filename_regex: String,
    /// Forces IPIP tunnelling on or off; follows the IP pools when unset.
    #[serde(skip_serializing_if = "is_default")]
    pub ipip_enabled: Option<bool>,
    /// MTU of the IPIP device; 0 derives it from the host's MTU. Default 0.
    #[serde(rename = "ipipMTU", skip_serializing_if = "is_default")]
    pub ipip_mtu: Option<i64>,
    /// Forces VXLAN tunnelling on or off; follows the IP pools when unset.
    #[serde(skip_serializing_if = "is_default")]
    pub vxlan_enabled: Option<bool>,
    /// MTU of the IPv4 VXLAN device; 0 derives it from the host's MTU. Default 0.
    #[serde(rename = "vxlanMTU", skip_serializing_if = "is_default")]
    pub vxlan_mtu: Option<i64>,
    /// MTU of the IPv6 VXLAN device; 0 derives it from the host's MTU. Default 0.
    #[serde(rename = "vxlanMTUV6", skip_serializing_if = "is_default")]
    pub vxlan_mtu_v6: Option<i64>,
    /// UDP port VXLAN traffic uses between nodes. Default 4789.
    #[serde(skip_serializing_if = "is_default")]
    pub vxlan_port: Option<i64>,
    /// VXLAN network identifier of the overlay. Default 4096.
    #[serde(rename = "vxlanVNI", skip_serializing_if = "is_default")]
    pub vxlan_vni: Option<i64>,
    /// Lets workloads send VXLAN packets of their own. Default `false`.
    #[serde(
        rename = "allowVXLANPacketsFromWorkloads",
        skip_serializing_if = "is_default"
    )]
    pub allow_vxlan_packets_from_workloads: Option<bool>,
    /// Lets workloads send IPIP packets of their own. Default `false`.
    #[serde(
        rename = "allowIPIPPacketsFromWorkloads",
        skip_serializing_if = "is_default"
    )]
    pub allow_ipip_packets_from_workloads: Option<bool>,
    /// How often Felix writes its status to the datastore; 0 turns it off. Default 30s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub reporting_interval: Option<GoDuration>,
    /// How long a status report stays valid without renewal. Default 90s.
    #[serde(rename = "reportingTTL", skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub reporting_ttl: Option<GoDuration>,
    /// Writes the state of endpoints to the datastore, for `OpenStack`. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub endpoint_reporting_enabled: Option<bool>,
    /// Wait before a changed endpoint state is written, for `OpenStack`. Default 1s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub endpoint_reporting_delay: Option<GoDuration>,
    /// Directory for endpoint status files the CNI plugin waits on; empty for none. Default
    /// `/var/run/calico`.
    #[serde(skip_serializing_if = "is_default")]
    pub endpoint_status_path_prefix: String,
    /// Packet mark bits Felix may use with iptables; must not clash with others. Default
    /// `0xffff0000`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = u32::MAX))]
    pub iptables_mark_mask: Option<i64>,
    /// Stops dropping packets that connection tracking calls invalid. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub disable_conntrack_invalid_check: Option<bool>,
    /// Whether the liveness and readiness endpoints are served. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub health_enabled: Option<bool>,
    /// Address the health endpoints listen on. Default `localhost`.
    #[serde(skip_serializing_if = "is_default")]
    pub health_host: Option<String>,
    /// TCP port of the health endpoints. Default 9099.
    #[serde(skip_serializing_if = "is_default")]
    pub health_port: Option<i64>,
    /// Longer or shorter watchdog times for single parts of the agent.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub health_timeout_overrides: Vec<HealthTimeoutOverride>,
    /// Whether Felix serves Prometheus metrics. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub prometheus_metrics_enabled: Option<bool>,
    /// Address the metrics endpoint listens on; all addresses when empty.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "prometheusHost"))]
    pub prometheus_metrics_host: String,
    /// TCP port of the metrics endpoint. Default 9091.
    #[serde(skip_serializing_if = "is_default")]
    pub prometheus_metrics_port: Option<i64>,
    /// Whether metrics of the language runtime are included. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub prometheus_go_metrics_enabled: Option<bool>,
    /// Whether CPU, memory and file metrics of the process are included. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub prometheus_process_metrics_enabled: Option<bool>,
    /// Whether WireGuard traffic and peer metrics are included. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub prometheus_wire_guard_metrics_enabled: Option<bool>,
    /// CA bundle that checks client certificates of metrics scrapers.
    #[serde(rename = "prometheusMetricsCAFile", skip_serializing_if = "is_default")]
    pub prometheus_metrics_ca_file: Option<String>,
    /// Server certificate of the metrics endpoint; with a key, it switches to TLS.
    #[serde(skip_serializing_if = "is_default")]
    pub prometheus_metrics_cert_file: Option<String>,
    /// Private key that belongs to the metrics server certificate.
    #[serde(skip_serializing_if = "is_default")]
    pub prometheus_metrics_key_file: Option<String>,
    /// What the metrics endpoint asks of client certificates. Default `NoClientCert`.
    #[serde(skip_serializing_if = "is_default")]
    pub prometheus_metrics_client_auth: Option<PrometheusMetricsClientAuthType>,
    /// Ports on the host that policy can never close. Default: SSH, DHCP, BGP, etcd, Typha, API
    /// server.
    #[serde(skip_serializing_if = "is_default")]
    pub failsafe_inbound_host_ports: Option<Vec<ProtoPort>>,
    /// Ports the host can always reach. Default: DNS, DHCP, BGP, etcd, Typha, API server.
    #[serde(skip_serializing_if = "is_default")]
    pub failsafe_outbound_host_ports: Option<Vec<ProtoPort>>,
    /// Node port ranges, needed when kube-proxy runs in IPVS mode. Default `30000:32767`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxItems" = 7))]
    pub kube_node_port_ranges: Option<Vec<Port>>,
    /// Directory of the sockets that give L7 proxies their policy; off when empty.
    #[serde(skip_serializing_if = "is_default")]
    pub policy_sync_path_prefix: String,
    /// Whether version and cluster size are reported to the project anonymously. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub usage_reporting_enabled: Option<bool>,
    /// Wait after start before the first usage report. Default 5m.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub usage_reporting_initial_delay: Option<GoDuration>,
    /// Time between two usage reports. Default 24h.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub usage_reporting_interval: Option<GoDuration>,
    /// Source ports used for outgoing NAT, as `min:max`; the kernel chooses when unset.
    #[serde(skip_serializing_if = "is_default")]
    pub nat_port_range: Option<Port>,
    /// IPv4 source address for outgoing NAT; that of the outgoing interface when unset.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 45))]
    pub nat_outgoing_address: String,
    /// Destinations that pods reach without outgoing NAT. Default `IPPoolsOnly`.
    #[serde(skip_serializing_if = "is_default")]
    pub nat_outgoing_exclusions: Option<NatOutgoingExclusionsType>,
    /// IPv4 source address hint on routes to workloads; the kernel chooses when unset.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 45))]
    pub device_route_source_address: String,
    /// IPv6 source address hint on routes to workloads; the kernel chooses when unset.
    #[serde(
        rename = "deviceRouteSourceAddressIPv6",
        skip_serializing_if = "is_default"
    )]
    #[schemars(extend("maxLength" = 45))]
    pub device_route_source_address_ipv6: String,
    /// Protocol number that marks routes as made by Felix. Default 3 (`boot`).
    #[serde(skip_serializing_if = "is_default")]
    pub device_route_protocol: Option<i64>,
    /// Whether routes to workload interfaces made by others are removed. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub remove_external_routes: Option<bool>,
    /// Pod routes to other nodes Felix installs for pools without VXLAN. Default `EnabledIPIPOnly`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("enum" = ["Enabled", "Disabled", "EnabledIPIPOnly", "EnabledNoEncapOnly"]))]
    pub program_cluster_routes: Option<String>,
    /// Whether Felix turns on IP forwarding on the host; workloads need it. Default `Enabled`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "enum" = ["Enabled", "Disabled"]))]
    pub ip_forwarding: String,
    /// Ranges of hosts outside the cluster that may send tunnelled traffic; none by default.
    #[serde(rename = "externalNodesList", skip_serializing_if = "is_default")]
    pub external_nodes_cidr_list: Option<Vec<String>>,
    /// File for a memory profile, written when the agent gets the signal for it.
    #[serde(skip_serializing_if = "is_default")]
    pub debug_memory_profile_path: String,
    /// Never drops log lines, even if waiting for the disk slows the agent. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub debug_disable_log_dropping: Option<bool>,
    /// For tests: policy calculation hangs after this time; 0 never. Default 0s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub debug_simulate_calc_graph_hang_after: Option<GoDuration>,
    /// For tests: the dataplane hangs after this time; 0 never. Default 0s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub debug_simulate_dataplane_hang_after: Option<GoDuration>,
    /// For tests: extra delay in each dataplane update. Default 0s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub debug_simulate_dataplane_apply_delay: Option<GoDuration>,
    /// Address the debug port listens on. Default `localhost`.
    #[serde(skip_serializing_if = "is_default")]
    pub debug_host: Option<String>,
    /// TCP port that serves profiling data without protection; off when unset.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gte=0,lte=65535"))]
    pub debug_port: Option<i64>,
    /// Does outgoing NAT only on this interface; `+` at the end is a wildcard. All when empty.
    #[serde(
        rename = "iptablesNATOutgoingInterfaceFilter",
        skip_serializing_if = "is_default"
    )]
    #[schemars(extend("x-check" = "ifaceFilter"))]
    pub iptables_nat_outgoing_interface_filter: String,
    /// Experimental shortcut between workloads and their sidecar proxy. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub sidecar_acceleration_enabled: Option<bool>,
    /// Drops traffic denied by untracked policy in XDP where the card can do so. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub xdp_enabled: Option<bool>,
    /// Uses XDP even without driver support, which gains no speed. Default `false`.
    #[serde(rename = "genericXDPEnabled", skip_serializing_if = "is_default")]
    pub generic_xdp_enabled: Option<bool>,
    /// Whether Felix uses nftables in place of iptables. Default `Auto`.
    #[serde(rename = "nftablesMode", skip_serializing_if = "is_default")]
    #[schemars(extend("x-default" = "Auto"))]
    pub nftables_mode: Option<NfTablesMode>,
    /// Which allowed connections take the flowtable fast path. Default `Disabled`.
    #[serde(
        rename = "nftablesFlowTableOffload",
        skip_serializing_if = "is_default"
    )]
    #[schemars(extend("x-default" = "Disabled"))]
    pub nftables_flow_table_offload: Option<NfTablesFlowTableOffload>,
    /// Expression for host interfaces on the flowtable path; pods only when empty.
    #[serde(
        rename = "nftablesFlowTableDataIfacePattern",
        skip_serializing_if = "is_default"
    )]
    #[schemars(extend("x-check" = "regexp"))]
    pub nftables_flow_table_data_iface_pattern: String,
    /// How often nftables content is checked and repaired; 0 turns it off. Default 3m.
    #[serde(skip_serializing_if = "is_default")]
    pub nftables_refresh_interval: Option<GoDuration>,
    /// Fate of allowed packets: final `Accept`, or `Return` to other rules. Default `Accept`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Accept|Return)?$"))]
    pub nftables_filter_allow_action: String,
    /// As `nftablesFilterAllowAction`, for packets allowed by pre-DNAT policy. Default `Accept`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Accept|Return)?$"))]
    pub nftables_mangle_allow_action: String,
    /// Whether denied packets vanish (`Drop`) or get an error (`Reject`). Default `Drop`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Drop|Reject)?$"))]
    pub nftables_filter_deny_action: String,
    /// Packet mark bits Felix may use with nftables; must not clash with others. Default
    /// `0xffff0000`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = u32::MAX))]
    pub nftables_mark_mask: Option<i64>,
    /// Uses the BPF dataplane in place of iptables or nftables. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_enabled: Option<bool>,
    /// Source address of the host's own packets in a tunnel. Default `TunnelAddress`.
    #[serde(rename = "bpfOverlayHostSourceIP", skip_serializing_if = "is_default")]
    pub bpf_overlay_host_source_ip: Option<BpfOverlayHostSourceIpType>,
    /// Forbids BPF to users without privileges, by sysctl. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_disable_unprivileged: Option<bool>,
    /// Whether Felix relaxes a JIT hardening level that costs speed. Default `Auto`.
    #[serde(rename = "bpfJITHardening", skip_serializing_if = "is_default")]
    pub bpf_jit_hardening: Option<BpfJitHardeningType>,
    /// How much BPF programs write to the trace pipe: `Off`, `Info` or `Debug`. Default `Off`.
    #[schemars(extend("pattern" = "^(?i)(Off|Info|Debug)?$"))]
    pub bpf_log_level: String,
    /// How much the conntrack cleanup program logs: `Off` or `Debug`. Default `Off`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "enum" = ["Off", "Debug"], "x-check" = "oneof=Off Debug"))]
    pub bpf_conntrack_log_level: String,
    /// Who removes expired BPF conntrack entries. Default `Auto`.
    #[serde(rename = "bpfConntrackMode", skip_serializing_if = "is_default")]
    pub bpf_conntrack_cleanup_mode: Option<BpfConntrackMode>,
    /// Lifetimes of idle BPF conntrack entries, where they differ from the defaults.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_conntrack_timeouts: Option<BpfConntrackTimeouts>,
    /// How long fragments wait for the rest of a packet; 0 follows the kernel. Default 0s.
    #[serde(rename = "bpfIPFragTimeout", skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub bpf_ip_frag_timeout: Option<GoDuration>,
    /// Filters in pcap syntax that limit BPF debug logs, keyed by interface, `all`, `weps` or
    /// `heps`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "interfaceKeys"))]
    pub bpf_log_filters: Option<BTreeMap<String, String>>,
    /// Must be `all` to see connect-time load balancer logs while `bpfLogFilters` is set.
    #[serde(rename = "bpfCTLBLogFilter", skip_serializing_if = "is_default")]
    pub bpf_ctlb_log_filter: String,
    /// Expression for host interfaces that get BPF programs. Default: usual network card names.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "regexp"))]
    pub bpf_data_iface_pattern: String,
    /// Expression for further tunnel devices, not made by Calico, that get BPF programs.
    #[serde(rename = "bpfL3IfacePattern", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "regexp"))]
    pub bpf_l3_iface_pattern: String,
    /// Old switch for the connect-time balancer; prefer `bpfConnectTimeLoadBalancing`.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_connect_time_load_balancing_enabled: Option<bool>,
    /// Which service connections are balanced when a program connects. Default `TCP`.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_connect_time_load_balancing: Option<BpfConnectTimeLbType>,
    /// Service NAT for host programs the connect-time balancer leaves out. Default `Enabled`.
    #[serde(
        rename = "bpfHostNetworkedNATWithoutCTLB",
        skip_serializing_if = "is_default"
    )]
    pub bpf_host_networked_nat_without_ctlb: Option<BpfHostNetworkedNatType>,
    /// Return path for outside clients: `Tunnel` via the first node, or `DSR` direct. Default
    /// `Tunnel`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Tunnel|DSR)?$"))]
    pub bpf_external_service_mode: String,
    /// Clients in these ranges get `Tunnel` handling even in DSR mode.
    #[serde(rename = "bpfDSROptoutCIDRs", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "cidr"))]
    pub bpf_dsr_optout_cidrs: Option<Vec<String>>,
    /// Mark set on connections from outside to a service, for custom routing. Default 0.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gte=0,lte=4294967295"))]
    pub bpf_ext_to_service_connmark: Option<i64>,
    /// Removes iptables rules left by kube-proxy, which must not run. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_kube_proxy_iptables_cleanup_enabled: Option<bool>,
    /// Shortest time between two service updates of the dataplane. Default 1s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub bpf_kube_proxy_min_sync_period: Option<GoDuration>,
    /// Port on which load balancers check this node, in place of kube-proxy; 0 for none. Default
    /// 10256.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gte=0,lte=65535"))]
    pub bpf_kube_proxy_healthz_port: Option<i64>,
    /// Ports to choose from when two connections want the same source port. Default `20000:29999`.
    #[serde(rename = "bpfPSNATPorts", skip_serializing_if = "is_default")]
    pub bpf_psnat_ports: Option<Port>,
    /// Room for service addresses: one entry per port, node port and external IP. Default 65536.
    #[serde(rename = "bpfMapSizeNATFrontend", skip_serializing_if = "is_default")]
    pub bpf_map_size_nat_frontend: Option<i64>,
    /// Room for the endpoints behind all services together. Default 262144.
    #[serde(rename = "bpfMapSizeNATBackend", skip_serializing_if = "is_default")]
    pub bpf_map_size_nat_backend: Option<i64>,
    /// Room for clients of services with session affinity. Default 65536.
    #[serde(rename = "bpfMapSizeNATAffinity", skip_serializing_if = "is_default")]
    pub bpf_map_size_nat_affinity: Option<i64>,
    /// Room for routes: one per workload plus a few per node. Default 262144.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_map_size_route: Option<i64>,
    /// Room for connections; a change may disturb those already open. Default 512000.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_map_size_conntrack: Option<i64>,
    /// Room for connections per CPU; above 0 it replaces `bpfMapSizeConntrack`. Default 0.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_map_size_per_cpu_conntrack: Option<i64>,
    /// Whether a full conntrack map grows: `DoubleIfFull` or `Disabled`. Default `DoubleIfFull`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Disabled|DoubleIfFull)?$"))]
    pub bpf_map_size_conntrack_scaling: String,
    /// Room for NAT entries that expire in one cleanup round. Default 100000.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 1, "x-check" = "gte=1"))]
    pub bpf_map_size_conntrack_cleanup_queue: Option<i64>,
    /// Room for members of all IP sets together. Default 1048576.
    #[serde(rename = "bpfMapSizeIPSets", skip_serializing_if = "is_default")]
    pub bpf_map_size_ip_sets: Option<i64>,
    /// Room for network devices of the host, workloads included. Default 1000.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_map_size_if_state: Option<i64>,
    /// Skips Linux conntrack for traffic of workloads and services. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_host_conntrack_bypass: Option<bool>,
    /// Puts fragments from outside together; they are dropped when off. Default `true`.
    #[serde(
        rename = "bpfIPFragmentReassemblyEnabled",
        skip_serializing_if = "is_default"
    )]
    pub bpf_ip_fragment_reassembly_enabled: Option<bool>,
    /// Reverse path check on host interfaces: `Strict`, `Loose` or `Disabled`. Default `Loose`.
    #[serde(rename = "bpfEnforceRPF", skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Disabled|Strict|Loose)?$"))]
    pub bpf_enforce_rpf: String,
    /// Keeps details of policy programs for inspection with calico-bpf. Default `true`.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_policy_debug_enabled: Option<bool>,
    /// Interfaces, `+` as wildcard, whose traffic Linux conntrack still sees. Default `docker+`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "ifaceFilter"))]
    pub bpf_force_track_packets_from_ifaces: Option<Vec<String>>,
    /// Expression for interfaces on which receive offload (GRO) is turned off.
    #[serde(rename = "bpfDisableGROForIfaces", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "regexp"))]
    pub bpf_disable_gro_for_ifaces: String,
    /// Service ranges left to the host, such as that of a node-local DNS cache.
    #[serde(rename = "bpfExcludeCIDRsFromNAT", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "cidr"))]
    pub bpf_exclude_cidrs_from_nat: Option<Vec<String>>,
    /// Buffer in MB for events BPF programs send to Felix. Default 1.
    #[serde(rename = "bpfExportBufferSizeMB", skip_serializing_if = "is_default")]
    pub bpf_export_buffer_size_mb: Option<i64>,
    /// Whether Felix works together with Istio in ambient mode. Default `Disabled`.
    #[serde(skip_serializing_if = "is_default")]
    pub istio_ambient_mode: Option<IstioAmbientMode>,
    /// DSCP value that marks new connections for the Istio tunnel; reserve it for this use. Default
    /// 23.
    #[serde(rename = "istioDSCPMark", skip_serializing_if = "is_default")]
    pub istio_dscp_mark: Option<Dscp>,
    /// Where the cgroup v2 hierarchy is mounted, if not in the usual place.
    #[serde(skip_serializing_if = "is_default")]
    pub cgroup_v2_path: String,
    /// Whether open flows are checked again when policy changes. Default `Continuous`.
    #[serde(skip_serializing_if = "is_default")]
    pub flow_logs_policy_evaluation_mode: Option<FlowLogsPolicyEvaluationModeType>,
    /// Whether packets may go straight to the inner side of a pod's device. Default `Enabled`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "enum" = ["Enabled", "Disabled"]))]
    pub bpf_redirect_to_peer: String,
    /// How BPF programs are attached to interfaces. Default `Netkit`.
    #[serde(skip_serializing_if = "is_default")]
    pub bpf_attach_type: Option<BpfAttachOption>,
    /// How often collected flow logs are sent out. Default 5m.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub flow_logs_flush_interval: Option<GoDuration>,
    /// Writes everything the flow collector does to the debug log. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub flow_logs_collector_debug_trace: Option<bool>,
    /// Address of the Goldmane server that gets flow logs; none are sent when unset.
    #[serde(skip_serializing_if = "is_default")]
    pub flow_logs_goldmane_server: Option<String>,
    /// Whether flows are offered on a local socket of the node. Default `Disabled`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("enum" = ["Disabled", "Enabled"]))]
    pub flow_logs_local_reporter: Option<String>,
    /// Whether the run time of BPF programs is measured. Default `Disabled`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "enum" = ["Enabled", "Disabled"]))]
    pub bpf_profiling: String,
    /// Whether routes come from IPAM blocks or from the workloads themselves. Default `CalicoIPAM`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(WorkloadIPs|CalicoIPAM)?$"))]
    pub route_source: String,
    /// Routing table numbers Felix may use. Default 1 to 250.
    #[serde(skip_serializing_if = "is_default")]
    pub route_table_ranges: Option<Vec<RouteTableIdRange>>,
    /// Old form with a single range; prefer `routeTableRanges`.
    #[serde(skip_serializing_if = "is_default")]
    pub route_table_range: Option<RouteTableRange>,
    /// Leaves all routes alone, for clusters that use policy only. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub route_sync_disabled: Option<bool>,
    /// Kernel metric of ordinary IPv4 routes. Default 1024.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gte=1,lte=2147483646"))]
    pub ipv4_normal_route_priority: Option<i64>,
    /// Kernel metric of IPv4 routes preferred during live migration. Default 512.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gte=1,lte=2147483646"))]
    pub ipv4_elevated_route_priority: Option<i64>,
    /// Kernel metric of ordinary IPv6 routes. Default 1024.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gte=1,lte=2147483646"))]
    pub ipv6_normal_route_priority: Option<i64>,
    /// Kernel metric of IPv6 routes preferred during live migration. Default 512.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gte=1,lte=2147483646"))]
    pub ipv6_elevated_route_priority: Option<i64>,
    /// How long preferred routes stay after a live migration ends. Default 30s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))*$"))]
    pub live_migration_route_convergence_time: Option<GoDuration>,
    /// Encrypts IPv4 pod traffic between nodes with WireGuard. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub wireguard_enabled: Option<bool>,
    /// Encrypts IPv6 pod traffic between nodes with WireGuard. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub wireguard_enabled_v6: Option<bool>,
    /// Spreads WireGuard packet work over CPUs (threaded NAPI). Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub wireguard_threading_enabled: Option<bool>,
    /// UDP port of the IPv4 WireGuard device. Default 51820.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gt=0,lte=65535"))]
    pub wireguard_listening_port: Option<i64>,
    /// UDP port of the IPv6 WireGuard device. Default 51821.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gt=0,lte=65535"))]
    pub wireguard_listening_port_v6: Option<i64>,
    /// Priority of the routing rule that leads traffic into WireGuard. Default 99.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gt=0,lt=32766"))]
    pub wireguard_routing_rule_priority: Option<i64>,
    /// Name of the IPv4 WireGuard device. Default `wireguard.cali`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "interface"))]
    pub wireguard_interface_name: String,
    /// Name of the IPv6 WireGuard device. Default `wg-v6.cali`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "interface"))]
    pub wireguard_interface_name_v6: String,
    /// MTU of the IPv4 WireGuard device; 0 derives it from the host's MTU. Default 0.
    #[serde(rename = "wireguardMTU", skip_serializing_if = "is_default")]
    pub wireguard_mtu: Option<i64>,
    /// MTU of the IPv6 WireGuard device; 0 derives it from the host's MTU. Default 0.
    #[serde(rename = "wireguardMTUV6", skip_serializing_if = "is_default")]
    pub wireguard_mtu_v6: Option<i64>,
    /// Also encrypts traffic between the hosts themselves. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub wireguard_host_encryption_enabled: Option<bool>,
    /// Interval of WireGuard keepalives, for nodes behind NAT; 0 for none. Default 0s.
    #[serde(rename = "wireguardKeepAlive", skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$"))]
    pub wireguard_persistent_keep_alive: Option<GoDuration>,
    /// What Felix does about the EC2 source/destination check. Default `DoNothing`.
    #[serde(skip_serializing_if = "is_default")]
    pub aws_src_dst_check: Option<AwsSrcDstCheckOption>,
    /// Handling of packets to unused service addresses: `Drop`, `Reject` or `Disabled`. Default
    /// `Drop`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Drop|Reject|Disabled)?$", "x-check" = "oneof=Drop Reject Disabled"))]
    pub service_loop_prevention: String,
    /// Whether pods may ask for foreign source ranges by annotation (`Any`). Default `Disabled`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = "^(?i)(Disabled|Any)?$", "x-check" = "oneof=Disabled Any"))]
    pub workload_source_spoofing: String,
    /// Expression for host interfaces whose MTU is the base for pods. Default: usual network card
    /// names.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "regexp"))]
    pub mtu_iface_pattern: String,
    /// Whether floating addresses outside `OpenStack` are set up. Default `Disabled`.
    #[serde(rename = "floatingIPs", skip_serializing_if = "is_default")]
    pub floating_ips: Option<FloatingIpType>,
    /// Whether the node answers ARP and NDP for pod addresses in its subnet. Default `Disabled`.
    #[serde(skip_serializing_if = "is_default")]
    pub local_subnet_l2_reachability: Option<LocalSubnetL2ReachabilityMode>,
    /// How often these addresses are announced again; 0 never. Default 2m.
    #[serde(skip_serializing_if = "is_default")]
    pub local_subnet_l2_reachability_refresh_interval: Option<GoDuration>,
    /// Whether Felix opens its metrics port in the Windows firewall. Default `Disabled`.
    #[serde(skip_serializing_if = "is_default")]
    pub windows_manage_firewall_rules: Option<WindowsManageFirewallRulesMode>,
    /// Heap growth, in percent, before a Go runtime collects garbage; -1 never. Default 40.
    #[serde(rename = "goGCThreshold", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gte=-1"))]
    pub go_gc_threshold: Option<i64>,
    /// Soft memory limit of a Go runtime, in MB; -1 for none. Default -1.
    #[serde(rename = "goMemoryLimitMB", skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gte=-1"))]
    pub go_memory_limit_mb: Option<i64>,
    /// Most CPUs a Go runtime uses at once; -1 lets it choose. Default -1.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gte=-1"))]
    pub go_max_procs: Option<i64>,
    /// Makes a missing file with the pod MTU an error instead of using a fallback. Default `false`.
    #[serde(rename = "requireMTUFile", skip_serializing_if = "is_default")]
    pub require_mtu_file: Option<bool>,
    /// Most endpoints expected behind one Maglev service; sizes its table. Default 100.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gt=0,lte=3000"))]
    pub bpf_maglev_max_endpoints_per_service: Option<i64>,
    /// Most services with Maglev balancing to reserve tables for. Default 100.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "gt=0,lte=3000"))]
    pub bpf_maglev_max_services: Option<i64>,
}

/// Watchdog time for one part of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "timeout"]))]
pub struct HealthTimeoutOverride {
    /// Name of the part, as the agent's log shows it.
    pub name: String,
    /// Time without a sign of life after which the part counts as stuck; 0 disables the check.
    pub timeout: GoDuration,
}

/// Range of routing table numbers between 1 and 250; old form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["min", "max"]))]
pub struct RouteTableRange {
    /// First table number Felix may use.
    pub min: i64,
    /// Last table number Felix may use.
    pub max: i64,
}

/// Range of routing table numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["min", "max"]))]
pub struct RouteTableIdRange {
    /// First table number Felix may use.
    pub min: i64,
    /// Last table number Felix may use.
    pub max: i64,
}

/// A protocol and port, optionally for one range of peers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["port"]))]
pub struct ProtoPort {
    /// Protocol of the port: `TCP`, `UDP` or `SCTP`.
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: String,
    /// Port number that stays open.
    pub port: u16,
    /// Range of peers this holds for; everyone when empty.
    #[serde(skip_serializing_if = "is_default")]
    pub net: String,
}

/// Lifetimes of idle connections; `Auto` takes the value of the matching Linux timeout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BpfConntrackTimeouts {
    /// Time a new entry is never removed. Default 10s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^(([0-9]*(\.[0-9]*)?(ms|s|h|m|us)+)+|Auto)$"))]
    pub creation_grace_period: Option<String>,
    /// TCP connection that has not been answered yet. Default 20s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^(([0-9]*(\.[0-9]*)?(ms|s|h|m|us)+)+|Auto)$"))]
    pub tcp_syn_sent: Option<String>,
    /// Open TCP connection without traffic. Default 1h.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^(([0-9]*(\.[0-9]*)?(ms|s|h|m|us)+)+|Auto)$"))]
    pub tcp_established: Option<String>,
    /// TCP connection closed by both sides. Default `Auto`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^(([0-9]*(\.[0-9]*)?(ms|s|h|m|us)+)+|Auto)$"))]
    pub tcp_fins_seen: Option<String>,
    /// TCP connection that was reset. Default 40s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^(([0-9]*(\.[0-9]*)?(ms|s|h|m|us)+)+|Auto)$"))]
    pub tcp_reset_seen: Option<String>,
    /// UDP flow without traffic. Default 60s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^(([0-9]*(\.[0-9]*)?(ms|s|h|m|us)+)+|Auto)$"))]
    pub udp_timeout: Option<String>,
    /// Flow of any other protocol without traffic. Default 10m.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^(([0-9]*(\.[0-9]*)?(ms|s|h|m|us)+)+|Auto)$"))]
    pub generic_timeout: Option<String>,
    /// ICMP exchange without traffic. Default 5s.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("pattern" = r"^(([0-9]*(\.[0-9]*)?(ms|s|h|m|us)+)+|Auto)$"))]
    pub icmp_timeout: Option<String>,
}

/// Variant of the iptables tools.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum IptablesBackend {
    /// The original kernel interface (`iptables-legacy`).
    Legacy,
    /// The nftables-based variant (`iptables-nft`).
    #[serde(rename = "NFT")]
    Nft,
    /// Look at the host and use the variant others use there.
    Auto,
}

/// Whether nftables replaces iptables.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum NfTablesMode {
    /// Always use iptables.
    Disabled,
    /// Always use nftables.
    Enabled,
    /// Use nftables where kube-proxy does.
    Auto,
}

/// Which connections the nftables flowtable handles.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum NfTablesFlowTableOffload {
    /// All established connections that policy allowed.
    All,
    /// None; every packet takes the normal path.
    Disabled,
}

/// Handling of the EC2 source/destination check of the node.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum AwsSrcDstCheckOption {
    /// Leave the check as it is.
    DoNothing,
    /// Turn the check on.
    Enable,
    /// Turn the check off, so that pod traffic can pass without a tunnel in a subnet.
    Disable,
}

/// Kernel interface for attaching BPF programs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BpfAttachOption {
    /// A `clsact` queueing discipline, which works on all kernels.
    #[serde(rename = "TC")]
    Tc,
    /// TCX links, which share interfaces with other programs; TC on older kernels.
    #[serde(rename = "TCX")]
    Tcx,
    /// Netkit on workload devices of that type, TCX everywhere else.
    Netkit,
}

/// Whether floating addresses are set up.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum FloatingIpType {
    /// Set up all floating addresses.
    Enabled,
    /// Set up only those that come from `OpenStack`.
    Disabled,
}

/// Which addresses the node answers for on its own subnet.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum LocalSubnetL2ReachabilityMode {
    /// None; they are reached by routing only.
    Disabled,
    /// Its local pods, and load balancer addresses chosen for this node.
    PodsAndLoadBalancers,
}

/// Service NAT for programs in the host network without connect-time balancing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BpfHostNetworkedNatType {
    /// Translate their packets on the way out.
    Enabled,
    /// Leave their packets alone.
    Disabled,
}

/// Which services are balanced when a program connects.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BpfConnectTimeLbType {
    /// TCP services only; others are translated packet by packet.
    #[serde(rename = "TCP")]
    Tcp,
    /// Services of all protocols.
    Enabled,
    /// None; all are translated packet by packet.
    Disabled,
}

/// Source address of the host's own packets that enter a tunnel.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BpfOverlayHostSourceIpType {
    /// The address of the tunnel device, taken from an IP pool.
    TunnelAddress,
    /// The node's own address; the tunnel device gets none.
    HostAddress,
}

/// Who removes expired BPF conntrack entries.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BpfConntrackMode {
    /// A BPF program if the kernel can, else Felix itself.
    Auto,
    /// Always Felix itself.
    Userspace,
    /// Always a BPF program; fails where the kernel cannot.
    #[serde(rename = "BPFProgram")]
    BpfProgram,
}

/// Handling of the kernel's BPF JIT hardening level.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum BpfJitHardeningType {
    /// Lower the slow level 2 to level 1.
    Auto,
    /// Leave the level as the administrator set it.
    Strict,
}

/// Whether Felix changes the Windows firewall.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum WindowsManageFirewallRulesMode {
    /// Open the metrics ports in the firewall.
    Enabled,
    /// Leave the firewall alone.
    Disabled,
}

/// How pending policies in flow logs are kept up to date.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum FlowLogsPolicyEvaluationModeType {
    /// Do not work out pending policies for open flows.
    None,
    /// Check open flows again regularly, so that logs show policy changes soon.
    Continuous,
}

/// Destinations that outgoing NAT leaves alone.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum NatOutgoingExclusionsType {
    /// Addresses in IP pools.
    #[serde(rename = "IPPoolsOnly")]
    IpPoolsOnly,
    /// Addresses in IP pools and addresses of cluster hosts.
    #[serde(rename = "IPPoolsAndHostIPs")]
    IpPoolsAndHostIps,
}

/// Demands on client certificates at the metrics endpoint.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum PrometheusMetricsClientAuthType {
    /// A certificate is required and must be signed by the CA.
    RequireAndVerifyClientCert,
    /// A certificate is required, whoever signed it.
    RequireAnyClientCert,
    /// A certificate is optional, but if sent must be signed by the CA.
    VerifyClientCertIfGiven,
    /// No certificate is asked for.
    NoClientCert,
}

/// Cooperation with Istio ambient mode.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum IstioAmbientMode {
    /// Set up marking and exceptions Istio needs.
    Enabled,
    /// Do nothing for Istio.
    Disabled,
}

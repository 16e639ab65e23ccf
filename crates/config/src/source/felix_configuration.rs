//! The parameters that resources of the datastore set.
//!
//! An annotation can set a parameter, too. It wins over the field and is not checked, which makes it the way around a
//! field that is missing or too strict.

use std::collections::BTreeMap;

use tortie_api::FelixConfiguration;
use tortie_api::cluster_information::ClusterInformationSpec;
use tortie_api::felix_configuration::FelixConfigurationSpec;

use super::field::Field;
use super::given::Given;

/// What annotations that set a parameter start with.
const ANNOTATION: &str = "config.projectcalico.org/";

/// Inserts what every field gives that is set, and fails to compile if a field of the spec is in no list.
macro_rules! insert {
    (into $parameters:ident, of $spec:expr, but $($other:ident)*; $($field:ident => $name:literal)*) => {
        let FelixConfigurationSpec { $($other: _,)* $($field,)* } = $spec;
        for (name, given) in [$(($name, $field.given())),*] {
            if let Some(given) = given {
                $parameters.insert(name.to_owned(), given);
            }
        }
    };
}

/// The parameters that settings of nodes set, by name.
pub fn from_felix_configuration(resource: &FelixConfiguration) -> BTreeMap<String, Given> {
    let mut parameters = fields(&resource.spec);
    for (key, value) in &resource.metadata.annotations {
        if let Some(name) = key.strip_prefix(ANNOTATION) {
            parameters.insert(name.to_owned(), Given::Text(value.clone()));
        }
    }
    parameters
}

/// The parameters that tell of the cluster, by name.
pub fn from_cluster_information(spec: &ClusterInformationSpec) -> BTreeMap<String, Given> {
    let fields = [
        ("ClusterGUID", &spec.cluster_guid),
        ("ClusterType", &spec.cluster_type),
        ("CalicoVersion", &spec.calico_version),
        ("Variant", &spec.variant),
    ];
    let fields = fields.into_iter();
    fields
        .filter_map(|(name, field)| Some((name.to_owned(), field.given()?)))
        .collect()
}

fn fields(spec: &FelixConfigurationSpec) -> BTreeMap<String, Given> {
    let mut parameters = BTreeMap::new();
    // In milliseconds, as opposed to all other times.
    if let Some(interval) = spec.iptables_lock_probe_interval {
        let name = "IptablesLockProbeIntervalMillis".to_owned();
        parameters.insert(name, Given::Millis(interval));
    }
    insert! {
        into parameters, of spec, but node_selector iptables_lock_probe_interval;
        use_internal_dataplane_driver => "UseInternalDataplaneDriver"
        dataplane_driver => "DataplaneDriver"
        dataplane_watchdog_timeout => "DataplaneWatchdogTimeout"
        ipv6_support => "Ipv6Support"
        route_refresh_interval => "RouteRefreshInterval"
        interface_refresh_interval => "InterfaceRefreshInterval"
        iptables_refresh_interval => "IptablesRefreshInterval"
        iptables_post_write_check_interval => "IptablesPostWriteCheckIntervalSecs"
        feature_detect_override => "FeatureDetectOverride"
        feature_gates => "FeatureGates"
        ipsets_refresh_interval => "IpsetsRefreshInterval"
        max_ipset_size => "MaxIpsetSize"
        iptables_backend => "IptablesBackend"
        xdp_refresh_interval => "XDPRefreshInterval"
        netlink_timeout => "NetlinkTimeoutSecs"
        metadata_addr => "MetadataAddr"
        metadata_port => "MetadataPort"
        openstack_region => "OpenstackRegion"
        interface_prefix => "InterfacePrefix"
        interface_exclude => "InterfaceExclude"
        chain_insert_mode => "ChainInsertMode"
        default_endpoint_to_host_action => "DefaultEndpointToHostAction"
        iptables_filter_allow_action => "IptablesFilterAllowAction"
        iptables_mangle_allow_action => "IptablesMangleAllowAction"
        iptables_filter_deny_action => "IptablesFilterDenyAction"
        log_prefix => "LogPrefix"
        log_action_rate_limit => "LogActionRateLimit"
        log_action_rate_limit_burst => "LogActionRateLimitBurst"
        log_file_path => "LogFilePath"
        log_severity_file => "LogSeverityFile"
        log_severity_screen => "LogSeverityScreen"
        log_severity_sys => "LogSeveritySys"
        log_debug_filename_regex => "LogDebugFilenameRegex"
        ipip_enabled => "IpInIpEnabled"
        ipip_mtu => "IpInIpMtu"
        vxlan_enabled => "VXLANEnabled"
        vxlan_mtu => "VXLANMTU"
        vxlan_mtu_v6 => "VXLANMTUV6"
        vxlan_port => "VXLANPort"
        vxlan_vni => "VXLANVNI"
        allow_vxlan_packets_from_workloads => "AllowVXLANPacketsFromWorkloads"
        allow_ipip_packets_from_workloads => "AllowIPIPPacketsFromWorkloads"
        reporting_interval => "ReportingIntervalSecs"
        reporting_ttl => "ReportingTTLSecs"
        endpoint_reporting_enabled => "EndpointReportingEnabled"
        endpoint_reporting_delay => "EndpointReportingDelaySecs"
        endpoint_status_path_prefix => "EndpointStatusPathPrefix"
        iptables_mark_mask => "IptablesMarkMask"
        disable_conntrack_invalid_check => "DisableConntrackInvalidCheck"
        health_enabled => "HealthEnabled"
        health_host => "HealthHost"
        health_port => "HealthPort"
        health_timeout_overrides => "HealthTimeoutOverrides"
        prometheus_metrics_enabled => "PrometheusMetricsEnabled"
        prometheus_metrics_host => "PrometheusMetricsHost"
        prometheus_metrics_port => "PrometheusMetricsPort"
        prometheus_go_metrics_enabled => "PrometheusGoMetricsEnabled"
        prometheus_process_metrics_enabled => "PrometheusProcessMetricsEnabled"
        prometheus_wire_guard_metrics_enabled => "PrometheusWireGuardMetricsEnabled"
        prometheus_metrics_ca_file => "PrometheusMetricsCAFile"
        prometheus_metrics_cert_file => "PrometheusMetricsCertFile"
        prometheus_metrics_key_file => "PrometheusMetricsKeyFile"
        prometheus_metrics_client_auth => "PrometheusMetricsClientAuth"
        failsafe_inbound_host_ports => "FailsafeInboundHostPorts"
        failsafe_outbound_host_ports => "FailsafeOutboundHostPorts"
        kube_node_port_ranges => "KubeNodePortRanges"
        policy_sync_path_prefix => "PolicySyncPathPrefix"
        usage_reporting_enabled => "UsageReportingEnabled"
        usage_reporting_initial_delay => "UsageReportingInitialDelaySecs"
        usage_reporting_interval => "UsageReportingIntervalSecs"
        nat_port_range => "NATPortRange"
        nat_outgoing_address => "NATOutgoingAddress"
        nat_outgoing_exclusions => "NATOutgoingExclusions"
        device_route_source_address => "DeviceRouteSourceAddress"
        device_route_source_address_ipv6 => "DeviceRouteSourceAddressIPv6"
        device_route_protocol => "DeviceRouteProtocol"
        remove_external_routes => "RemoveExternalRoutes"
        program_cluster_routes => "ProgramClusterRoutes"
        ip_forwarding => "IPForwarding"
        external_nodes_cidr_list => "ExternalNodesCIDRList"
        debug_memory_profile_path => "DebugMemoryProfilePath"
        debug_disable_log_dropping => "DebugDisableLogDropping"
        debug_simulate_calc_graph_hang_after => "DebugSimulateCalcGraphHangAfter"
        debug_simulate_dataplane_hang_after => "DebugSimulateDataplaneHangAfter"
        debug_simulate_dataplane_apply_delay => "DebugSimulateDataplaneApplyDelay"
        debug_host => "DebugHost"
        debug_port => "DebugPort"
        iptables_nat_outgoing_interface_filter => "IptablesNATOutgoingInterfaceFilter"
        sidecar_acceleration_enabled => "SidecarAccelerationEnabled"
        xdp_enabled => "XDPEnabled"
        generic_xdp_enabled => "GenericXDPEnabled"
        nftables_mode => "NFTablesMode"
        nftables_flow_table_offload => "NFTablesFlowTableOffload"
        nftables_flow_table_data_iface_pattern => "NFTablesFlowTableDataIfacePattern"
        nftables_refresh_interval => "NftablesRefreshInterval"
        nftables_filter_allow_action => "NftablesFilterAllowAction"
        nftables_mangle_allow_action => "NftablesMangleAllowAction"
        nftables_filter_deny_action => "NftablesFilterDenyAction"
        nftables_mark_mask => "NftablesMarkMask"
        bpf_enabled => "BPFEnabled"
        bpf_overlay_host_source_ip => "BPFOverlayHostSourceIP"
        bpf_disable_unprivileged => "BPFDisableUnprivileged"
        bpf_jit_hardening => "BPFJITHardening"
        bpf_log_level => "BPFLogLevel"
        bpf_conntrack_log_level => "BPFConntrackLogLevel"
        bpf_conntrack_cleanup_mode => "BPFConntrackCleanupMode"
        bpf_conntrack_timeouts => "BPFConntrackTimeouts"
        bpf_ip_frag_timeout => "BPFIPFragTimeout"
        bpf_log_filters => "BPFLogFilters"
        bpf_ctlb_log_filter => "BPFCTLBLogFilter"
        bpf_data_iface_pattern => "BPFDataIfacePattern"
        bpf_l3_iface_pattern => "BPFL3IfacePattern"
        bpf_connect_time_load_balancing_enabled => "BPFConnectTimeLoadBalancingEnabled"
        bpf_connect_time_load_balancing => "BPFConnectTimeLoadBalancing"
        bpf_host_networked_nat_without_ctlb => "BPFHostNetworkedNATWithoutCTLB"
        bpf_external_service_mode => "BPFExternalServiceMode"
        bpf_dsr_optout_cidrs => "BPFDSROptoutCIDRs"
        bpf_ext_to_service_connmark => "BPFExtToServiceConnmark"
        bpf_kube_proxy_iptables_cleanup_enabled => "BPFKubeProxyIptablesCleanupEnabled"
        bpf_kube_proxy_min_sync_period => "BPFKubeProxyMinSyncPeriod"
        bpf_kube_proxy_healthz_port => "BPFKubeProxyHealthzPort"
        bpf_psnat_ports => "BPFPSNATPorts"
        bpf_map_size_nat_frontend => "BPFMapSizeNATFrontend"
        bpf_map_size_nat_backend => "BPFMapSizeNATBackend"
        bpf_map_size_nat_affinity => "BPFMapSizeNATAffinity"
        bpf_map_size_route => "BPFMapSizeRoute"
        bpf_map_size_conntrack => "BPFMapSizeConntrack"
        bpf_map_size_per_cpu_conntrack => "BPFMapSizePerCPUConntrack"
        bpf_map_size_conntrack_scaling => "BPFMapSizeConntrackScaling"
        bpf_map_size_conntrack_cleanup_queue => "BPFMapSizeConntrackCleanupQueue"
        bpf_map_size_ip_sets => "BPFMapSizeIPSets"
        bpf_map_size_if_state => "BPFMapSizeIfState"
        bpf_host_conntrack_bypass => "BPFHostConntrackBypass"
        bpf_ip_fragment_reassembly_enabled => "BPFIPFragmentReassemblyEnabled"
        bpf_enforce_rpf => "BPFEnforceRPF"
        bpf_policy_debug_enabled => "BPFPolicyDebugEnabled"
        bpf_force_track_packets_from_ifaces => "BPFForceTrackPacketsFromIfaces"
        bpf_disable_gro_for_ifaces => "BPFDisableGROForIfaces"
        bpf_exclude_cidrs_from_nat => "BPFExcludeCIDRsFromNAT"
        bpf_export_buffer_size_mb => "BPFExportBufferSizeMB"
        istio_ambient_mode => "IstioAmbientMode"
        istio_dscp_mark => "IstioDSCPMark"
        cgroup_v2_path => "CgroupV2Path"
        flow_logs_policy_evaluation_mode => "FlowLogsPolicyEvaluationMode"
        bpf_redirect_to_peer => "BPFRedirectToPeer"
        bpf_attach_type => "BPFAttachType"
        flow_logs_flush_interval => "FlowLogsFlushInterval"
        flow_logs_collector_debug_trace => "FlowLogsCollectorDebugTrace"
        flow_logs_goldmane_server => "FlowLogsGoldmaneServer"
        flow_logs_local_reporter => "FlowLogsLocalReporter"
        bpf_profiling => "BPFProfiling"
        route_source => "RouteSource"
        route_table_ranges => "RouteTableRanges"
        route_table_range => "RouteTableRange"
        route_sync_disabled => "RouteSyncDisabled"
        ipv4_normal_route_priority => "IPv4NormalRoutePriority"
        ipv4_elevated_route_priority => "IPv4ElevatedRoutePriority"
        ipv6_normal_route_priority => "IPv6NormalRoutePriority"
        ipv6_elevated_route_priority => "IPv6ElevatedRoutePriority"
        live_migration_route_convergence_time => "LiveMigrationRouteConvergenceTime"
        wireguard_enabled => "WireguardEnabled"
        wireguard_enabled_v6 => "WireguardEnabledV6"
        wireguard_threading_enabled => "WireguardThreadingEnabled"
        wireguard_listening_port => "WireguardListeningPort"
        wireguard_listening_port_v6 => "WireguardListeningPortV6"
        wireguard_routing_rule_priority => "WireguardRoutingRulePriority"
        wireguard_interface_name => "WireguardInterfaceName"
        wireguard_interface_name_v6 => "WireguardInterfaceNameV6"
        wireguard_mtu => "WireguardMTU"
        wireguard_mtu_v6 => "WireguardMTUV6"
        wireguard_host_encryption_enabled => "WireguardHostEncryptionEnabled"
        wireguard_persistent_keep_alive => "WireguardPersistentKeepAlive"
        aws_src_dst_check => "AWSSrcDstCheck"
        service_loop_prevention => "ServiceLoopPrevention"
        workload_source_spoofing => "WorkloadSourceSpoofing"
        mtu_iface_pattern => "MTUIfacePattern"
        floating_ips => "FloatingIPs"
        local_subnet_l2_reachability => "LocalSubnetL2Reachability"
        local_subnet_l2_reachability_refresh_interval => "LocalSubnetL2ReachabilityRefreshInterval"
        windows_manage_firewall_rules => "WindowsManageFirewallRules"
        go_gc_threshold => "GoGCThreshold"
        go_memory_limit_mb => "GoMemoryLimitMB"
        go_max_procs => "GoMaxProcs"
        require_mtu_file => "RequireMTUFile"
        bpf_maglev_max_endpoints_per_service => "BPFMaglevMaxEndpointsPerService"
        bpf_maglev_max_services => "BPFMaglevMaxServices"
    }
    parameters
}

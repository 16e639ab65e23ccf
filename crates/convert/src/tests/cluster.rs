//! Settings, the cluster as a whole, and objects of Kubernetes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tortie_api::{Kind, Resource};
use tortie_config::Given;

use super::super::{endpoint_slice, service};
use super::{Converter, convert, only_update, problems, resource, value_of, with_metadata};
use tortie_engine::input::{Configuration, Update};

#[track_caller]
fn configuration(metadata: &Value, spec: &Value) -> Configuration {
    match only_update(&with_metadata(Kind::FelixConfiguration, metadata, spec)) {
        Update::Configuration(name, Some(configuration)) if name == metadata["name"] => {
            configuration
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn fields_become_parameters_by_name() {
    let spec = json!({
        "nodeSelector": "all()", "bpfLogLevel": "", "logPrefix": "p", "healthHost": "",
        "ipv6Support": true, "ipipMTU": 1480, "iptablesMarkMask": 4_294_901_760_i64,
        "routeRefreshInterval": "1m30s", "reportingInterval": "0s", "wireguardKeepAlive": "1.5s",
        "iptablesLockProbeInterval": "1500us", "netlinkTimeout": "100ms",
        "iptablesBackend": "NFT", "nftablesMode": "Auto", "natOutgoingExclusions": "IPPoolsOnly",
        "failsafeInboundHostPorts": [
            {"protocol": "TCP", "port": 22}, {"protocol": "UDP", "port": 53, "net": "10.0.0.0/8"},
            {"protocol": "TCP", "port": 179, "net": "fd00::/64"},
        ],
        "failsafeOutboundHostPorts": [],
        "routeTableRange": {"min": 1, "max": 250},
        "routeTableRanges": [{"min": 1, "max": 2}, {"min": 5, "max": 9}],
        "healthTimeoutOverrides": [{"name": "a", "timeout": "90s"}, {"name": "b", "timeout": "0s"}],
        "bpfConntrackTimeouts": {"tcpSynSent": "20s", "udpTimeout": "Auto"},
        "bpfLogFilters": {"eth0": "tcp", "all": "udp"},
        "externalNodesList": ["10.0.0.0/8", "10.1.0.1"],
        "kubeNodePortRanges": ["30000:32767", 80], "natPortRange": "1000:2000",
        "istioDSCPMark": "AF21", "bpfMapSizePerCpuConntrack": 5, "bpfPSNATPorts": 99,
    });
    let expected = [
        ("BPFConntrackTimeouts", "TCPSynSent=20s,UDPTimeout=Auto"),
        ("BPFLogFilters", "all=udp,eth0=tcp,"),
        ("BPFMapSizePerCPUConntrack", "5"),
        ("BPFPSNATPorts", "99"),
        ("ExternalNodesCIDRList", "10.0.0.0/8,10.1.0.1"),
        (
            "FailsafeInboundHostPorts",
            "tcp:22,udp:10.0.0.0/8:53,tcp:[fd00::/64]:179",
        ),
        ("FailsafeOutboundHostPorts", "none"),
        ("HealthHost", ""),
        ("HealthTimeoutOverrides", "a=1m30s,b=0s"),
        ("IpInIpMtu", "1480"),
        ("IptablesBackend", "NFT"),
        ("IptablesLockProbeIntervalMillis", "1.5"),
        ("IptablesMarkMask", "4294901760"),
        ("Ipv6Support", "true"),
        ("IstioDSCPMark", "AF21"),
        ("KubeNodePortRanges", "30000:32767,80"),
        ("LogPrefix", "p"),
        ("NATOutgoingExclusions", "IPPoolsOnly"),
        ("NATPortRange", "1000:2000"),
        ("NFTablesMode", "Auto"),
        ("NetlinkTimeoutSecs", "0.1"),
        ("ReportingIntervalSecs", "0"),
        ("RouteRefreshInterval", "90"),
        ("RouteTableRange", "1-250"),
        ("RouteTableRanges", "1-2,5-9"),
        ("WireguardPersistentKeepAlive", "1.5"),
    ];
    let expected: BTreeMap<String, Given> = expected
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.into()))
        .collect();
    for name in ["default", "node.n1"] {
        let configuration = configuration(&json!({"name": name}), &spec);
        assert_eq!(configuration.parameters, expected);
        assert_eq!(configuration.node_selector, "", "{name}");
    }
}

#[test]
fn annotations_win_over_fields() {
    let metadata = json!({"name": "default", "annotations": {
        "config.projectcalico.org/LogPrefix": "annotated",
        "config.projectcalico.org/Anything": "", "other": "x",
    }});
    let configuration = configuration(&metadata, &json!({"logPrefix": "p"}));
    let expected = json!({"parameters": {"Anything": "", "LogPrefix": "annotated"}});
    assert_eq!(serde_json::to_value(configuration).unwrap(), expected);
}

#[test]
fn settings_with_a_selector_are_for_the_nodes_that_it_finds() {
    let expected = json!({"nodeSelector": "has(gpu)", "parameters": {}});
    let found = configuration(
        &json!({"name": "gpu"}),
        &json!({"nodeSelector": "has(gpu)"}),
    );
    assert_eq!(serde_json::to_value(found).unwrap(), expected);

    let spec = json!({"nodeSelector": "has("});
    let converted = convert(&resource(Kind::FelixConfiguration, "", "gpu", &spec));
    assert_eq!(value_of(&converted.updates[0]), Value::Null);
    assert!(problems(&converted)[0].contains("spec.nodeSelector = \"has(\""));
    let converted = convert(&resource(Kind::FelixConfiguration, "", "default", &spec));
    assert_ne!(value_of(&converted.updates[0]), Value::Null);
}

#[test]
fn what_is_known_of_the_cluster_is_called_default() {
    let spec = json!({"clusterGUID": "g", "clusterType": "k8s", "datastoreReady": false});
    let update = only_update(&resource(Kind::ClusterInformation, "", "default", &spec));
    let parameters = json!({"ClusterGUID": "g", "ClusterType": "k8s"});
    let expected = json!({"cluster": {"parameters": parameters, "datastoreReady": false}});
    assert_eq!(serde_json::to_value(update).unwrap(), expected);

    let spec = json!({
        "serviceClusterIPs": [{"cidr": "10.96.0.0/12"}], "serviceExternalIPs": [{"cidr": "a"}],
        "serviceLoadBalancerIPs": [{"cidr": "b"}, {"cidr": "c"}],
        "localWorkloadPeeringIPV4": "169.254.1.1", "localWorkloadPeeringIPV6": "fd00::1",
    });
    let update = only_update(&resource(Kind::BgpConfiguration, "", "default", &spec));
    let expected = json!({"bgpConfiguration": {
        "serviceClusterCidrs": ["10.96.0.0/12"], "serviceExternalCidrs": ["a"],
        "serviceLoadBalancerCidrs": ["b", "c"],
        "localWorkloadPeeringIpV4": "169.254.1.1", "localWorkloadPeeringIpV6": "fd00::1",
    }});
    assert_eq!(serde_json::to_value(update).unwrap(), expected);

    for kind in [Kind::ClusterInformation, Kind::BgpConfiguration] {
        assert_eq!(
            convert(&resource(kind, "", "node.n", &json!({}))).updates,
            []
        );
        assert_eq!(Converter::new().remove(kind, "", "node.n"), []);
    }
}

#[test]
fn a_bgp_peer_has_selectors() {
    let spec = json!({
        "node": "n", "nodeSelector": "has(a)", "localWorkloadSelector": "has(b)", "peerIP": "x",
    });
    let update = only_update(&resource(Kind::BgpPeer, "", "p", &spec));
    let expected =
        json!({"node": "n", "nodeSelector": "has(a)", "localWorkloadSelector": "has(b)"});
    assert_eq!(value_of(&update), expected);
    let spec = json!({"nodeSelector": "a", "localWorkloadSelector": "b"});
    let converted = convert(&resource(Kind::BgpPeer, "", "p", &spec));
    assert_eq!(value_of(&converted.updates[0]), Value::Null);
    assert_eq!(converted.problems.len(), 2);
}

#[test]
fn a_live_migration_has_a_source_and_a_target() {
    let check = |spec: Value, expected: Value| {
        let metadata = json!({"name": "m", "namespace": "ns", "uid": "u"});
        let update = only_update(&with_metadata(Kind::LiveMigration, &metadata, &spec));
        assert_eq!(value_of(&update), expected);
    };
    let ids = json!({"hostname": "n", "orchestratorID": "k8s", "workloadID": "ns/w"});
    let mut endpoint = ids.clone();
    endpoint["endpointID"] = json!("eth0");
    let workload = json!({"node": "n", "orchestrator": "k8s", "workload": "ns/w"});
    let mut key = workload.clone();
    key["endpoint"] = json!("eth0");
    check(json!({}), json!({"uid": "u"}));
    check(
        json!({"source": {"workload": ids}, "target": {"selector": "has(a)"}}),
        json!({"uid": "u", "source": {"workload": workload}, "target": {"selector": "has(a)"}}),
    );
    check(
        json!({"source": {"workloadEndpoint": endpoint}, "target": {"workloadEndpoint": endpoint}}),
        json!({"uid": "u", "source": {"endpoint": key}, "target": {"endpoint": key}}),
    );
    let spec = json!({"target": {"selector": "("}});
    let converted = convert(&resource(Kind::LiveMigration, "ns", "m", &spec));
    assert_eq!(value_of(&converted.updates[0]), Value::Null);
    assert!(problems(&converted)[0].contains("spec.target.selector = \"(\""));
}

#[test]
fn an_endpoint_slice_has_addresses_and_ports() {
    let slice = json!({
        "addressType": "IPv4",
        "metadata": {"name": "s", "namespace": "ns", "labels": {"kubernetes.io/service-name": "web"}},
        "endpoints": [{"addresses": ["10.0.0.1", "host.example"]}, {"addresses": ["fd00::1"]}],
        "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}, {"protocol": "TCP"}],
    });
    let update = endpoint_slice(&serde_json::from_value(slice).unwrap());
    let expected = json!({"endpointSlice": [{"namespace": "ns", "name": "s"}, {
        "service": "web", "addresses": ["10.0.0.1", "fd00::1"],
        "ports": [{"protocol": "TCP", "port": 80}, {"protocol": "UDP", "port": 53}],
    }]});
    assert_eq!(serde_json::to_value(update).unwrap(), expected);
}

#[test]
fn a_service_has_addresses_and_ports() {
    let object = json!({
        "metadata": {"name": "web", "namespace": "ns"},
        "spec": {
            "type": "LoadBalancer", "clusterIPs": ["10.96.0.1", "fd00::1"],
            "loadBalancerIP": "192.0.2.1", "externalIPs": ["192.0.2.2"],
            "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.3"}, {"hostname": "x"}]}},
    });
    let update = service(&serde_json::from_value(object).unwrap());
    let expected = json!({"service": [{"namespace": "ns", "name": "web"}, {
        "type": "LoadBalancer", "clusterIps": ["10.96.0.1", "fd00::1"],
        "loadBalancerIp": "192.0.2.1", "loadBalancerIngressIps": ["192.0.2.3"],
        "externalIps": ["192.0.2.2"],
        "ports": [
            {"protocol": "TCP", "port": 80, "nodePort": 30080}, {"protocol": "UDP", "port": 53},
        ],
    }]});
    assert_eq!(serde_json::to_value(update).unwrap(), expected);
}

#[test]
fn nothing_that_can_be_stored_makes_it_panic() {
    let mut converter = Converter::new();
    for &kind in Kind::ALL {
        for _ in 0..2 {
            converter.set(&Resource::empty(kind));
        }
        converter.remove(kind, "", "");
        converter.remove(kind, "x", "y");
    }
}

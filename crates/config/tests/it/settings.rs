//! What holds where nothing is said, and what values become.

use std::{net::Ipv4Addr, path::PathBuf, time::Duration};

use tortie_config::{
    AllowAction, ChainInsertMode, Config, DenyAction, EndpointToHostAction, FailsafePort,
    IptablesBackend, Kind, NftablesMode, Parameter, PortRange, ProgramClusterRoutes, Resolved,
    RouteSource, ServiceLoopPrevention, SourceSpoofing, Sources, TransportProtocol, parameters,
    resolve,
};

fn file(values: &[(&str, &str)]) -> Resolved {
    let owned = |&(name, text): &(&str, &str)| (name.to_owned(), text.to_owned());
    resolve(&Sources {
        file: values.iter().map(owned).collect(),
        ..Sources::default()
    })
}

fn set(name: &str, text: &str) -> Resolved {
    file(&[(name, text)])
}

fn defaults() -> Config {
    let resolved = file(&[]);
    assert_eq!(resolved.problems, []);
    resolved.config
}

#[test]
fn defaults_are_calicos() {
    let Config {
        hostname,
        cluster_type,
        ipv6,
        ip_forwarding,
        interfaces,
        tables,
        policy,
        ip_sets,
        routes,
        encap,
        nat,
        failsafe,
        metadata,
        health,
        metrics,
        reporting,
    } = defaults();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!((hostname, cluster_type.as_str()), (None, ""));
    assert!(ipv6 && ip_forwarding);
    assert_eq!(interfaces.prefixes, ["cali"]);
    assert!(interfaces.exclude[0].is_match("kube-ipvs0"));
    assert_eq!(interfaces.refresh_interval, seconds(90));

    assert_eq!(tables.nftables_mode, NftablesMode::Auto);
    assert_eq!(tables.iptables_backend, IptablesBackend::Auto);
    assert_eq!(tables.chain_insert_mode, ChainInsertMode::Insert);
    assert_eq!(tables.iptables_lock_probe, Duration::from_millis(50));
    for nftables in [true, false] {
        let backend = tables.backend(nftables);
        assert_eq!(backend.filter_allow, AllowAction::Accept);
        assert_eq!(backend.mangle_allow, AllowAction::Accept);
        assert_eq!(backend.filter_deny, DenyAction::Drop);
        assert_eq!(backend.mark_mask, 0xffff_0000);
        assert_eq!(backend.refresh_interval, seconds(180));
    }

    assert_eq!(policy.endpoint_to_host, EndpointToHostAction::Drop);
    assert_eq!(policy.service_loop_prevention, ServiceLoopPrevention::Drop);
    assert_eq!(policy.source_spoofing, SourceSpoofing::Disabled);
    assert!(!policy.allow_conntrack_invalid);
    assert_eq!(policy.log.prefix, "calico-packet");
    assert_eq!(
        (policy.log.rate_limit, policy.log.rate_limit_burst),
        (None, 5)
    );
    assert_eq!(
        (ip_sets.refresh_interval, ip_sets.max_size),
        (seconds(90), 1_048_576)
    );

    assert_eq!(routes.refresh_interval, seconds(90));
    assert_eq!(routes.protocol, 3);
    assert_eq!(routes.source, RouteSource::CalicoIpam);
    assert_eq!(
        routes.program_cluster_routes,
        ProgramClusterRoutes::IpipOnly
    );
    assert_eq!(
        (routes.normal_priority_v4, routes.normal_priority_v6),
        (1024, 1024)
    );

    assert_eq!((encap.vxlan, encap.ipip), (None, None));
    assert_eq!(encap.vxlan_port, 4789);
    assert_eq!(
        (nat.ports, nat.outgoing_address, nat.outgoing_interface),
        (None, None, None)
    );
    assert_eq!(
        nat.node_ports,
        [PortRange {
            first: 30_000,
            last: 32_767
        }]
    );

    let ports = |protocol, ports: &[FailsafePort]| -> Vec<u16> {
        let of_protocol = ports.iter().filter(|port| port.protocol == protocol);
        of_protocol.map(|port| port.port).collect()
    };
    let (tcp, udp) = (TransportProtocol::Tcp, TransportProtocol::Udp);
    let inbound = &failsafe.inbound;
    assert_eq!(
        ports(tcp, inbound),
        [22, 179, 2379, 2380, 5473, 6443, 6666, 6667]
    );
    assert_eq!(ports(udp, inbound), [68]);
    let outbound = &failsafe.outbound;
    assert_eq!(
        ports(tcp, outbound),
        [179, 2379, 2380, 5473, 6443, 6666, 6667]
    );
    assert_eq!(ports(udp, outbound), [53, 67]);

    assert_eq!(
        (metadata.address.as_deref(), metadata.port),
        (Some("127.0.0.1"), 8775)
    );
    assert_eq!(
        (health.enabled, health.host.as_str(), health.port),
        (false, "localhost", 9099)
    );
    assert_eq!(
        (metrics.enabled, metrics.host, metrics.port),
        (false, None, 9091)
    );
    assert_eq!(
        reporting.endpoint_status_folder,
        Some(PathBuf::from("/var/run/calico"))
    );
}

/// A value that the parameter takes and that is not its default.
fn another_value(parameter: &Parameter) -> String {
    let is_default =
        |text: &str| parameter.kind.parse(text).ok() == Some(parameter.default_value());
    let candidates: &[&str] = match parameter.kind {
        Kind::OneOf(options) => options,
        _ => &[
            "true", "false", "7", "3:5", "0x3f", "10.9.8.7", "fd00::7", "7/second", "7-9", "a=7s",
            "/bin/sh", "other", "http://h", "h:7",
        ],
    };
    candidates
        .iter()
        .find(|text| parameter.kind.parse(text).is_ok() && !is_default(text))
        .map_or_else(
            || panic!("no other value for {}", parameter.name),
            |text| (*text).to_owned(),
        )
}

#[test]
fn who_sets_what_is_not_acted_on_is_told_what_follows() {
    for parameter in parameters() {
        let is_told = !parameter.consequence.is_empty();
        assert_eq!(is_told, !parameter.acted_on, "{}", parameter.name);
    }
}

#[test]
fn the_configuration_has_what_is_acted_on_and_nothing_else() {
    let before = defaults();
    for parameter in parameters() {
        let resolved = set(parameter.name, &another_value(parameter));
        assert_eq!(resolved.problems, [], "{}", parameter.name);
        assert_eq!(
            resolved.config != before,
            parameter.acted_on,
            "{}",
            parameter.name
        );
    }
}

#[test]
fn none_and_the_outermost_numbers_are_read_for_every_parameter() {
    for parameter in parameters() {
        set(parameter.name, "none");
        if let Kind::Int { min, max } = parameter.kind {
            for number in [min, max] {
                assert_eq!(set(parameter.name, &number.to_string()).problems, []);
            }
        }
        if let Kind::OneOf(options) = parameter.kind {
            for option in options {
                assert_eq!(set(parameter.name, option).problems, []);
            }
        }
    }
}

#[test]
fn values_become_types() {
    let values = [
        ("InterfacePrefix", "tap,cali"),
        ("NATPortRange", "32768:60999"),
        ("NATOutgoingAddress", "10.0.0.1"),
        ("VXLANEnabled", "n"),
        ("RouteTableRange", "10-20"),
        ("ProgramClusterRoutes", "enabled"),
        ("IptablesRefreshInterval", "-1"),
    ];
    let resolved = file(&values);
    assert_eq!(resolved.problems, []);
    let config = resolved.config;
    assert_eq!(config.interfaces.prefixes, ["tap", "cali"]);
    assert_eq!(
        config.nat.ports,
        Some(PortRange {
            first: 32_768,
            last: 60_999
        })
    );
    assert_eq!(
        config.nat.outgoing_address,
        Some(Ipv4Addr::new(10, 0, 0, 1))
    );
    assert_eq!(config.encap.vxlan, Some(false));
    let routes = config.routes.program_cluster_routes;
    assert!(routes.ipip() && routes.no_encap());
    assert_eq!(config.tables.iptables.refresh_interval, None);

    assert_eq!(set("NATPortRange", "0").config.nat.ports, None);
}

#[test]
fn openstack_is_recognised_by_what_only_it_needs() {
    let cases = [
        ("LogPrefix", "x", false),
        ("ClusterType", "k8s", false),
        ("ClusterType", "k8s,OpenStack", true),
        ("MetadataAddr", "10.0.0.1", true),
        ("MetadataAddr", "127.0.0.1", false),
        ("MetadataAddr", "none", false),
        ("MetadataPort", "1234", true),
        ("MetadataPort", "none", false),
        ("InterfacePrefix", "cali,tap", true),
    ];
    for (name, text, expected) in cases {
        assert_eq!(
            set(name, text).config.is_openstack(),
            expected,
            "{name}={text}"
        );
    }
}

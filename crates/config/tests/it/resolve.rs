//! Which source wins, and what is refused.

use tortie_config::{
    ChainInsertMode, Config, Origin, Reason, Resolved, ServiceLoopPrevention, Sources, explain,
    parameters, resolve, without_effect,
};

const ORIGINS: [Origin; 5] = [
    Origin::Environment,
    Origin::File,
    Origin::Node,
    Origin::Selected,
    Origin::Global,
];

fn set(sources: &mut Sources, origin: Origin, name: &str, text: &str) {
    let (name, datastore) = (name.to_owned(), &mut sources.datastore);
    let parameters = match origin {
        Origin::Environment => return drop(sources.environment.insert(name, text.to_owned())),
        Origin::File => return drop(sources.file.insert(name, text.to_owned())),
        Origin::Node => &mut datastore.node,
        Origin::Selected => &mut datastore.selected,
        Origin::Global => &mut datastore.global,
        Origin::Default => panic!("the default is not a source"),
    };
    parameters.insert(name, text.into());
}

fn with(values: &[(Origin, &str, &str)]) -> Resolved {
    let mut sources = Sources::default();
    for (origin, name, text) in values {
        set(&mut sources, *origin, name, text);
    }
    resolve(&sources)
}

fn environment(name: &str, text: &str) -> Resolved {
    with(&[(Origin::Environment, name, text)])
}

fn defaults() -> Config {
    let resolved = with(&[]);
    assert_eq!(resolved.problems, []);
    resolved.config
}

#[test]
fn of_every_two_sources_the_higher_wins() {
    for (rank, &higher) in ORIGINS.iter().enumerate() {
        for &lower in &ORIGINS[rank + 1..] {
            let resolved = with(&[
                (higher, "LogPrefix", "higher"),
                (lower, "logprefix", "lower"),
            ]);
            assert_eq!(
                resolved.config.policy.log.prefix, "higher",
                "{higher:?} {lower:?}"
            );
            assert_eq!(resolved.origin("LogPrefix"), Some(higher));
            assert_eq!(resolved.problems, []);
        }
    }
}

#[test]
fn sources_are_chosen_for_each_parameter_by_itself() {
    let names = [
        "LogPrefix",
        "HealthHost",
        "MaxIpsetSize",
        "VXLANPort",
        "HealthPort",
    ];
    for (index, origin) in ORIGINS.into_iter().enumerate() {
        let resolved = with(&[(origin, names[index], "17")]);
        assert_eq!(resolved.origin(names[index]), Some(origin));
        let others = names.iter().filter(|name| **name != names[index]);
        for other in others {
            assert_eq!(resolved.origin(other), Some(Origin::Default));
        }
    }
}

#[test]
fn an_empty_text_is_as_good_as_none_at_all() {
    for origin in ORIGINS {
        let resolved = with(&[(origin, "LogPrefix", "")]);
        assert_eq!(resolved.config.policy.log.prefix, "calico-packet");
        assert_eq!(resolved.origin("LogPrefix"), Some(Origin::Default));
        assert_eq!(resolved.problems, []);
    }
    let resolved = with(&[
        (Origin::Environment, "LogPrefix", ""),
        (Origin::Global, "LogPrefix", "global"),
    ]);
    assert_eq!(resolved.config.policy.log.prefix, "global");
}

#[test]
fn none_takes_a_default_away() {
    let resolved = with(&[
        (Origin::Environment, "FailsafeInboundHostPorts", "None"),
        (Origin::Global, "FailsafeInboundHostPorts", "tcp:22"),
        (Origin::Node, "LogSeverityFile", "none"),
        (Origin::Global, "EndpointStatusPathPrefix", "NONE"),
        (Origin::Global, "IptablesRefreshInterval", "none"),
        (Origin::Global, "ServiceLoopPrevention", "none"),
    ]);
    assert_eq!(resolved.problems, []);
    let config = resolved.config;
    assert_eq!(config.failsafe.inbound, []);
    assert!(!config.failsafe.outbound.is_empty());
    assert_eq!(config.reporting.endpoint_status_folder, None);
    assert_eq!(config.tables.iptables.refresh_interval, None);
    assert_eq!(
        config.policy.service_loop_prevention,
        ServiceLoopPrevention::Disabled
    );
}

#[test]
fn none_is_refused_where_a_value_is_required_and_that_is_fatal_everywhere() {
    for origin in ORIGINS {
        let resolved = with(&[(origin, "InterfacePrefix", "none")]);
        assert_eq!(resolved.problems.len(), 1);
        assert_eq!(resolved.problems[0].reason, Reason::Required);
        assert!(resolved.is_fatal());
        assert_eq!(resolved.config, defaults());
    }
}

#[test]
fn a_value_that_is_refused_leaves_the_next_source_its_say() {
    let resolved = with(&[
        (Origin::Environment, "HealthPort", "http"),
        (Origin::Node, "HealthPort", "-1"),
        (Origin::Global, "HealthPort", "1234"),
    ]);
    assert_eq!(resolved.config.health.port, 1234);
    assert_eq!(resolved.origin("HealthPort"), Some(Origin::Global));
    let told: Vec<String> = resolved.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "HealthPort: `http` from the environment is not used: expected a whole number from 0 to 65535",
            "HealthPort: `-1` from the datastore, for this node is not used: expected a whole number from 0 to 65535",
        ]
    );
    assert!(!resolved.is_fatal());
    assert_eq!(environment("HealthPort", "70000").config, defaults());
}

#[test]
fn refused_values_are_fatal_for_the_parameters_that_guard_the_host() {
    for name in [
        "FailsafeInboundHostPorts",
        "ChainInsertMode",
        "IptablesMarkMask",
    ] {
        for origin in ORIGINS {
            let resolved = with(&[(origin, name, "nonsense")]);
            assert!(resolved.is_fatal(), "{name} from {origin}");
            assert_eq!(resolved.config, defaults());
        }
    }
    // Also where a better source has a good value, because the bad one may come to count at any time.
    let shadowed = with(&[
        (Origin::Environment, "ChainInsertMode", "append"),
        (Origin::Global, "ChainInsertMode", "prepend"),
    ]);
    assert!(shadowed.is_fatal());
    assert_eq!(
        shadowed.config.tables.chain_insert_mode,
        ChainInsertMode::Append
    );
}

#[test]
fn the_datastore_cannot_say_which_node_this_is() {
    for origin in ORIGINS {
        let resolved = with(&[(origin, "FelixHostname", "node-1")]);
        if origin.is_local() {
            assert_eq!(resolved.config.hostname.as_deref(), Some("node-1"));
            assert_eq!(resolved.problems, []);
        } else {
            assert_eq!(resolved.config.hostname, None);
            assert_eq!(resolved.problems[0].reason, Reason::LocalOnly);
            assert!(!resolved.is_fatal());
        }
    }
}

#[test]
fn unknown_names_and_second_spellings_are_told() {
    let resolved = with(&[
        (Origin::Global, "NoSuchThing", "1"),
        (Origin::Global, "LOGPREFIX", "loud"),
        (Origin::Global, "LogPrefix", "right"),
        (Origin::Global, "logprefix", "quiet"),
    ]);
    assert_eq!(resolved.config.policy.log.prefix, "right");
    let mut told: Vec<_> = resolved
        .problems
        .iter()
        .map(|problem| (problem.value.as_str(), &problem.reason, problem.fatal))
        .collect();
    told.sort_by_key(|(value, ..)| *value);
    assert_eq!(
        told,
        [
            ("1", &Reason::Unknown, false),
            ("loud", &Reason::Repeated, false),
            ("quiet", &Reason::Repeated, false),
        ]
    );
}

#[test]
fn a_password_in_a_url_is_not_repeated() {
    let resolved = environment("EtcdEndpoints", "https://user:secret@etcd:2379");
    assert_eq!(resolved.problems.len(), 1);
    assert!(!resolved.problems[0].to_string().contains("secret"));
}

#[test]
fn everything_is_explained() {
    let resolved = with(&[
        (Origin::Environment, "logseverityscreen", "debug"),
        (Origin::Global, "BPFEnabled", "true"),
    ]);
    let explained = explain(&resolved);
    assert_eq!(explained.len(), parameters().count());
    let find = |name| explained.iter().find(|each| each.name == name).unwrap();
    let severity = find("LogSeverityScreen");
    assert_eq!(
        (severity.value.as_str(), severity.default),
        ("debug", "INFO")
    );
    assert_eq!(
        (severity.origin, severity.acted_on),
        (Origin::Environment, false)
    );
    let bpf = find("BPFEnabled");
    assert_eq!(
        (bpf.value.as_str(), bpf.origin, bpf.acted_on),
        ("true", Origin::Global, false)
    );
    let prefix = find("LogPrefix");
    assert_eq!(
        (prefix.value.as_str(), prefix.origin),
        ("calico-packet", Origin::Default)
    );
}

#[test]
fn what_is_set_and_not_acted_on_is_told_with_what_follows() {
    let resolved = with(&[
        (Origin::Global, "BPFEnabled", "true"),
        (Origin::Environment, "WireguardMTU", "1400"),
        // As it would be anyway, and one that is acted on.
        (Origin::Global, "WireguardListeningPort", "51820"),
        (Origin::Global, "WireguardEnabled", "true"),
        // What the agent was started with, what nobody sets, and what is so anyway.
        (Origin::Environment, "DatastoreType", "kubernetes"),
        (Origin::Global, "ReportingIntervalSecs", "0"),
        (
            Origin::Global,
            "ClusterGUID",
            "a47eb4986d574fe4a5c257648a18a8e7",
        ),
    ]);
    let told: Vec<String> = without_effect(&resolved)
        .iter()
        .map(ToString::to_string)
        .collect();
    let [wireguard, bpf] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(
        wireguard.starts_with("WireguardMTU: `1400` (")
            && wireguard.ends_with(
                "nothing is encrypted: there is no WireGuard device that could have this MTU"
            ),
        "{wireguard}"
    );
    assert!(
        bpf.starts_with("BPFEnabled: `true` (")
            && bpf.ends_with("BPF programs are not loaded: nftables or iptables enforces"),
        "{bpf}"
    );
}

#[test]
fn clear_text_is_allowed_by_who_starts_the_agent_alone() {
    for allows_cleartext in [false, true] {
        let resolved = resolve(&Sources {
            allows_cleartext,
            ..Sources::default()
        });
        assert_eq!(resolved.config.encap.allows_cleartext, allows_cleartext);
    }
}

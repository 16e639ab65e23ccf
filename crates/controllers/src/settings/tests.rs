use std::collections::BTreeMap;
use std::time::Duration;

use tortie_api::kube_controllers_configuration::{
    AutoHostEndpointConfig, ControllerMode, ControllersConfig, DefaultHostEndpointMode,
    MigrationControllerConfig, NodeControllerConfig, PolicyControllerConfig,
};

use tortie_client::connect::DatastoreType;

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

fn variables(given: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = given.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[track_caller]
fn with(given: &[(&str, &str)], spec: &KubeControllersConfigurationSpec) -> Resolved {
    resolve(&variables(given), DatastoreType::Etcdv3, spec).unwrap()
}

/// The names of the controllers that are on.
fn on(settings: &Settings) -> Vec<&'static str> {
    let controllers = [
        ("policy", settings.policy.is_some()),
        ("namespace", settings.namespace.is_some()),
        ("serviceaccount", settings.service_account.is_some()),
        ("workloadendpoint", settings.workload_endpoint.is_some()),
        ("node", settings.node.is_some()),
        ("loadbalancer", settings.load_balancer.is_some()),
    ];
    let on = controllers.into_iter().filter(|(_, on)| *on);
    on.map(|(name, _)| name).collect()
}

#[test]
fn the_resource_that_is_created_turns_everything_on() {
    let resolved = with(&[], &default_spec());
    let settings = &resolved.settings;
    assert_eq!(
        on(settings),
        [
            "policy",
            "namespace",
            "serviceaccount",
            "workloadendpoint",
            "node",
            "loadbalancer"
        ]
    );
    assert_eq!(settings.log_level, LogLevel::Info);
    assert_eq!(settings.compaction_period, Some(10 * MINUTE));
    assert_eq!(settings.metrics_port, Some(9094));
    assert!(settings.health_checks && settings.policy_name_migrator);
    let usual = Mirroring {
        period: Some(5 * MINUTE),
        workers: DEFAULT_WORKERS,
    };
    assert_eq!(settings.policy, Some(usual));
    let node = settings.node.as_ref().unwrap();
    assert!(node.delete_nodes && node.sync_labels && !node.host_endpoints.auto_create);
    assert_eq!(node.leak_grace_period, Some(15 * MINUTE));
    assert!(resolved.status.environment_vars.is_empty());
}

#[test]
fn an_empty_resource_turns_everything_off() {
    let resolved = with(&[], &KubeControllersConfigurationSpec::default());
    assert_eq!(on(&resolved.settings), [""; 0]);
    assert!(resolved.settings.policy_name_migrator);
    assert_eq!(resolved.origins["controllers.policy"], Origin::Default);
}

#[test]
fn the_variable_alone_says_which_controllers_are_on() {
    let given = [("ENABLED_CONTROLLERS", "node, profile")];
    let resolved = with(&given, &default_spec());
    assert_eq!(on(&resolved.settings), ["namespace", "node"]);
    let origin = Origin::Variable("ENABLED_CONTROLLERS");
    assert_eq!(resolved.origins["controllers.policy"], origin);
    assert_eq!(
        resolved.status.environment_vars["ENABLED_CONTROLLERS"],
        "node, profile"
    );
    let running = resolved.status.running_config.unwrap();
    assert!(running.controllers.policy.is_none() && running.controllers.namespace.is_some());
}

#[test]
fn a_period_comes_from_the_variable_the_section_or_the_usual() {
    let section = |period: Option<&str>| KubeControllersConfigurationSpec {
        controllers: ControllersConfig {
            policy: Some(PolicyControllerConfig {
                reconciler_period: period.map(|period| period.parse().unwrap()),
            }),
            ..ControllersConfig::default()
        },
        ..KubeControllersConfigurationSpec::default()
    };
    let period = |given: &[(&str, &str)], spec: &KubeControllersConfigurationSpec| {
        with(given, spec).settings.policy.unwrap().period
    };
    assert_eq!(period(&[], &section(Some("2m"))), Some(2 * MINUTE));
    assert_eq!(period(&[], &section(None)), Some(5 * MINUTE));
    assert_eq!(period(&[], &section(Some("0s"))), None);
    let variable = ("RECONCILER_PERIOD", "1m");
    assert_eq!(period(&[variable], &section(Some("2m"))), Some(MINUTE));
    let enabled = ("ENABLED_CONTROLLERS", "policy");
    let empty = KubeControllersConfigurationSpec::default();
    assert_eq!(period(&[enabled], &empty), None);
    assert_eq!(period(&[enabled, variable], &empty), Some(MINUTE));
    assert_eq!(period(&[enabled], &section(Some("2m"))), Some(2 * MINUTE));
}

#[test]
fn variables_win_over_the_resource() {
    let given = [
        ("LOG_LEVEL", "DEBUG"),
        ("COMPACTION_PERIOD", "0"),
        ("HEALTH_ENABLED", "f"),
        ("SYNC_NODE_LABELS", "false"),
        ("AUTO_HOST_ENDPOINTS", "Enabled"),
        ("POLICY_WORKERS", "3"),
    ];
    let resolved = with(&given, &default_spec());
    let settings = resolved.settings;
    assert_eq!(settings.log_level, LogLevel::Debug);
    assert_eq!(settings.compaction_period, None);
    assert!(!settings.health_checks);
    assert_eq!(settings.policy.unwrap().workers, 3);
    assert_eq!(settings.namespace.unwrap().workers, DEFAULT_WORKERS);
    let node = settings.node.unwrap();
    assert!(!node.sync_labels);
    assert!(node.host_endpoints.auto_create && node.host_endpoints.create_default);
    let status = resolved.status;
    assert_eq!(
        status.environment_vars.len(),
        5,
        "workers are no setting of the resource"
    );
    let running = status.running_config.unwrap();
    assert_eq!(running.log_severity_screen, "Debug");
    assert_eq!(running.health_checks, "Disabled");
    let node = running.controllers.node.unwrap();
    assert_eq!(
        (node.sync_labels.as_str(), node.reconciler_period),
        ("Disabled", None)
    );
    assert_eq!(node.host_endpoint.unwrap().auto_create, "Enabled");
}

#[test]
fn the_variable_for_host_endpoints_stands_for_the_whole_section() {
    let mut spec = default_spec();
    spec.controllers.node = Some(NodeControllerConfig {
        host_endpoint: Some(AutoHostEndpointConfig {
            auto_create: "Enabled".into(),
            create_default_host_endpoint: Some(DefaultHostEndpointMode::Disabled),
            templates: vec![Template::default()],
        }),
        ..NodeControllerConfig::default()
    });
    let node = with(&[], &spec).settings.node.unwrap();
    assert!(node.host_endpoints.auto_create && !node.host_endpoints.create_default);
    assert_eq!(node.host_endpoints.templates.len(), 1);
    assert_eq!(node.leak_grace_period, None);
    let node = with(&[("AUTO_HOST_ENDPOINTS", "disabled")], &spec)
        .settings
        .node
        .unwrap();
    assert!(!node.host_endpoints.auto_create && node.host_endpoints.create_default);
    assert!(node.host_endpoints.templates.is_empty());
}

#[test]
fn in_kubernetes_nothing_is_copied_and_nodes_are_neither_deleted_nor_labelled() {
    let resolved = resolve(
        &variables(&[("SYNC_NODE_LABELS", "true")]),
        DatastoreType::Kubernetes,
        &default_spec(),
    );
    let resolved = resolved.unwrap();
    assert_eq!(on(&resolved.settings), ["node", "loadbalancer"]);
    let node = resolved.settings.node.unwrap();
    assert!(!node.delete_nodes && !node.sync_labels);
    assert_eq!(
        resolved.status.environment_vars["DATASTORE_TYPE"],
        "kubernetes"
    );
}

#[test]
fn the_migrator_can_be_turned_off_and_ports_too() {
    let mut spec = default_spec();
    spec.prometheus_metrics_port = Some(0);
    spec.controllers.migration = Some(MigrationControllerConfig {
        policy_name_migrator: Some(ControllerMode::Disabled),
    });
    let settings = with(&[], &spec).settings;
    assert!(!settings.policy_name_migrator);
    assert_eq!(settings.metrics_port, None);
}

#[track_caller]
fn refused(given: &[(&str, &str)], expected: &[&str]) {
    let refused = resolve(&variables(given), DatastoreType::Etcdv3, &default_spec()).unwrap_err();
    let texts: Vec<String> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(texts, expected);
}

#[test]
fn what_cannot_be_used_is_refused_by_name_value_and_rule() {
    refused(
        &[("ENABLED_CONTROLLERS", "node,pods,policy")],
        &[
            "ENABLED_CONTROLLERS=\"node,pods,policy\" cannot be used: there is no controller pods; there are \
             workloadendpoint, profile, namespace, policy, node, serviceaccount, loadbalancer, and flannelmigration alone",
        ],
    );
    refused(
        &[("ENABLED_CONTROLLERS", "node,flannelmigration")],
        &[
            "ENABLED_CONTROLLERS=\"node,flannelmigration\" cannot be used: flannelmigration must be the only controller",
        ],
    );
    refused(
        &[
            ("LOG_LEVEL", "loud"),
            ("RECONCILER_PERIOD", "5"),
            ("HEALTH_ENABLED", "yes"),
        ],
        &[
            "LOG_LEVEL=\"loud\" cannot be used: must be panic, fatal, error, warning, info, debug or trace",
            "HEALTH_ENABLED=\"yes\" cannot be used: must be true or false",
            "RECONCILER_PERIOD=\"5\" cannot be used: must be a duration such as 30s, 5m or 1h30m; 0 turns it off",
        ],
    );
    refused(
        &[("AUTO_HOST_ENDPOINTS", "on"), ("PROFILE_WORKERS", "0")],
        &[
            "PROFILE_WORKERS=\"0\" cannot be used: must be a number from 1 on",
            "AUTO_HOST_ENDPOINTS=\"on\" cannot be used: must be enabled or disabled",
        ],
    );
}

#[test]
fn every_setting_is_explained_with_its_origin() {
    let resolved = with(&[("ENABLED_CONTROLLERS", "policy")], &default_spec());
    let rows = explain(&resolved);
    let row = |field: &str| {
        let row = rows.iter().find(|row| row.field == field).unwrap();
        (row.value.as_str(), row.origin.as_str())
    };
    assert_eq!(
        row("controllers.policy").0,
        "on, compares everything every 5m0s"
    );
    assert_eq!(row("controllers.policy").1, "ENABLED_CONTROLLERS");
    assert_eq!(row("controllers.node"), ("off", "ENABLED_CONTROLLERS"));
    assert_eq!(
        row("logSeverityScreen"),
        ("Info", "KubeControllersConfiguration")
    );
    assert_eq!(row("prometheusMetricsPort"), ("9094", "default"));
}

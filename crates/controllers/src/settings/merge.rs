//! Joins variables and the resource.

use std::collections::BTreeMap;
use std::time::Duration;

use tortie_api::kube_controllers_configuration::{
    AssignIps, AutoHostEndpointConfig, ControllerMode, ControllersConfig, DefaultHostEndpointMode,
    KubeControllersConfigurationSpec, KubeControllersConfigurationStatus,
    LoadBalancerControllerConfig, MigrationControllerConfig, NamespaceControllerConfig,
    NodeControllerConfig, PolicyControllerConfig, ServiceAccountControllerConfig,
    WorkloadEndpointControllerConfig,
};
use tortie_api::scalar::GoDuration;
use tortie_client::connect::DatastoreType;
use tortie_variables as variables;

use super::read::{
    AUTO_HOST_ENDPOINTS, COMPACTION_PERIOD, Controller, ENABLED_CONTROLLERS, HEALTH_ENABLED,
    LOG_LEVEL, RECONCILER_PERIOD, SYNC_NODE_LABELS, Variables, duration, log_level,
};
use super::{
    DEFAULT_COMPACTION_PERIOD, DEFAULT_METRICS_PORT, DEFAULT_PERIOD, DEFAULT_WORKERS,
    HostEndpointSettings, LoadBalancerSettings, LogLevel, Mirroring, NodeSettings, Origin, Refused,
    Resolved, Settings,
};

/// The settings that follow from the variables of the process and the resource; or every variable that cannot be used.
pub fn resolve(
    variables: &BTreeMap<String, String>,
    datastore: DatastoreType,
    spec: &KubeControllersConfigurationSpec,
) -> Result<Resolved, Vec<Refused>> {
    let mut merge = Merge {
        variables: Variables::new(variables),
        spec,
        origins: BTreeMap::new(),
    };
    let settings = merge.settings(datastore);
    let Merge {
        variables, origins, ..
    } = merge;
    if !variables.refused.is_empty() {
        return Err(variables.refused);
    }
    let mut environment_vars = variables.overrides();
    if datastore == DatastoreType::Kubernetes && settings.node.is_some() {
        environment_vars.insert(variables::DATASTORE_TYPE.into(), "kubernetes".into());
    }
    let status = KubeControllersConfigurationStatus {
        running_config: Some(running_config(&settings)),
        environment_vars,
    };
    Ok(Resolved {
        settings,
        status,
        origins,
    })
}

struct Merge<'a> {
    variables: Variables<'a>,
    spec: &'a KubeControllersConfigurationSpec,
    origins: BTreeMap<&'static str, Origin>,
}

impl Merge<'_> {
    fn settings(&mut self, datastore: DatastoreType) -> Settings {
        let spec = self.spec;
        let level = self.variables.log_level();
        let log_level = self.first(
            "logSeverityScreen",
            (LOG_LEVEL, level),
            log_level(&spec.log_severity_screen),
            LogLevel::Info,
        );
        let given = self.variables.duration(COMPACTION_PERIOD);
        let compaction_period = self.first(
            "etcdV3CompactionPeriod",
            (COMPACTION_PERIOD, given),
            spec.etcd_v3_compaction_period.and_then(duration),
            DEFAULT_COMPACTION_PERIOD,
        );
        let given = self.variables.boolean(HEALTH_ENABLED);
        let health_checks = self.first(
            "healthChecks",
            (HEALTH_ENABLED, given),
            on_off(&spec.health_checks),
            true,
        );
        let metrics_port = self.first(
            "prometheusMetricsPort",
            ("", None),
            spec.prometheus_metrics_port
                .and_then(|port| u16::try_from(port).ok()),
            DEFAULT_METRICS_PORT,
        );
        let enabled = self.variables.controllers();
        let period = self.variables.duration(RECONCILER_PERIOD);
        let sections = &spec.controllers;
        let sources = [
            (
                Controller::Policy,
                "controllers.policy",
                variables::POLICY_WORKERS,
                sections
                    .policy
                    .as_ref()
                    .map(|section| Section(section.reconciler_period)),
            ),
            (
                Controller::Namespace,
                "controllers.namespace",
                variables::PROFILE_WORKERS,
                sections
                    .namespace
                    .as_ref()
                    .map(|section| Section(section.reconciler_period)),
            ),
            (
                Controller::ServiceAccount,
                "controllers.serviceAccount",
                variables::PROFILE_WORKERS,
                sections
                    .service_account
                    .as_ref()
                    .map(|section| Section(section.reconciler_period)),
            ),
            (
                Controller::WorkloadEndpoint,
                "controllers.workloadEndpoint",
                variables::WORKLOAD_ENDPOINT_WORKERS,
                sections
                    .workload_endpoint
                    .as_ref()
                    .map(|section| Section(section.reconciler_period)),
            ),
        ];
        let [policy, namespace, service_account, workload_endpoint] =
            sources.map(|(controller, path, workers, section)| {
                let workers = self.variables.count(workers).unwrap_or(DEFAULT_WORKERS);
                self.is_on(path, controller, enabled.as_deref(), section.is_some())
                    .then(|| Mirroring {
                        period: mirroring_period(period, section),
                        workers,
                    })
            });
        // Kubernetes' objects need no copies in Kubernetes, and must not have them.
        let is_own = datastore != DatastoreType::Kubernetes;
        let node = self.is_on(
            "controllers.node",
            Controller::Node,
            enabled.as_deref(),
            sections.node.is_some(),
        );
        // Read by Calico's node controller for nothing; a wrong value is refused all the same.
        self.variables.count(variables::NODE_WORKERS);
        let node_settings = self.node(datastore);
        let load_balancer = self.is_on(
            "controllers.loadBalancer",
            Controller::LoadBalancer,
            enabled.as_deref(),
            sections.load_balancer.is_some(),
        );
        let assign_ips = self.first(
            "controllers.loadBalancer.assignIPs",
            ("", None),
            sections
                .load_balancer
                .as_ref()
                .and_then(|section| section.assign_ips),
            AssignIps::AllServices,
        );
        let migrator = sections
            .migration
            .as_ref()
            .and_then(|section| section.policy_name_migrator);
        let policy_name_migrator = self.first(
            "controllers.migration.policyNameMigrator",
            ("", None),
            migrator,
            ControllerMode::Enabled,
        );
        Settings {
            log_level,
            compaction_period: Some(compaction_period).filter(|period| !period.is_zero()),
            health_checks,
            metrics_port: Some(metrics_port).filter(|port| *port != 0),
            profile_port: spec.debug_profile_port.filter(|port| *port != 0),
            policy: policy.filter(|_| is_own),
            namespace: namespace.filter(|_| is_own),
            service_account: service_account.filter(|_| is_own),
            workload_endpoint: workload_endpoint.filter(|_| is_own),
            node: node.then_some(node_settings),
            load_balancer: load_balancer.then_some(LoadBalancerSettings { assign_ips }),
            policy_name_migrator: policy_name_migrator == ControllerMode::Enabled,
        }
    }

    fn node(&mut self, datastore: DatastoreType) -> NodeSettings {
        let section = self.spec.controllers.node.as_ref();
        let given = self.variables.boolean(SYNC_NODE_LABELS);
        let sync_labels = self.first(
            "controllers.node.syncLabels",
            (SYNC_NODE_LABELS, given),
            section.and_then(|section| on_off(&section.sync_labels)),
            true,
        );
        let given = self.variables.switch(AUTO_HOST_ENDPOINTS);
        let resource = section.and_then(|section| section.host_endpoint.as_ref());
        let auto_create = self.first(
            "controllers.node.hostEndpoint.autoCreate",
            (AUTO_HOST_ENDPOINTS, given),
            resource.and_then(|resource| on_off(&resource.auto_create)),
            false,
        );
        // The variable stands for the whole section.
        let resource = resource.filter(|_| given.is_none());
        let create_default = resource.and_then(|resource| resource.create_default_host_endpoint);
        NodeSettings {
            delete_nodes: datastore != DatastoreType::Kubernetes,
            sync_labels: sync_labels && datastore != DatastoreType::Kubernetes,
            host_endpoints: HostEndpointSettings {
                auto_create,
                create_default: create_default != Some(DefaultHostEndpointMode::Disabled),
                templates: resource
                    .map(|resource| resource.templates.clone())
                    .unwrap_or_default(),
            },
            leak_grace_period: section
                .and_then(|section| section.leak_grace_period)
                .and_then(duration),
        }
    }

    /// The variable's value, or else the resource's, or else the default, with a note which it was.
    fn first<T>(
        &mut self,
        path: &'static str,
        (variable, given): (&'static str, Option<T>),
        resource: Option<T>,
        default: T,
    ) -> T {
        let (value, origin) = match (given, resource) {
            (Some(value), _) => (value, Origin::Variable(variable)),
            (None, Some(value)) => (value, Origin::Resource),
            (None, None) => (default, Origin::Default),
        };
        self.origins.insert(path, origin);
        value
    }

    fn is_on(
        &mut self,
        path: &'static str,
        controller: Controller,
        enabled: Option<&[Controller]>,
        has_section: bool,
    ) -> bool {
        let given = enabled.map(|enabled| enabled.contains(&controller));
        let resource = has_section.then_some(true);
        self.first(path, (ENABLED_CONTROLLERS, given), resource, false)
    }
}

/// The section of a controller in the resource, with its period.
#[derive(Clone, Copy)]
struct Section(Option<GoDuration>);

/// A section without a period means the usual one; no section at all means never.
fn mirroring_period(variable: Option<Duration>, section: Option<Section>) -> Option<Duration> {
    let resource =
        section.map(|Section(period)| period.and_then(duration).unwrap_or(DEFAULT_PERIOD));
    variable.or(resource).filter(|period| !period.is_zero())
}

fn on_off(text: &str) -> Option<bool> {
    match text {
        "Enabled" => Some(true),
        "Disabled" => Some(false),
        _ => None,
    }
}

/// The settings in the form of the resource.
fn running_config(settings: &Settings) -> KubeControllersConfigurationSpec {
    let switch = |on: bool| if on { "Enabled" } else { "Disabled" }.to_owned();
    let period = |mirroring: &Mirroring| Some(go_duration(mirroring.period.unwrap_or_default()));
    KubeControllersConfigurationSpec {
        log_severity_screen: settings.log_level.to_string(),
        health_checks: switch(settings.health_checks),
        etcd_v3_compaction_period: Some(go_duration(
            settings.compaction_period.unwrap_or_default(),
        )),
        prometheus_metrics_port: Some(i64::from(settings.metrics_port.unwrap_or_default())),
        // Nothing is served there.
        debug_profile_port: None,
        controllers: ControllersConfig {
            node: settings.node.as_ref().map(|node| NodeControllerConfig {
                reconciler_period: None,
                sync_labels: switch(node.sync_labels),
                host_endpoint: Some(AutoHostEndpointConfig {
                    auto_create: switch(node.host_endpoints.auto_create),
                    create_default_host_endpoint: Some(if node.host_endpoints.create_default {
                        DefaultHostEndpointMode::Enabled
                    } else {
                        DefaultHostEndpointMode::Disabled
                    }),
                    templates: node.host_endpoints.templates.clone(),
                }),
                leak_grace_period: node.leak_grace_period.map(go_duration),
            }),
            policy: settings.policy.as_ref().map(|on| PolicyControllerConfig {
                reconciler_period: period(on),
            }),
            workload_endpoint: settings.workload_endpoint.as_ref().map(|on| {
                WorkloadEndpointControllerConfig {
                    reconciler_period: period(on),
                }
            }),
            service_account: settings.service_account.as_ref().map(|on| {
                ServiceAccountControllerConfig {
                    reconciler_period: period(on),
                }
            }),
            namespace: settings
                .namespace
                .as_ref()
                .map(|on| NamespaceControllerConfig {
                    reconciler_period: period(on),
                }),
            load_balancer: settings
                .load_balancer
                .map(|on| LoadBalancerControllerConfig {
                    assign_ips: Some(on.assign_ips),
                }),
            migration: Some(MigrationControllerConfig {
                policy_name_migrator: Some(if settings.policy_name_migrator {
                    ControllerMode::Enabled
                } else {
                    ControllerMode::Disabled
                }),
            }),
        },
    }
}

/// Durations come from variables and resources that hold them in the same form.
fn go_duration(duration: Duration) -> GoDuration {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX / 1_000_000_000);
    format!("{}ns", duration.as_nanos())
        .parse()
        .unwrap_or_else(|_| GoDuration::from_secs(seconds))
}

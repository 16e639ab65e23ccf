//! What the controllers are told: process variables, and over them nothing; under them the
//! `KubeControllersConfiguration` named `default`.
//!
//! # Invariants
//! - Pure: variables and the resource are arguments.
//! - A value that cannot be used is refused with the variable, the value and what is allowed; never replaced silently.
//!   The resource is validated where it is written; what is wrong in it all the same counts as not said.

mod explain;
mod merge;
mod read;
#[cfg(test)]
mod tests;

pub use explain::{Explained, explain};
pub use merge::resolve;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tortie_api::kube_controllers_configuration::{
    AssignIps, KubeControllersConfigurationSpec, KubeControllersConfigurationStatus, Template,
};

pub use tortie_migrate::Refused;

/// The name of the resource that holds the settings.
pub const RESOURCE_NAME: &str = "default";

/// How often all that a controller is responsible for is compared with the datastore.
pub const DEFAULT_PERIOD: Duration = Duration::from_mins(5);

/// How many writes of one controller are on their way at once, unless a variable says otherwise.
pub const DEFAULT_WORKERS: usize = 16;

/// How often etcd forgets its history.
pub const DEFAULT_COMPACTION_PERIOD: Duration = Duration::from_mins(10);

pub const DEFAULT_METRICS_PORT: u16 = 9094;

/// All that the process and its controllers are told.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The lowest severity that is logged.
    pub log_level: LogLevel,
    /// How often etcd forgets its history; never if nothing.
    pub compaction_period: Option<Duration>,
    /// Whether the datastore and the API server are asked now and then whether they are well.
    pub health_checks: bool,
    /// The port of the metrics, if they are served.
    pub metrics_port: Option<u16>,
    /// The port where profiles of the process are asked for. They are not offered: what takes them from within a process
    /// walks the stack in a signal's handler, which may crash or block it, and profiles of memory need another allocator.
    /// `perf record -g -p` does the same from outside, without a setting.
    pub profile_port: Option<i32>,
    /// Keeps policies equal to those of Kubernetes.
    pub policy: Option<Mirroring>,
    /// Keeps a profile for each namespace.
    pub namespace: Option<Mirroring>,
    /// Keeps a profile for each service account.
    pub service_account: Option<Mirroring>,
    /// Keeps the labels of endpoints equal to those of their pods.
    pub workload_endpoint: Option<Mirroring>,
    /// Looks after nodes, their host endpoints and their addresses.
    pub node: Option<NodeSettings>,
    /// Gives addresses to services.
    pub load_balancer: Option<LoadBalancerSettings>,
    /// Renames policies that old versions stored under another name.
    pub policy_name_migrator: bool,
}

/// How one of the controllers works that copy objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mirroring {
    /// How often everything is compared with the datastore; never if nothing.
    pub period: Option<Duration>,
    /// How many writes are on their way at once.
    pub workers: usize,
}

/// What the node controller is told.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSettings {
    /// Whether nodes go when those of Kubernetes go.
    pub delete_nodes: bool,
    /// Whether labels of Kubernetes' nodes are copied.
    pub sync_labels: bool,
    /// The host endpoints that nodes get.
    pub host_endpoints: HostEndpointSettings,
    /// How long an address must look leaked before it is freed. Nothing: only addresses of nodes that are gone are.
    /// Zero: none is for its age.
    pub leak_grace_period: Option<Duration>,
}

/// The host endpoints that nodes get.
#[derive(Debug, Clone, PartialEq)]
pub struct HostEndpointSettings {
    /// Whether there are any; those that were made before go if not.
    pub auto_create: bool,
    /// Whether each node has one for all its interfaces.
    pub create_default: bool,
    /// Further ones.
    pub templates: Vec<Template>,
}

/// What the controller of services' addresses is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadBalancerSettings {
    /// Which services get an address.
    pub assign_ips: AssignIps,
}

/// Severities, by Calico's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Nothing is logged.
    None,
    /// Only what ends the process.
    Panic,
    /// Only what ends the process.
    Fatal,
    /// What a person must look at.
    Error,
    /// What heals by itself.
    Warning,
    /// What changed.
    Info,
    /// Each decision.
    Debug,
    /// Each object.
    Trace,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This variable of the process.
    Variable(&'static str),
    /// The `KubeControllersConfiguration`.
    Resource,
    /// Nobody said anything.
    Default,
}

/// The settings, where they come from, and what is told about them in the resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    pub settings: Settings,
    /// What the status of the resource is to say.
    pub status: KubeControllersConfigurationStatus,
    /// Where each value comes from, by the path of its field in the resource.
    pub origins: BTreeMap<&'static str, Origin>,
}

/// The resource as it is created where there is none.
pub fn default_spec() -> KubeControllersConfigurationSpec {
    use tortie_api::kube_controllers_configuration as resource;
    use tortie_api::scalar::GoDuration;

    let period = Some(GoDuration::from_secs(300));
    KubeControllersConfigurationSpec {
        log_severity_screen: "Info".into(),
        health_checks: "Enabled".into(),
        etcd_v3_compaction_period: Some(GoDuration::from_secs(600)),
        controllers: resource::ControllersConfig {
            node: Some(resource::NodeControllerConfig {
                reconciler_period: period,
                sync_labels: "Enabled".into(),
                host_endpoint: Some(resource::AutoHostEndpointConfig {
                    auto_create: "Disabled".into(),
                    create_default_host_endpoint: Some(resource::DefaultHostEndpointMode::Enabled),
                    templates: Vec::new(),
                }),
                leak_grace_period: Some(GoDuration::from_secs(900)),
            }),
            policy: Some(resource::PolicyControllerConfig {
                reconciler_period: period,
            }),
            workload_endpoint: Some(resource::WorkloadEndpointControllerConfig {
                reconciler_period: period,
            }),
            service_account: Some(resource::ServiceAccountControllerConfig {
                reconciler_period: period,
            }),
            namespace: Some(resource::NamespaceControllerConfig {
                reconciler_period: period,
            }),
            load_balancer: Some(resource::LoadBalancerControllerConfig {
                assign_ips: Some(AssignIps::AllServices),
            }),
            migration: Some(resource::MigrationControllerConfig {
                policy_name_migrator: Some(resource::ControllerMode::Enabled),
            }),
        },
        ..KubeControllersConfigurationSpec::default()
    }
}

impl LogLevel {
    /// As the filter of the log spells it.
    pub fn as_filter(self) -> &'static str {
        match self {
            Self::None => "off",
            Self::Panic | Self::Fatal | Self::Error => "error",
            Self::Warning => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Panic => "Panic",
            Self::Fatal => "Fatal",
            Self::Error => "Error",
            Self::Warning => "Warning",
            Self::Info => "Info",
            Self::Debug => "Debug",
            Self::Trace => "Trace",
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::Resource => f.write_str("KubeControllersConfiguration"),
            Self::Default => f.write_str("default"),
        }
    }
}

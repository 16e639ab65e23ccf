//! `KubeControllersConfiguration`: settings of kube-controllers, kept in one object named
//! `default`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::scalar::GoDuration;

/// Process settings and one section per controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["controllers"]))]
pub struct KubeControllersConfigurationSpec {
    /// Lowest severity written to the standard output. Default `Info`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "enum" = ["None", "Debug", "Info", "Warning", "Error", "Fatal", "Panic"]))]
    pub log_severity_screen: String,
    /// Whether the process keeps the report behind its health probes. Default `Enabled`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "enum" = ["Enabled", "Disabled"], "x-default" = "Enabled", "x-check" = "oneof=Enabled Disabled"))]
    pub health_checks: String,
    /// Interval between etcd compactions; 0 turns them off. Default 10m.
    #[serde(skip_serializing_if = "is_default")]
    pub etcd_v3_compaction_period: Option<GoDuration>,
    /// TCP port that serves metrics; 0 turns it off. Default 9094.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 65535))]
    pub prometheus_metrics_port: Option<i64>,
    /// Controllers to run; a section that is absent leaves its controller off.
    pub controllers: ControllersConfig,
    /// Port on localhost that serves profiling data; off when unset or 0.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("minimum" = 0, "maximum" = 65535))]
    pub debug_profile_port: Option<i32>,
}

/// One optional section per controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ControllersConfig {
    /// Cleans up after deleted nodes, collects leaked addresses and makes host endpoints.
    #[serde(skip_serializing_if = "is_default")]
    pub node: Option<NodeControllerConfig>,
    /// Copies Kubernetes network policies into etcd.
    #[serde(skip_serializing_if = "is_default")]
    pub policy: Option<PolicyControllerConfig>,
    /// Keeps labels of workload endpoints in etcd equal to those of their pods.
    #[serde(skip_serializing_if = "is_default")]
    pub workload_endpoint: Option<WorkloadEndpointControllerConfig>,
    /// Keeps a profile in etcd for every service account.
    #[serde(skip_serializing_if = "is_default")]
    pub service_account: Option<ServiceAccountControllerConfig>,
    /// Keeps a profile in etcd for every namespace.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: Option<NamespaceControllerConfig>,
    /// Gives addresses to services of type `LoadBalancer`.
    #[serde(skip_serializing_if = "is_default")]
    pub load_balancer: Option<LoadBalancerControllerConfig>,
    /// Moves stored objects to newer forms.
    #[serde(skip_serializing_if = "is_default")]
    pub migration: Option<MigrationControllerConfig>,
}

/// Settings of the migration controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MigrationControllerConfig {
    /// Renames policies stored as `default.<name>` to `<name>`. Default `Enabled`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "x-default" = "Enabled"))]
    pub policy_name_migrator: Option<ControllerMode>,
}

/// Settings of the node controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeControllerConfig {
    /// Accepted but unused: the node controller has its own timers and reacts to events.
    #[serde(skip_serializing_if = "is_default")]
    pub reconciler_period: Option<GoDuration>,
    /// Copies Kubernetes node labels to nodes in etcd; cannot be off elsewhere. Default `Enabled`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "enum" = ["Enabled", "Disabled"], "x-check" = "oneof=Enabled Disabled"))]
    pub sync_labels: String,
    /// Automatic host endpoints for the nodes; none are made when left out.
    #[serde(skip_serializing_if = "is_default")]
    pub host_endpoint: Option<AutoHostEndpointConfig>,
    /// How long an address must look leaked before it is freed; 0 turns this off. Default 15m.
    #[serde(skip_serializing_if = "is_default")]
    pub leak_grace_period: Option<GoDuration>,
}

/// Settings for host endpoints the node controller makes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AutoHostEndpointConfig {
    /// Whether they are made at all; turning it off deletes them. Default `Disabled`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "enum" = ["Enabled", "Disabled"], "x-check" = "oneof=Enabled Disabled"))]
    pub auto_create: String,
    /// Whether each node gets one that covers all interfaces. Default `Enabled`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-unlisted" = true, "x-empty" = "unset"))]
    pub create_default_host_endpoint: Option<DefaultHostEndpointMode>,
    /// Further host endpoints to make on nodes and interfaces that match.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub templates: Vec<Template>,
}

/// Pattern for host endpoints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Template {
    /// Part of the names of the objects made, after the node name.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("maxLength" = 253, "x-check" = "name"))]
    pub generate_name: String,
    /// Node addresses inside these ranges become the expected IPs.
    #[serde(rename = "interfaceCIDRs", skip_serializing_if = "is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-check" = "cidr"))]
    pub interface_cidrs: Vec<String>,
    /// Regular expression; every matching interface gets its own host endpoint.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "regexp"))]
    pub interface_pattern: String,
    /// Labels to add to those copied from the node.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "labels"))]
    pub labels: BTreeMap<String, String>,
    /// Annotations to put on the objects made.
    #[serde(skip_serializing_if = "is_default")]
    pub annotations: BTreeMap<String, String>,
    /// Nodes the template is used for; empty means all.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-check" = "selector"))]
    pub node_selector: String,
}

/// Settings of the network policy controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PolicyControllerConfig {
    /// Interval between full comparisons with the datastore; 0 turns them off. Default 5m.
    #[serde(skip_serializing_if = "is_default")]
    pub reconciler_period: Option<GoDuration>,
}

/// Settings of the workload endpoint controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadEndpointControllerConfig {
    /// Interval between full comparisons with the datastore; 0 turns them off. Default 5m.
    #[serde(skip_serializing_if = "is_default")]
    pub reconciler_period: Option<GoDuration>,
}

/// Settings of the service account controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceAccountControllerConfig {
    /// Interval between full comparisons with the datastore; 0 turns them off. Default 5m.
    #[serde(skip_serializing_if = "is_default")]
    pub reconciler_period: Option<GoDuration>,
}

/// Settings of the namespace controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NamespaceControllerConfig {
    /// Interval between full comparisons with the datastore; 0 turns them off. Default 5m.
    #[serde(skip_serializing_if = "is_default")]
    pub reconciler_period: Option<GoDuration>,
}

/// Settings of the load balancer controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LoadBalancerControllerConfig {
    /// Which services get an address. Default `AllServices`.
    #[serde(rename = "assignIPs", skip_serializing_if = "is_default")]
    #[schemars(extend("x-empty" = "unset", "x-default" = "AllServices"))]
    pub assign_ips: Option<AssignIps>,
}

/// What the running process uses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct KubeControllersConfigurationStatus {
    /// Settings in force after environment variables were applied.
    #[serde(skip_serializing_if = "is_default")]
    pub running_config: Option<KubeControllersConfigurationSpec>,
    /// Environment variables of the process that changed its settings.
    #[serde(skip_serializing_if = "is_default")]
    pub environment_vars: BTreeMap<String, String>,
}

/// Switch for an optional controller.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum ControllerMode {
    /// Do not run it.
    Disabled,
    /// Run it.
    Enabled,
}

/// Whether nodes get a host endpoint for all their interfaces.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum DefaultHostEndpointMode {
    /// Every node gets one.
    Enabled,
    /// Only the templates make host endpoints.
    Disabled,
}

/// Which `LoadBalancer` services get an address.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum AssignIps {
    /// All whose class is unset or `calico`.
    AllServices,
    /// Only those with class `calico` or that ask for a pool or an address.
    RequestedServicesOnly,
}

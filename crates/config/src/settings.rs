//! What the agent acts on, as types.

mod host;
mod network;
mod process;
mod tables;

pub use host::HostConfig;
pub use network::{EncapConfig, InterfaceConfig, MetadataConfig, RouteConfig};
pub use process::{HealthConfig, MetricsConfig, ReportingConfig};
pub use tables::{
    BackendConfig, FailsafeConfig, IpSetConfig, NatConfig, PacketLogConfig, PolicyConfig,
    TableConfig,
};

use super::resolve::{Values, resolve};
use super::source::Sources;

/// The parameters that the agent acts on. Built by [`resolve`], then only read. The default is what holds where nothing is
/// set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Name of this node; without it, the name of the machine in lower case.
    pub hostname: Option<String>,
    /// What kinds of cluster this is, separated by commas.
    pub cluster_type: String,
    /// Whether IPv6 is programmed.
    pub ipv6: bool,
    /// Whether forwarding is switched on in the kernel.
    pub ip_forwarding: bool,
    /// Network interfaces.
    pub interfaces: InterfaceConfig,
    /// How rules are programmed.
    pub tables: TableConfig,
    /// What packets meet besides policy.
    pub policy: PolicyConfig,
    pub ip_sets: IpSetConfig,
    pub routes: RouteConfig,
    /// Tunnels between nodes.
    pub encap: EncapConfig,
    /// Address translation.
    pub nat: NatConfig,
    /// Ports that stay open whatever policy says.
    pub failsafe: FailsafeConfig,
    /// `OpenStack`'s metadata server.
    pub metadata: MetadataConfig,
    /// Answers about liveness and readiness.
    pub health: HealthConfig,
    pub metrics: MetricsConfig,
    /// Reports about this node and its endpoints.
    pub reporting: ReportingConfig,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        resolve(&Sources::default()).config
    }
}

impl Config {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            hostname: values.get("FelixHostname"),
            cluster_type: values.get("ClusterType"),
            ipv6: values.get("Ipv6Support"),
            ip_forwarding: values.get("IPForwarding"),
            interfaces: InterfaceConfig::from_values(values),
            tables: TableConfig::from_values(values),
            policy: PolicyConfig::from_values(values),
            ip_sets: IpSetConfig::from_values(values),
            routes: RouteConfig::from_values(values),
            encap: EncapConfig::from_values(values),
            nat: NatConfig::from_values(values),
            failsafe: FailsafeConfig::from_values(values),
            metadata: MetadataConfig::from_values(values),
            health: HealthConfig::from_values(values),
            metrics: MetricsConfig::from_values(values),
            reporting: ReportingConfig::from_values(values),
        }
    }

    /// Whether workloads are `OpenStack`'s: the cluster says so, or something is set that only `OpenStack` needs.
    pub fn is_openstack(&self) -> bool {
        let names_it = self.cluster_type.to_lowercase().contains("openstack");
        let has_taps = self.interfaces.prefixes.iter().any(|each| each == "tap");
        names_it || has_taps || self.metadata.is_changed()
    }
}

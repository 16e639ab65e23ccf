//! The process: logs, health, metrics, reports.

use std::path::PathBuf;

use crate::choice::ClientAuth;
use crate::resolve::Values;

/// Answers about liveness and readiness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthConfig {
    /// Whether they are given.
    pub enabled: bool,
    /// Address that they are given on.
    pub host: String,
    /// Port that they are given on.
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsConfig {
    /// Whether they are served.
    pub enabled: bool,
    /// Address that they are served on; all without it.
    pub host: Option<String>,
    /// Port that they are served on.
    pub port: u16,
    /// File with the authorities that readers' certificates must come from.
    pub ca_file: Option<PathBuf>,
    /// File with the certificate that they are served with.
    pub cert_file: Option<PathBuf>,
    /// File with the private key that they are served with.
    pub key_file: Option<PathBuf>,
    /// Which certificates readers must show.
    pub client_auth: ClientAuth,
}

/// Reports about this node and its endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportingConfig {
    /// Folder that gets a file for each endpoint that is ready, if any.
    pub endpoint_status_folder: Option<PathBuf>,
}

// === impl HealthConfig ===

impl HealthConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            enabled: values.get("HealthEnabled"),
            host: values.get("HealthHost"),
            port: values.get("HealthPort"),
        }
    }
}

// === impl MetricsConfig ===

impl MetricsConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            enabled: values.get("PrometheusMetricsEnabled"),
            host: values.get("PrometheusMetricsHost"),
            port: values.get("PrometheusMetricsPort"),
            ca_file: values.get("PrometheusMetricsCAFile"),
            cert_file: values.get("PrometheusMetricsCertFile"),
            key_file: values.get("PrometheusMetricsKeyFile"),
            client_auth: values.get("PrometheusMetricsClientAuth"),
        }
    }
}

// === impl ReportingConfig ===

impl ReportingConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            endpoint_status_folder: values.get("EndpointStatusPathPrefix"),
        }
    }
}

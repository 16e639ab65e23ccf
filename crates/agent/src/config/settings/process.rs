//! The process: logs, health, metrics, reports.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use crate::config::choice::{ClientAuth, LogSeverity};
use crate::config::resolve::Values;

/// Answers about liveness and readiness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthConfig {
    /// Whether they are given.
    pub enabled: bool,
    /// Address that they are given on.
    pub host: String,
    /// Port that they are given on.
    pub port: u16,
    /// Time after which a silent component counts as hung, by component.
    pub timeout_overrides: BTreeMap<String, Duration>,
}

/// Metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsConfig {
    /// Whether they are served.
    pub enabled: bool,
    /// Address that they are served on; all without it.
    pub host: Option<String>,
    /// Port that they are served on.
    pub port: u16,
    /// Whether they tell about the process.
    pub process: bool,
    /// File with the authorities that readers' certificates must come from.
    pub ca_file: Option<PathBuf>,
    /// File with the certificate that they are served with.
    pub cert_file: Option<PathBuf>,
    /// File with the private key that they are served with.
    pub key_file: Option<PathBuf>,
    /// Which certificates readers must show.
    pub client_auth: ClientAuth,
}

/// The agent's own logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// File that they go to, if any.
    pub file: Option<PathBuf>,
    /// Least severity that goes to the file; none for nothing.
    pub file_severity: Option<LogSeverity>,
    /// Least severity that goes to standard output; none for nothing.
    pub screen_severity: Option<LogSeverity>,
    /// Least severity that goes to syslog; none for nothing.
    pub sys_severity: Option<LogSeverity>,
}

/// Reports about this node and its endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportingConfig {
    /// Time between reports that this node is alive, if there are any.
    pub interval: Option<Duration>,
    /// Time after which such a report is no longer valid.
    pub ttl: Duration,
    /// Whether the status of endpoints is reported to the datastore.
    pub endpoints: bool,
    /// Least time between reports about endpoints.
    pub endpoint_delay: Duration,
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
            timeout_overrides: values.get("HealthTimeoutOverrides"),
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
            process: values.get("PrometheusProcessMetricsEnabled"),
            ca_file: values.get("PrometheusMetricsCAFile"),
            cert_file: values.get("PrometheusMetricsCertFile"),
            key_file: values.get("PrometheusMetricsKeyFile"),
            client_auth: values.get("PrometheusMetricsClientAuth"),
        }
    }
}

// === impl LogConfig ===

impl LogConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            file: values.get("LogFilePath"),
            file_severity: values.get("LogSeverityFile"),
            screen_severity: values.get("LogSeverityScreen"),
            sys_severity: values.get("LogSeveritySys"),
        }
    }
}

// === impl ReportingConfig ===

impl ReportingConfig {
    pub(super) fn from_values(values: &Values<'_>) -> Self {
        Self {
            interval: values.get("ReportingIntervalSecs"),
            ttl: values.get("ReportingTTLSecs"),
            endpoints: values.get("EndpointReportingEnabled"),
            endpoint_delay: values.get("EndpointReportingDelaySecs"),
            endpoint_status_folder: values.get("EndpointStatusPathPrefix"),
        }
    }
}

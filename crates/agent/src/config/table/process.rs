//! The process itself: logs, health, metrics, reports, runtime, debugging.

use crate::config::choice::{ClientAuth, LogSeverity};
use crate::config::parameter::{Kind, Parameter};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "LogFilePath",
        Kind::Path,
        "/var/log/calico/felix.log",
        "file that logs go to; `none` for no file",
    )
    .fatal(),
    Parameter::new(
        "LogSeverityFile",
        Kind::OneOf(LogSeverity::OPTIONS),
        "INFO",
        "least severity that goes to the log file",
    ),
    Parameter::new(
        "LogSeverityScreen",
        Kind::OneOf(LogSeverity::OPTIONS),
        "INFO",
        "least severity that goes to standard output",
    ),
    Parameter::new(
        "LogSeveritySys",
        Kind::OneOf(LogSeverity::OPTIONS),
        "INFO",
        "least severity that goes to syslog",
    ),
    Parameter::new(
        "LogDebugFilenameRegex",
        Kind::Regex,
        "",
        "source files whose debug logs are kept",
    ),
    Parameter::new(
        "HealthEnabled",
        Kind::Bool,
        "false",
        "whether to answer questions about liveness and readiness over HTTP",
    )
    .acted_on(),
    Parameter::new(
        "HealthHost",
        Kind::HostAddress,
        "localhost",
        "address that health is served on",
    )
    .acted_on(),
    Parameter::new(
        "HealthPort",
        Kind::Int {
            min: 0,
            max: 65_535,
        },
        "9099",
        "port that health is served on",
    )
    .acted_on(),
    Parameter::new(
        "HealthTimeoutOverrides",
        Kind::Timeouts,
        "",
        "time after which a silent component counts as hung, by component",
    ),
    Parameter::new(
        "PrometheusMetricsEnabled",
        Kind::Bool,
        "false",
        "whether to serve metrics",
    )
    .acted_on(),
    Parameter::new(
        "PrometheusMetricsHost",
        Kind::HostAddress,
        "",
        "address that metrics are served on; all without it",
    )
    .acted_on(),
    Parameter::new(
        "PrometheusMetricsPort",
        Kind::Int {
            min: 0,
            max: 65_535,
        },
        "9091",
        "port that metrics are served on",
    )
    .acted_on(),
    Parameter::new(
        "PrometheusGoMetricsEnabled",
        Kind::Bool,
        "true",
        "whether metrics tell about the Go runtime",
    ),
    Parameter::new(
        "PrometheusProcessMetricsEnabled",
        Kind::Bool,
        "true",
        "whether metrics tell about the process: time, memory, open files",
    ),
    Parameter::new(
        "PrometheusWireGuardMetricsEnabled",
        Kind::Bool,
        "true",
        "whether metrics tell about WireGuard",
    ),
    Parameter::new(
        "PrometheusMetricsCAFile",
        Kind::Text,
        "",
        "file with the authorities that readers' certificates must come from",
    )
    .acted_on(),
    Parameter::new(
        "PrometheusMetricsCertFile",
        Kind::Text,
        "",
        "file with the certificate that metrics are served with",
    )
    .acted_on(),
    Parameter::new(
        "PrometheusMetricsKeyFile",
        Kind::Text,
        "",
        "file with the private key that metrics are served with",
    )
    .acted_on(),
    Parameter::new(
        "PrometheusMetricsClientAuth",
        Kind::OneOf(ClientAuth::OPTIONS),
        "NoClientCert",
        "which certificates readers of metrics must show",
    )
    .acted_on(),
    Parameter::new(
        "ReportingIntervalSecs",
        Kind::Seconds,
        "30",
        "time between reports that this node is alive; 0 for none",
    ),
    Parameter::new(
        "ReportingTTLSecs",
        Kind::Seconds,
        "90",
        "time after which such a report is no longer valid",
    ),
    Parameter::new(
        "EndpointReportingEnabled",
        Kind::Bool,
        "false",
        "whether to report the status of endpoints to the datastore",
    ),
    Parameter::new(
        "EndpointReportingDelaySecs",
        Kind::Seconds,
        "1",
        "least time between reports about endpoints",
    ),
    Parameter::new(
        "EndpointStatusPathPrefix",
        Kind::Path,
        "/var/run/calico",
        "folder that gets a file for each endpoint that is ready; `none` for no files",
    )
    .acted_on(),
    Parameter::new(
        "UsageReportingEnabled",
        Kind::Bool,
        "true",
        "whether to send the version and size of the cluster to its makers",
    ),
    Parameter::new(
        "UsageReportingInitialDelaySecs",
        Kind::Seconds,
        "300",
        "time before the first usage report",
    ),
    Parameter::new(
        "UsageReportingIntervalSecs",
        Kind::Seconds,
        "86400",
        "time between usage reports",
    ),
    Parameter::new(
        "FeatureDetectOverride",
        Kind::Pairs,
        "",
        "what the kernel can do, instead of finding it out",
    ),
    Parameter::new(
        "FeatureGates",
        Kind::Pairs,
        "",
        "experimental features to switch on or off",
    ),
    Parameter::new(
        "GoGCThreshold",
        Kind::Int {
            min: -1,
            max: i64::MAX,
        },
        "40",
        "share of garbage at which Go collects it",
    ),
    Parameter::new(
        "GoMemoryLimitMB",
        Kind::Int {
            min: -1,
            max: i64::MAX,
        },
        "-1",
        "memory that Go tries to stay below",
    ),
    Parameter::new(
        "GoMaxProcs",
        Kind::Int {
            min: -1,
            max: i64::MAX,
        },
        "-1",
        "number of threads that run Go code",
    ),
    Parameter::new(
        "DebugMemoryProfilePath",
        Kind::Path,
        "",
        "file that a profile of memory is written to on SIGUSR1",
    ),
    Parameter::new(
        "DebugCPUProfilePath",
        Kind::Path,
        "/tmp/felix-cpu-<timestamp>.pprof",
        "file that a profile of time is written to on SIGUSR2",
    ),
    Parameter::new(
        "DebugDisableLogDropping",
        Kind::Bool,
        "false",
        "whether to wait rather than drop logs when they come too fast",
    ),
    Parameter::new(
        "DebugSimulateCalcGraphHangAfter",
        Kind::Seconds,
        "0",
        "time after which the policy engine pretends to hang",
    ),
    Parameter::new(
        "DebugSimulateDataplaneHangAfter",
        Kind::Seconds,
        "0",
        "time after which the data plane pretends to hang",
    ),
    Parameter::new(
        "DebugSimulateDataplaneApplyDelay",
        Kind::Seconds,
        "0",
        "time that each change to the data plane is held up",
    ),
    Parameter::new(
        "DebugPanicAfter",
        Kind::Seconds,
        "0",
        "time after which the process crashes on purpose",
    ),
    Parameter::new(
        "DebugSimulateDataRace",
        Kind::Bool,
        "false",
        "whether to race on purpose",
    ),
    Parameter::new(
        "DebugHost",
        Kind::HostAddress,
        "localhost",
        "address of the debug server",
    ),
    Parameter::new(
        "DebugPort",
        Kind::Int {
            min: 0,
            max: 65_535,
        },
        "",
        "port of the debug server; 0 for none",
    ),
    Parameter::new(
        "DebugBPFCgroupV2",
        Kind::Text,
        "",
        "cgroup that connect-time load balancing is attached to",
    )
    .local_only(),
];

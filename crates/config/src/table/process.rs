//! The process itself: logs, health, metrics, reports, runtime, debugging.

use crate::choice::{ClientAuth, LogSeverity};
use crate::parameter::{Kind, Parameter};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "LogFilePath",
        Kind::Path,
        "/var/log/calico/felix.log",
        "file that logs go to; `none` for no file",
    )
    .fatal()
    .ignored("no log file is written: the log goes to stderr"),
    Parameter::new(
        "LogSeverityFile",
        Kind::OneOf(LogSeverity::OPTIONS),
        "INFO",
        "least severity that goes to the log file",
    )
    .ignored("no log file is written, of any severity: the log goes to stderr"),
    Parameter::new(
        "LogSeverityScreen",
        Kind::OneOf(LogSeverity::OPTIONS),
        "INFO",
        "least severity that goes to standard output",
    )
    .ignored("as much is logged to stderr as --log-level says"),
    Parameter::new(
        "LogSeveritySys",
        Kind::OneOf(LogSeverity::OPTIONS),
        "INFO",
        "least severity that goes to syslog",
    )
    .ignored("nothing goes to syslog: the log goes to stderr"),
    Parameter::new(
        "LogDebugFilenameRegex",
        Kind::Regex,
        "",
        "source files whose debug logs are kept",
    )
    .ignored("no debug logs are kept by source file: --log-level says what is logged"),
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
    )
    .ignored("/liveness fails after 90 seconds without a round of the loop, for all components"),
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
    )
    .ignored("there are no figures about Go: nothing here is written in it"),
    Parameter::new(
        "PrometheusProcessMetricsEnabled",
        Kind::Bool,
        "true",
        "whether metrics tell about the process: time, memory, open files",
    )
    .ignored("there are no figures about the process itself"),
    Parameter::new(
        "PrometheusWireGuardMetricsEnabled",
        Kind::Bool,
        "true",
        "whether metrics tell about WireGuard",
    )
    .ignored("there are no figures about WireGuard"),
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
    )
    .ignored("the datastore is not told that this node is alive"),
    Parameter::new(
        "ReportingTTLSecs",
        Kind::Seconds,
        "90",
        "time after which such a report is no longer valid",
    )
    .ignored("the datastore is not told that this node is alive, for any time"),
    Parameter::new(
        "EndpointReportingEnabled",
        Kind::Bool,
        "false",
        "whether to report the status of endpoints to the datastore",
    )
    .ignored("the status of endpoints is not written to the datastore"),
    Parameter::new(
        "EndpointReportingDelaySecs",
        Kind::Seconds,
        "1",
        "least time between reports about endpoints",
    )
    .ignored("the status of endpoints is not written to the datastore, at any pace"),
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
    )
    .ignored("no usage is reported to anybody"),
    Parameter::new(
        "UsageReportingInitialDelaySecs",
        Kind::Seconds,
        "300",
        "time before the first usage report",
    )
    .ignored("no usage is reported to anybody, at any time"),
    Parameter::new(
        "UsageReportingIntervalSecs",
        Kind::Seconds,
        "86400",
        "time between usage reports",
    )
    .ignored("no usage is reported to anybody, at any pace"),
    Parameter::new(
        "FeatureDetectOverride",
        Kind::Pairs,
        "",
        "what the kernel can do, instead of finding it out",
    )
    .ignored("what the kernel can do is found out, not taken from here"),
    Parameter::new(
        "FeatureGates",
        Kind::Pairs,
        "",
        "experimental features to switch on or off",
    )
    .ignored("no experimental feature is switched on or off"),
    Parameter::new(
        "GoGCThreshold",
        Kind::Int {
            min: -1,
            max: i64::MAX,
        },
        "40",
        "share of garbage at which Go collects it",
    )
    .ignored("there is no garbage collector to tune"),
    Parameter::new(
        "GoMemoryLimitMB",
        Kind::Int {
            min: -1,
            max: i64::MAX,
        },
        "-1",
        "memory that Go tries to stay below",
    )
    .ignored("memory is not limited by the agent itself"),
    Parameter::new(
        "GoMaxProcs",
        Kind::Int {
            min: -1,
            max: i64::MAX,
        },
        "-1",
        "number of threads that run Go code",
    )
    .ignored("the agent's threads are as many as it needs, not as many as this says"),
    Parameter::new(
        "DebugMemoryProfilePath",
        Kind::Path,
        "",
        "file that a profile of memory is written to on SIGUSR1",
    )
    .ignored("no profile of memory is written on SIGUSR1"),
    Parameter::new(
        "DebugCPUProfilePath",
        Kind::Path,
        "/tmp/felix-cpu-<timestamp>.pprof",
        "file that a profile of time is written to on SIGUSR2",
    )
    .ignored("no profile of time is written on SIGUSR2"),
    Parameter::new(
        "DebugDisableLogDropping",
        Kind::Bool,
        "false",
        "whether to wait rather than drop logs when they come too fast",
    )
    .ignored("no log lines are dropped, whatever is set"),
    Parameter::new(
        "DebugSimulateCalcGraphHangAfter",
        Kind::Seconds,
        "0",
        "time after which the policy engine pretends to hang",
    )
    .ignored("the policy engine does not pretend to hang"),
    Parameter::new(
        "DebugSimulateDataplaneHangAfter",
        Kind::Seconds,
        "0",
        "time after which the data plane pretends to hang",
    )
    .ignored("the data plane does not pretend to hang"),
    Parameter::new(
        "DebugSimulateDataplaneApplyDelay",
        Kind::Seconds,
        "0",
        "time that each change to the data plane is held up",
    )
    .ignored("changes to the kernel are not held up"),
    Parameter::new(
        "DebugPanicAfter",
        Kind::Seconds,
        "0",
        "time after which the process crashes on purpose",
    )
    .ignored("the process does not crash on purpose"),
    Parameter::new(
        "DebugSimulateDataRace",
        Kind::Bool,
        "false",
        "whether to race on purpose",
    )
    .ignored("nothing races on purpose"),
    Parameter::new(
        "DebugHost",
        Kind::HostAddress,
        "localhost",
        "address of the debug server",
    )
    .ignored("there is no debug server on this address"),
    Parameter::new(
        "DebugPort",
        Kind::Int {
            min: 0,
            max: 65_535,
        },
        "",
        "port of the debug server; 0 for none",
    )
    .ignored("there is no debug server on this port"),
    Parameter::new(
        "DebugBPFCgroupV2",
        Kind::Text,
        "",
        "cgroup that connect-time load balancing is attached to",
    )
    .local_only()
    .ignored("BPF programs are not loaded: nothing is attached to this cgroup"),
];

//! Arguments of servers that write down what they are asked for.

use std::path::PathBuf;

use clap::Args;
use tortie_apiserver::audit::{Level, Settings};

/// Where requests are written down.
#[derive(Debug, Args)]
pub(crate) struct AuditLog {
    /// File to write requests to, as lines of JSON (audit.k8s.io/v1) [default: none].
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// How much of requests is written: None, Metadata, Request or `RequestResponse`.
    #[arg(
        long,
        value_name = "LEVEL",
        default_value = "Metadata",
        requires = "audit_log_path"
    )]
    audit_level: Level,
    /// Size in MiB at which another file is begun.
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 100,
        requires = "audit_log_path"
    )]
    audit_log_maxsize: u32,
    /// How many files are kept besides that.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 10,
        requires = "audit_log_path"
    )]
    audit_log_maxbackup: usize,
}

impl AuditLog {
    /// What they ask for; nothing if no file is given.
    pub(crate) fn settings(&self) -> Option<Settings> {
        Some(Settings {
            path: self.audit_log_path.clone()?,
            level: self.audit_level,
            max_bytes: u64::from(self.audit_log_maxsize) << 20,
            backups: self.audit_log_maxbackup,
        })
    }
}

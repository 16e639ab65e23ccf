//! Arguments of servers that write down what they are asked for.

use std::path::PathBuf;

use clap::Args;
use tortie_apiserver::audit::{Level, Settings};

/// Where requests are written down.
#[derive(Debug, Args)]
pub(crate) struct AuditLog {
    /// File to write requests to, as lines of JSON (audit.k8s.io/v1) [default: none].
    #[arg(id = "audit-log-path", long, value_name = "FILE")]
    path: Option<PathBuf>,
    /// How much of requests is written: None, Metadata, Request or `RequestResponse`.
    #[arg(
        id = "audit-level",
        long,
        value_name = "LEVEL",
        default_value = "Metadata",
        requires = "audit-log-path"
    )]
    level: Level,
    /// Size in MiB at which another file is begun.
    #[arg(
        id = "audit-log-maxsize",
        long,
        value_name = "MIB",
        default_value_t = 100,
        requires = "audit-log-path"
    )]
    max_size: u32,
    /// How many files are kept besides that.
    #[arg(
        id = "audit-log-maxbackup",
        long,
        value_name = "NUMBER",
        default_value_t = 10,
        requires = "audit-log-path"
    )]
    max_backups: usize,
}

impl AuditLog {
    /// What they ask for; nothing if no file is given.
    pub(crate) fn settings(&self) -> Option<Settings> {
        Some(Settings {
            path: self.path.clone()?,
            level: self.level,
            max_bytes: u64::from(self.max_size) << 20,
            backups: self.max_backups,
        })
    }
}

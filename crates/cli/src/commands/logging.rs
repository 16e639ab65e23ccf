//! The log, on stderr.

use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;

use tortie_variables as variables;
use tracing_subscriber::EnvFilter;

use crate::args::{Global, LogFormat};

/// The level where nobody says another.
const USUAL: &str = "warn";

/// Changes what is logged; not there where somebody said what is.
static CHANGE: OnceLock<Change> = OnceLock::new();

type Change = Box<dyn Fn(&str) + Send + Sync>;

/// Starts the log. What the environment says wins over the command line.
pub(super) fn start(global: &Global) {
    let named = EnvFilter::try_from_env(variables::TORTIE_LOG).ok();
    let is_fixed = named.is_some() || global.log_level.is_some();
    let level = global.log_level.as_deref().unwrap_or(USUAL);
    let log = tracing_subscriber::fmt()
        .with_env_filter(named.unwrap_or_else(|| filter_at(level)))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    let change: Change = match global.log_format {
        LogFormat::Text => {
            let log = log.with_filter_reloading();
            let handle = log.reload_handle();
            log.init();
            // It fails only when there is no log any more.
            Box::new(move |level| drop(handle.reload(filter_at(level))))
        }
        LogFormat::Json => {
            let log = log.json().flatten_event(true).with_filter_reloading();
            let handle = log.reload_handle();
            log.init();
            Box::new(move |level| drop(handle.reload(filter_at(level))))
        }
    };
    if !is_fixed {
        // Set once, here.
        let _ = CHANGE.set(change);
    }
}

/// Changes how much is logged, for commands that run long; unless somebody said what is.
pub(super) fn change(level: &str) {
    if let Some(change) = CHANGE.get() {
        change(level);
    }
}

/// What is logged at a level. What the client for Kubernetes takes for an error, its caller may not: who asks hears of it.
fn filter_at(level: &str) -> EnvFilter {
    match level {
        "error" | "warn" | "info" => EnvFilter::new(format!("{level},kube_client=off")),
        level => EnvFilter::new(level),
    }
}

//! `tortie down`: ends `tortie up`, and removes what it made in the kernel.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tortie_agent::config::{Sources, from_environment, resolve};
use tortie_dataplane::{OurRoutes, remove_everything};
use tortie_kernel::route::Protocol;

use super::agent::{PARAMETER_FILE, parameter_file};
use super::up::PROCESS_FILE;
use crate::args::Global;
use crate::config::data_folder;

/// How long the process may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn run(global: &Global) -> Result<ExitCode> {
    let mut out = anstream::stdout();
    match end_process(&data_folder(global).join(PROCESS_FILE)).await? {
        Some(process) => writeln!(out, "Ended process {}", process.as_raw_nonzero())?,
        None => writeln!(out, "Nothing was running")?,
    }
    let sources = Sources {
        environment: from_environment(std::env::vars_os()),
        file: parameter_file(Path::new(PARAMETER_FILE))?,
        ..Sources::default()
    };
    let config = resolve(&sources).config;
    let ours = OurRoutes {
        protocol: Protocol(config.routes.protocol),
        prefixes: config.interfaces.prefixes.clone(),
    };
    let removed = tokio::task::spawn_blocking(move || remove_everything(&ours)).await?;
    for what in &removed.what {
        writeln!(out, "Removed {what}")?;
    }
    if removed.what.is_empty() {
        writeln!(out, "The kernel had nothing to remove")?;
    }
    for error in &removed.errors {
        writeln!(anstream::stderr(), "error: {error}")?;
    }
    Ok(if removed.errors.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Ends the process that a file names, if it runs and is one of ours.
async fn end_process(file: &Path) -> Result<Option<Pid>> {
    let Ok(text) = std::fs::read_to_string(file) else {
        return Ok(None);
    };
    let process = text.trim().parse().ok().and_then(Pid::from_raw);
    let process =
        process.with_context(|| format!("{} holds no process number: {text:?}", file.display()))?;
    if !is_up(process) {
        return Ok(None);
    }
    kill_process(process, Signal::TERM)
        .with_context(|| format!("ending process {}", process.as_raw_nonzero()))?;
    let start = Instant::now();
    while test_kill_process(process).is_ok() && is_up(process) {
        if start.elapsed() > PATIENCE {
            let number = process.as_raw_nonzero();
            bail!(
                "process {number} has not ended within {} s; nothing was removed",
                PATIENCE.as_secs()
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(Some(process))
}

/// Whether a process is a `tortie up`: numbers are given again after a restart of the machine.
fn is_up(process: Pid) -> bool {
    let path = format!("/proc/{}/cmdline", process.as_raw_nonzero());
    let Ok(line) = std::fs::read(path) else {
        return false;
    };
    line.split(|byte| *byte == 0)
        .skip(1)
        .any(|word| word == b"up")
}

//! `tortie up --detach`: another process is `up`, and this one ends when that is ready.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result};

use super::READY;
use crate::args::Global;
use crate::config::{data_folder, make_data_folder};

/// Where the process writes what it has to say, in the data folder.
const LOG: &str = "up.log";

/// How many of its last lines are shown where it ends.
const SHOWN: usize = 20;

pub(super) fn run(global: &Global) -> Result<ExitCode> {
    let folder = data_folder(global);
    make_data_folder(&folder)?;
    let path = folder.join(LOG);
    let mut options = OpenOptions::new();
    let log = options.write(true).create(true).truncate(true).mode(0o600);
    let log = log.open(&path);
    let log = log.with_context(|| format!("writing {}", path.display()))?;
    let mut child = Command::new("/proc/self/exe")
        .args(
            std::env::args_os()
                .skip(1)
                .filter(|word| word != "--detach"),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        // Ctrl-C at the terminal is not meant for it.
        .process_group(0)
        .spawn()
        .context("`tortie up` cannot be started")?;
    let stdout = child.stdout.take();
    let mut lines = stdout
        .into_iter()
        .flat_map(|out| BufReader::new(out).lines());
    if let Some(line) = lines.find_map(|line| line.ok().filter(|line| line.starts_with(READY))) {
        writeln!(anstream::stdout(), "{line}")?;
        let (process, path) = (child.id(), path.display());
        writeln!(
            anstream::stderr(),
            "It runs as process {process} until `tortie down`, and logs to {path}"
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    child.wait()?;
    show_end(&path)?;
    Ok(ExitCode::FAILURE)
}

fn show_end(log: &Path) -> Result<()> {
    let text = std::fs::read_to_string(log)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut stderr = anstream::stderr();
    for line in &lines[lines.len().saturating_sub(SHOWN)..] {
        writeln!(stderr, "{line}")?;
    }
    Ok(())
}

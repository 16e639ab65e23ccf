//! `tortie up`: API server, controllers and agent in one process.

mod cluster;
mod local_client;
mod node;
mod parts;
mod standalone;
mod systemd;
mod unit;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::args::{DatastoreType, Global, Up};
use crate::config::Target;

/// The file in the data folder that names the process.
pub(super) const PROCESS_FILE: &str = "tortie.pid";

/// Runs until a signal ends it, or a part fails.
pub(super) async fn run(args: &Up, global: &Global) -> Result<ExitCode> {
    if args.print_systemd {
        write!(std::io::stdout(), "{}", unit::unit(args, global)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let target = Target::of_up(global, &|name| std::env::var(name).ok())?;
    match target.datastore {
        DatastoreType::Embedded => standalone::run(args, global).await?,
        DatastoreType::Etcdv3 | DatastoreType::Kubernetes => cluster::run(args, global).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A file that goes with the process. Whoever comes next would find that nobody is there any more.
struct OwnFile(PathBuf);

impl OwnFile {
    /// The file that names the process, for `tortie down`.
    fn of_process(folder: &Path) -> Result<Self> {
        let path = folder.join(PROCESS_FILE);
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, std::process::id().to_string()));
        written.with_context(|| format!("writing {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

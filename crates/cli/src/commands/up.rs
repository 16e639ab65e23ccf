//! `tortie up`: API server, controllers and agent in one process.

mod cluster;
mod node;
mod parts;
mod standalone;
mod systemd;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{DatastoreType, Global, Up};
use crate::config::datastore;

/// The file in the data folder that names the process.
pub(super) const PROCESS_FILE: &str = "tortie.pid";

/// Runs until a signal ends it, or a part fails.
pub(super) async fn run(args: &Up, global: &Global) -> Result<ExitCode> {
    if args.print_systemd {
        systemd::print_unit(args, global)?;
        return Ok(ExitCode::SUCCESS);
    }
    match datastore(global)? {
        DatastoreType::Embedded => standalone::run(args, global).await?,
        DatastoreType::Etcdv3 | DatastoreType::Kubernetes => cluster::run(args, global).await?,
    }
    Ok(ExitCode::SUCCESS)
}

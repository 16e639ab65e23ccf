//! `tortie down`: ends `tortie up`, and removes what it made in the kernel.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use tortie_client::connect::ROOTS_FOLDER;
use tortie_config::{Sources, from_environment, resolve};
use tortie_dataplane::{OurRoutes, remove_everything};
use tortie_error::Causes;
use tortie_kernel::namespace::is_root;
use tortie_kernel::route::{self, Batch, MAIN_TABLE, Protocol, Socket};

use super::agent::{PARAMETER_FILE, parameter_file};
use super::pod::Site;
use super::up::{BirdFolders, Process, end_bird};
use crate::args::Global;
use crate::config::data_folder;

pub(super) async fn run(global: &Global) -> Result<ExitCode> {
    let folder = data_folder(global);
    let mut out = anstream::stdout();
    let Some(process) = Process::find(&folder)? else {
        // Without root nobody has left anything.
        if !is_root() && Path::new(ROOTS_FOLDER).exists() {
            bail!(
                "nothing of yours was running; what root runs with {ROOTS_FOLDER} ends with `sudo tortie down`"
            );
        }
        writeln!(out, "Nothing was running")?;
        return if is_root() {
            clean_machine(global).await
        } else {
            Ok(ExitCode::SUCCESS)
        };
    };
    let site = Site::connect(folder.clone(), global).await;
    match site {
        Ok(site) => {
            for pod in site.remove_all().await {
                writeln!(out, "Deleted pod {pod}")?;
            }
        }
        Err(error) => {
            tracing::debug!(error = %Causes(&*error), "Pods are left to the next start");
        }
    }
    let has_own_network = process.has_own_network();
    process.end().await?;
    writeln!(out, "Ended process {}", process.id())?;
    if has_own_network {
        writeln!(out, "Its network is gone with it")?;
        return Ok(ExitCode::SUCCESS);
    }
    clean_machine(global).await
}

/// Ends and removes what an `up` on this machine's own network made.
async fn clean_machine(global: &Global) -> Result<ExitCode> {
    let mut out = anstream::stdout();
    let ended = end_bird(&BirdFolders::machine(global)).await;
    if ended.context("BIRD cannot be ended")? {
        let routes = tokio::task::spawn_blocking(remove_routes_of_bird).await??;
        writeln!(out, "Ended BIRD, and removed {routes} routes of it")?;
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

/// BIRD leaves its routes for the next one. Gives how many there were.
fn remove_routes_of_bird() -> route::Result<usize> {
    let mut socket = Socket::open()?;
    let mut routes = socket.routes(MAIN_TABLE)?;
    routes.retain(|route| route.protocol == Protocol::BIRD);
    let mut batch = Batch::new();
    for route in &routes {
        batch.delete_route(route);
    }
    socket.apply(&batch)?;
    Ok(routes.len())
}

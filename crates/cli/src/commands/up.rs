//! `tortie up`: API server, controllers and agent in one process.

mod api;
mod bgp;
mod cluster;
mod detached;
mod enter;
mod local_client;
mod node;
mod own_network;
mod parts;
mod process;
mod standalone;
mod surroundings;
mod systemd;
mod unit;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use tortie_client::connect::{DatastoreType, environment};
use tortie_kernel::namespace::is_root;

use super::isolation::{self, INTERRUPTED};
use super::root;
use crate::args::{Global, Part, Up};
use crate::config::target_of_up;

pub(super) use api::{API_SOCKET, ApiServer, serve_store};
pub(super) use bgp::end_bird;
pub(super) use enter::enter_network;
pub(super) use local_client::through as client_through;
pub(super) use parts::Parts;
pub(super) use process::Process;
pub(super) use surroundings::{BirdFolders, inherited_listener};

/// The file in the data folder that names the process.
pub(super) const PROCESS_FILE: &str = "tortie.pid";

/// What the line starts with that says that everything runs.
const READY: &str = "Ready.";

/// Runs until a signal ends it, or a part fails.
pub(super) async fn run(args: &Up, global: &Global) -> Result<ExitCode> {
    if args.print_systemd {
        write!(std::io::stdout(), "{}", unit::unit(args, global)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.detach {
        return detached::run(global);
    }
    let target = target_of_up(global, &environment)?;
    match target.datastore {
        DatastoreType::Embedded => {
            if let Some(parent) = args.inside.parent {
                if !isolation::begin(parent)? {
                    return Ok(ExitCode::from(INTERRUPTED));
                }
            } else if args.own_network || needs_own_network(args) {
                return own_network::run(args, global).await;
            }
            standalone::run(args, global).await?;
        }
        DatastoreType::Etcdv3 | DatastoreType::Kubernetes if args.own_network => {
            bail!(
                "--own-network is for an `up` without a cluster: nodes of a cluster share its network"
            )
        }
        DatastoreType::Etcdv3 | DatastoreType::Kubernetes => {
            root::check_up()?;
            cluster::run(args, global).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Who is not root can change no other network.
fn needs_own_network(args: &Up) -> bool {
    !is_root() && !args.without.contains(&Part::Agent)
}

/// A file that goes with the process. Whoever comes next would find that nobody is there any more.
pub(super) struct OwnFile(PathBuf);

impl OwnFile {
    /// The file that names the process, for `tortie down`.
    pub(super) fn of_process(folder: &Path) -> Result<Self> {
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

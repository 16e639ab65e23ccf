//! The outer process of an `up` with a network of its own.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use tortie_client::connect::DATA_FOLDER_VARIABLE;
use tortie_kernel::namespace::is_root;
use tortie_variables as variables;

use super::surroundings;
use crate::args::{Global, Up};
use crate::commands::isolation::Isolated;
use crate::config::{data_folder, make_data_folder};

/// Where the node's name is kept, unless that is said.
const NODE_NAME_FILE: &str = variables::CALICO_NODENAME_FILE;

/// How long the inner process may take to end by itself.
const GRACE: Duration = Duration::from_secs(20);

/// Starts the inner process and waits for its end. Clients are in the network of this process, so that the API server's
/// address is taken here.
pub(super) async fn run(args: &Up, global: &Global) -> Result<ExitCode> {
    if !is_root() {
        writeln!(
            anstream::stderr(),
            "Without root, this has a network of its own: policy is enforced on pods of `tortie pod run`, not on this machine."
        )?;
    }
    let folder = std::path::absolute(data_folder(global))?;
    make_data_folder(&folder)?;
    let listener = surroundings::listen(args.listen)?;
    let inner = Isolated::start("`tortie up`", |command| {
        command
            .env(DATA_FOLDER_VARIABLE, &folder)
            // Which only root can lock in the usual place.
            .env(variables::XTABLES_LOCKFILE, folder.join("xtables.lock"))
            .stdin(OwnedFd::from(listener.try_clone()?));
        if std::env::var_os(NODE_NAME_FILE).is_none() {
            command.env(NODE_NAME_FILE, folder.join("nodename"));
        }
        Ok(())
    })?;
    // From now on only the inner process answers.
    drop(listener);
    let ended = inner.end(GRACE).await?;
    if ended.is_interrupted {
        writeln!(
            anstream::stderr(),
            "\nStopped; its network and its pods are gone."
        )?;
    }
    ended.exit_code()
}

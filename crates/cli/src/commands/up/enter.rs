//! Going to where an `up` is: commands about pods, agent or kernel mean those of its network.

use std::path::absolute;

use anyhow::{Context as _, Result};
use tortie_client::connect::{DatastoreType, environment};
use tortie_kernel::namespace;

use super::Process;
use crate::args::{Cli, Command, NodeCommand, PodCommand};
use crate::config::{data_folder, find_target};

/// When a command goes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Wherever it is.
    Always,
    /// Where it has a network of its own.
    Apart,
    /// The same, if its datastore is the one that is meant.
    Meant,
}

/// Takes the process into the network, and among the users, of the `up` with the data folder, if the command needs that. To
/// be called while the process has one thread.
pub(in crate::commands) fn enter_network(cli: &mut Cli) -> Result<()> {
    let when = match &cli.command {
        Command::Pod(pod) if !matches!(pod.command, PodCommand::Serve(_)) => When::Always,
        Command::Down(_) => When::Apart,
        Command::Status(_) => When::Meant,
        Command::Why(why) if why.filename.is_empty() => When::Meant,
        Command::Node(node) if matches!(node.command, NodeCommand::Verify(_)) => When::Meant,
        _ => return Ok(()),
    };
    // Who has mistaken a setting hears of it from the command itself.
    let target = || find_target(&cli.global, &environment);
    if when == When::Meant
        && !target().is_ok_and(|target| target.datastore == DatastoreType::Embedded)
    {
        return Ok(());
    }
    let folder = absolute(data_folder(&cli.global))?;
    let Some(process) = Process::find(&folder)? else {
        return Ok(());
    };
    if when != When::Always && !process.has_own_network() {
        return Ok(());
    }
    // Whose data folder it is depends on the user, who may be root there.
    cli.global.data_dir = Some(folder);
    namespace::enter_process(process.id()).with_context(|| {
        let number = process.id();
        format!("`tortie up` runs as process {number}, and this user may not enter its network")
    })
}

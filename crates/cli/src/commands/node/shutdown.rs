//! `tortie node shutdown`: a node says good-bye.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use tokio::time::{Instant, sleep};
use tortie_agent::startup::Settings;
use tortie_bgp::bird::status::{Answers, Sockets};
use tortie_bgp::bird::{self, Error};
use tortie_bgp::speaker::departure;
use tortie_config::from_environment;
use tortie_files::places;

use super::condition::{self, Network};
use super::startup;
use crate::args::{Global, Shutdown};
use crate::commands::agent::node_name;
use crate::commands::{report, root};
use crate::config::open;

/// How long a `tortie bgp` may take to end all sessions. Then it is taken that there is none.
const PATIENCE: Duration = Duration::from_secs(15);

const INTERVAL: Duration = Duration::from_millis(100);

pub(super) async fn run(args: &Shutdown, global: &Global) -> Result<ExitCode> {
    root::check_shutdown()?;
    let node = node_name(args.node.as_deref(), &from_environment(std::env::vars_os()))?;
    let mut outcome = ExitCode::SUCCESS;
    // Others, and a datastore that is away, come after what peers wait for.
    for done in [
        note_time(&node),
        withdraw(&args.run.folder).await,
        tell_kubernetes(&node, global).await,
    ] {
        if let Err(error) = done {
            writeln!(anstream::stderr(), "{}", report::error(&error))?;
            outcome = ExitCode::FAILURE;
        }
    }
    Ok(outcome)
}

/// When the node went, as Calico's programs read it.
fn note_time(node: &str) -> Result<()> {
    let now = Timestamp::now();
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let file = time_file(&startup::settings(Some(node))?);
    tortie_files::replace(&file, now.to_string(), tortie_files::PUBLIC)
        .with_context(|| format!("writing when the node went to {}", file.display()))
}

/// Beside the file that names the node.
fn time_file(settings: &Settings) -> PathBuf {
    settings.name_file.with_file_name(places::SHUTDOWN)
}

/// The node is there again.
pub(crate) fn forget(settings: &Settings) {
    // Mostly there is none.
    let _ = std::fs::remove_file(time_file(settings));
}

/// Has routes withdrawn, and waits until they are.
async fn withdraw(folder: &Path) -> Result<()> {
    departure::leave(folder)
        .with_context(|| format!("saying in {} that the node leaves", folder.display()))?;
    let sockets = Sockets::in_folder(folder);
    let end = Instant::now() + PATIENCE;
    let mut was_there = false;
    while let Some(sessions) = sessions(&sockets).await? {
        was_there = true;
        if sessions == 0 {
            break;
        }
        if Instant::now() > end {
            // Nobody keeps BIRD here.
            for socket in [&sockets.main, &sockets.ipv6] {
                match socket.end_sessions().await {
                    Err(Error::Unreachable { .. }) => {}
                    ended => ended.context("BIRD does not end its sessions")?,
                }
            }
            break;
        }
        sleep(INTERVAL).await;
    }
    let said = if was_there {
        "BGP: peers know that nothing is to be had here any more"
    } else {
        "BGP: no BIRD runs here"
    };
    writeln!(anstream::stdout(), "{said}")?;
    Ok(())
}

/// How many sessions are established; none where no BIRD runs.
async fn sessions(sockets: &Sockets) -> Result<Option<usize>> {
    let answers = sockets.ask(false).await;
    let mut all = None;
    for asked in [answers.v4, answers.v6] {
        if let Some(sessions) = established(asked)? {
            *all.get_or_insert(0) += sessions;
        }
    }
    Ok(all)
}

fn established(asked: bird::Result<Answers>) -> Result<Option<usize>> {
    match asked {
        Ok(answers) => {
            let peers = answers.peers.iter();
            Ok(Some(peers.filter(|peer| peer.is_established).count()))
        }
        Err(Error::Unreachable { .. }) => Ok(None),
        Err(error) => Err(error).context("BIRD does not say whether it has sessions"),
    }
}

async fn tell_kubernetes(node: &str, global: &Global) -> Result<()> {
    let connection = open(global).await?;
    let Some(cluster) = &connection.cluster else {
        return Ok(());
    };
    condition::tell(cluster, node, Network::Down).await?;
    writeln!(
        anstream::stdout(),
        "Kubernetes: Node({node}) has no network any more"
    )?;
    Ok(())
}

//! Arguments of `node diags` and `cluster`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::duration::duration;

const NODE_HELP: &str = "\
Gathers what a supporter needs into diags-<time>.tar.gz, and prints its path: versions, parameters, status, problems and drift;
interfaces, routes, rules and sets; configuration, logs, and a recording of the policy engine's input for `tortie replay`. Passwords,
tokens and keys are replaced; who can read the rest knows names, addresses and policies of the cluster.

Examples:
  tortie node diags
  tortie node diags --output-folder /tmp --log-dir /var/log/calico";

const CLUSTER_HELP: &str = "\
Gathers what a supporter needs of the whole cluster into calico-diagnostics-<time>.tar.gz, and prints its path: all resources,
addresses, nodes, events, and logs of Calico's and Tortie's pods. Passwords, tokens and keys are replaced.

Examples:
  tortie cluster diags
  tortie cluster diags --since 2h --focus-nodes node-1,node-2";

/// Arguments of `node diags`.
#[derive(Debug, Args)]
#[command(after_help = NODE_HELP)]
pub(crate) struct Diags {
    /// Folder with logs.
    #[arg(long, value_name = "FOLDER", default_value = "/var/log/calico")]
    pub(crate) log_dir: PathBuf,
    /// Folder for the archive.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) output_folder: PathBuf,
}

/// Arguments of `cluster`.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    pub(crate) command: ClusterCommand,
}

/// What to do with a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Gather what a supporter needs of the whole cluster.
    Diags(ClusterDiags),
}

/// Arguments of `cluster diags`.
#[derive(Debug, Default, Args)]
#[command(after_help = CLUSTER_HELP)]
pub(crate) struct ClusterDiags {
    /// Only log lines that are younger, such as 30s, 90m or 2h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) since: Option<Duration>,
    /// Of how many pods of a kind logs are gathered.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) max_logs: usize,
    /// How many logs are read at the same time.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) max_parallelism: u8,
    /// Nodes whose logs are all gathered.
    #[arg(long, value_name = "NODE,…", value_delimiter = ',')]
    pub(crate) focus_nodes: Vec<String>,
    /// Accepted because calicoctl has it; there is no temporary folder.
    #[arg(long, hide = true)]
    pub(crate) skip_temp_dir_cleanup: bool,
    /// Folder for the archive.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) output_folder: PathBuf,
}

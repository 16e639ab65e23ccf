//! Arguments of `node diags` and `cluster`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};

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
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Since>,
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

/// A time in seconds, as `30s`, `90m` or `2h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Since(pub(crate) i64);

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let units = [('s', 1), ('m', 60), ('h', 3600)];
        let parsed = units.iter().find_map(|(unit, seconds)| {
            let number = text.strip_suffix(*unit)?;
            let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
            let number: i64 = number.parse().ok().filter(|_| is_number)?;
            number.checked_mul(*seconds)
        });
        let seconds = parsed.ok_or("expected a number with s, m or h, such as 30s, 90m or 2h")?;
        Ok(Self(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, expected) in [
            ("30s", Some(30)),
            ("90m", Some(5400)),
            ("2h", Some(7200)),
            ("2", None),
            ("-1s", None),
            ("+1s", None),
            ("h", None),
            ("9223372036854775807h", None),
        ] {
            let parsed: Option<Since> = text.parse().ok();
            assert_eq!(parsed.map(|since| since.0), expected, "{text}");
        }
    }
}

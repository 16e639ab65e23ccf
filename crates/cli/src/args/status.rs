//! Arguments of `status`.

use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
The datastore is asked for what the cluster has, and the agent of this machine, if there is one, for what is in force here.
The agent answers root and its own user, and others where its parameter HealthEnabled is true; who could not be asked is
said.

Examples:
  tortie status
  tortie status -o json | jq .problems
  tortie status > /dev/null || alarm

Exit code: 0 all is well as far as it could be asked, 1 it is not, or the datastore cannot be read.";

/// Arguments of `status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Status {
    /// Name of this node [default: `FELIX_FELIXHOSTNAME`, NODENAME or the name of the machine].
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Output form.
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: StatusOutput,
}

/// Forms of what `status` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusOutput {
    /// For people.
    Text,
    /// For programs.
    Json,
}

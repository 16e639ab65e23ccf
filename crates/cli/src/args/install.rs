//! Arguments of `install`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::duration::duration;

const HELP: &str = "\
Looks at the cluster that KUBECONFIG or --context means, says what it found and what it does, and applies the chart of deploy/helm,
with the values of files and of --set. Then it waits until every node enforces policy. Run again, it changes what differs.

Examples:
  tortie install --dry-run                                      what is there, and what would change
  tortie install --set ipv4.podCidr=10.244.0.0/16
  tortie install --set bgp.enabled=true,ipv4.encapsulation=None without an overlay
  tortie install -f values.yaml --timeout 10m
  tortie install --dry-run -o yaml --set mtu=1400 > tortie.yaml  all objects, without asking any cluster
  tortie install --show-values > values.yaml                    what can be set, with what each is for

Exit code: 0 all is installed and ready, 1 it is not.";

/// Arguments of `install`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub(crate) struct Install {
    /// File with values; later ones win.
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// A value, such as bgp.enabled=true; wins over files.
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) set: Vec<String>,
    /// Namespace of all that is installed.
    #[arg(short, long, value_name = "NAME", default_value = "tortie-system")]
    pub(crate) namespace: String,
    /// Store nothing: say what would be changed.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output form; yaml is for a dry run, and asks no cluster.
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: InstallOutput,
    /// Print the values that can be set, and do nothing.
    #[arg(long, exclusive = true)]
    pub(crate) show_values: bool,
    /// Take over fields that somebody else has changed.
    #[arg(long)]
    pub(crate) force_conflicts: bool,
    /// Do not wait until all is ready.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// How long to wait, such as 90s or 10m.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// Forms of what `install` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InstallOutput {
    /// For people.
    Text,
    /// The objects.
    Yaml,
}

//! Arguments of `bgp`, and of what `node` says of BGP.

mod answers;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tortie_files::places;
use tortie_variables as variables;

pub(crate) use answers::{BgpDoctor, BgpWhy};

const RUN_HELP: &str = "\
Follows nodes, BGPPeers, BGPConfigurations, BGPFilters, pools, blocks and services, and keeps BIRD's configuration what follows from
them. It starts BIRD and watches it, unless --no-bird says that somebody else does. BIRD goes on when this ends, so that no route is
lost while it is restarted or upgraded; under systemd that needs KillMode=process.

An object that cannot be used is left out and named in the log, in `tortie bgp status` and in metrics; the rest is in force.

Examples:
  tortie bgp                                     with the BIRD of Debian's package bird2
  tortie bgp --withdraw                          when this ends, the node leaves: peers are told at once
  tortie bgp --no-bird --syntax bird1            write confd's six files for Calico's own BIRD, and reload it
  tortie bgp status
  tortie bgp why 10.65.1.0/26                    is it advertised, learnt, programmed: and if not, why
  tortie bgp doctor                              what is wrong with sessions
  tortie bgp render --node node-1 -f cluster/    what BIRD would be told";

const RENDER_HELP: &str = "\
Prints BIRD's configuration for a node, or writes it to a folder, and touches nothing else. What is left out, and why, is on stderr.
Passwords come from Secrets; of those that are not among the files, or may not be read, sessions are left out.

Examples:
  tortie bgp render                                            for this node, from the datastore
  tortie bgp render --node node-1 -f cluster/ -f new-peer.yaml
  tortie bgp render --node node-1 --syntax bird1 --out /tmp/config";

const STATUS_HELP: &str = "\
Examples:
  tortie bgp status
  tortie bgp status -o json | jq .problems

Exit code: 0 all sessions are established and nothing was left out, 1 something is wrong.";

const NODE_STATUS_HELP: &str = "\
The BGP peers of this node, as its BIRD sees them.

Examples:
  sudo tortie node status";

/// Where BIRD's configuration is, unless it is for Calico's own BIRD.
pub(crate) const BIRD2_FOLDER: &str = "/var/lib/tortie/bird";

/// Where BIRD's sockets are, and what is said of it.
pub(crate) const BGP_RUN_FOLDER: &str = "/var/run/calico";

/// Where Calico's own BIRD reads its configuration.
pub(crate) const BIRD1_FOLDER: &str = "/etc/calico/confd/config";

/// Arguments of `bgp`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = RUN_HELP)]
pub(crate) struct Bgp {
    #[command(subcommand)]
    pub(crate) command: Option<BgpCommand>,
    #[command(flatten)]
    pub(crate) run: BgpRun,
}

/// What to do besides following.
#[derive(Debug, Subcommand)]
pub(crate) enum BgpCommand {
    /// Print or write BIRD's configuration without touching anything.
    Render(BgpRender),
    /// Say whether all sessions are established, and what was left out.
    Status(BgpStatus),
    /// Say whether a prefix is advertised, learnt and programmed, and if not, why.
    Why(BgpWhy),
    /// Say what is wrong with sessions, and what would be right.
    Doctor(BgpDoctor),
}

/// How BIRD is kept up to date.
#[derive(Debug, Args)]
pub(crate) struct BgpRun {
    /// Name of this node [default: `FELIX_FELIXHOSTNAME`, NODENAME or the name of the machine].
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// The program `bird` [default: the one in PATH or /usr/sbin].
    #[arg(long, value_name = "PATH")]
    pub(crate) bird: Option<PathBuf>,
    /// Somebody else starts BIRD: only write its configuration, and have it read that.
    #[arg(long)]
    pub(crate) no_bird: bool,
    /// BIRD's language.
    #[arg(long, value_name = "SYNTAX", default_value = "bird2")]
    pub(crate) syntax: BirdSyntax,
    /// Folder for BIRD's configuration [default: /var/lib/tortie/bird, or /etc/calico/confd/config for bird1].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) config_folder: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunFolder,
    /// When this ends, tell peers at once that nothing is to be had here any more.
    #[arg(long)]
    pub(crate) withdraw: bool,
    /// Folder in which the agent tells which endpoints are up.
    #[arg(long, value_name = "FOLDER", default_value = places::ENDPOINT_STATUS_FOLDER)]
    pub(crate) workloads: PathBuf,
    /// Namespace of the Secrets with passwords [default: that of this pod, or kube-system].
    #[arg(long, value_name = "NAMESPACE", env = variables::POD_NAMESPACE)]
    pub(crate) secret_namespace: Option<String>,
    /// Serve metrics and health here, as in 127.0.0.1:9098.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<std::net::SocketAddr>,
}

/// Where BIRD and its keeper are reached.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunFolder {
    /// Folder of BIRD's sockets.
    #[arg(
        long = "run-folder",
        value_name = "FOLDER",
        default_value = BGP_RUN_FOLDER
    )]
    pub(crate) folder: PathBuf,
}

/// Whose BGP, and from what.
#[derive(Debug, Args)]
pub(crate) struct BgpSubject {
    /// Name of the node [default: `FELIX_FELIXHOSTNAME`, NODENAME or the name of the machine].
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Read these files or folders, or `-` for standard input, instead of a datastore; may be given several times. Services,
    /// `EndpointSlices` and Secrets of Kubernetes may be among them.
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) filename: Vec<PathBuf>,
    /// Read folders with all their subfolders.
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Namespace of the Secrets with passwords [default: that of this pod, or kube-system].
    #[arg(long, value_name = "NAMESPACE", env = variables::POD_NAMESPACE)]
    pub(crate) secret_namespace: Option<String>,
}

/// Arguments of `bgp render`.
#[derive(Debug, Args)]
#[command(after_help = RENDER_HELP)]
pub(crate) struct BgpRender {
    #[command(flatten)]
    pub(crate) subject: BgpSubject,
    /// BIRD's language.
    #[arg(long, value_name = "SYNTAX", default_value = "bird2")]
    pub(crate) syntax: BirdSyntax,
    /// Write files to this folder instead.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

/// Arguments of `bgp status`.
#[derive(Debug, Args)]
#[command(after_help = STATUS_HELP)]
pub(crate) struct BgpStatus {
    #[command(flatten)]
    pub(crate) run: RunFolder,
    /// Output form.
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: BgpStatusOutput,
}

/// Output forms of what `bgp` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BgpStatusOutput {
    /// For people.
    Text,
    /// For programs: one JSON object.
    Json,
}

/// Arguments of `node status`.
#[derive(Debug, Args)]
#[command(after_help = NODE_STATUS_HELP)]
pub(crate) struct NodeStatusArgs {
    #[command(flatten)]
    pub(crate) run: RunFolder,
}

/// Languages of BIRD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BirdSyntax {
    /// BIRD 2: one daemon and one file for both IP versions.
    Bird2,
    /// BIRD 1.6, as Calico's own image has it: confd's six files.
    Bird1,
}

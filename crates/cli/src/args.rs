//! The command line: what can be asked, with help and examples.

mod agent;
mod apiserver;
mod audit;
mod bgp;
mod cni;
mod confirm;
mod controllers;
mod datastore;
mod demo;
mod describe;
mod diags;
mod diff;
mod duration;
mod edit;
mod get;
mod global;
mod install;
mod ipam;
mod isolation;
mod kubeconfig;
mod node;
mod operator;
mod pod;
mod render;
mod shutdown;
mod startup;
mod status;
mod up;
mod why;
mod write;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::completion::{kinds, names};

pub(crate) use agent::{Agent, DEFAULT_RECORDING};
pub(crate) use apiserver::{ApiServer, Webhooks};
pub(crate) use bgp::{
    BGP_RUN_FOLDER, BIRD1_FOLDER, BIRD2_FOLDER, Bgp, BgpCommand, BgpDoctor, BgpRender, BgpRun,
    BgpStatus, BgpStatusOutput, BgpSubject, BgpWhy, BirdSyntax, NodeStatusArgs,
};
pub(crate) use cni::{Cni, CniCommand, CniInstall, CniPlaces, CniUninstall};
pub(crate) use confirm::{Apply, Confirm};
pub(crate) use controllers::Controllers;
pub(crate) use datastore::{Datastore, DatastoreCommand, MigrateCommand};
pub(crate) use demo::{Demo, DemoDataplane, DemoOutput};
pub(crate) use describe::Describe;
pub(crate) use diags::{ClusterArgs, ClusterCommand, ClusterDiags, Diags};
pub(crate) use diff::{Diff, TROUBLE};
pub(crate) use edit::Edit;
pub(crate) use get::Get;
pub(crate) use global::{Global, LogFormat};
pub(crate) use install::{Install, InstallOutput};
pub(crate) use ipam::{
    Ipam, IpamCheck, IpamCommand, IpamConfigure, IpamRelease, IpamShow, IpamSplit, IpamWhy,
};
pub(crate) use kubeconfig::Kubeconfig;
pub(crate) use node::{
    CheckSystem, CheckSystemOutput, Node, NodeCommand, NodeInterface, Subject, UNKNOWN, Verify,
    VerifyOutput,
};
pub(crate) use operator::{Operator, OperatorCommand, OperatorNew};
pub(crate) use pod::{
    Pod, PodCommand, PodConnect, PodExec, PodName, PodProtocol, PodRun, PodServe, Service,
};
pub(crate) use render::{Render, RenderOutput};
pub(crate) use shutdown::Shutdown;
pub(crate) use startup::{Startup, TunnelAddresses};
pub(crate) use status::{Status, StatusOutput};
pub(crate) use up::{Down, Part, Up};
pub(crate) use why::{IpVersion, Why, WhyOutput};
pub(crate) use write::{Create, Delete, DryRun, DryRunBy, Files, Replace};

const EXAMPLES: &str = "\
Examples:
  tortie demo                                     see policy at work, on this machine alone
  tortie pod connect web db:5432                  try a connection between two pods of `up`
  tortie up                                       API server, controllers and agent on this machine, for kubectl
  tortie status                                   is this node, or this cluster, well?
  tortie apply -f policies/                       store every resource of a folder
  tortie get networkpolicy -A -o wide             list policies of all namespaces
  tortie validate -f policy.yaml                  check a file without any datastore
  tortie selector \"app == 'web'\" --labels app=web  does this selector match these labels?
  tortie why shop/web shop/db --protocol TCP --port 5432  is this connection allowed, and why?

Without a datastore option, resources live in a file on this machine. Set KUBECONFIG or ETCD_ENDPOINTS, or give
--datastore, to work on a cluster.";

/// Kubernetes networking and network policy: Calico's resources, and why a connection is allowed or denied.
#[derive(Debug, Parser)]
#[command(name = "tortie", version, after_help = EXAMPLES, max_term_width = 120, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show resources.
    Get(Get),
    /// Show resources for people: what they say, what they select, and what refers to them.
    Describe(Describe),
    /// Store new resources; those that exist already are an error.
    Create(Create),
    /// Store resources, changing those that exist.
    Apply(Apply),
    /// Show what `apply` would change.
    Diff(Diff),
    /// Change a resource in an editor.
    Edit(Edit),
    /// Keep what `apply --confirm` applied, or roll it back.
    Confirm(Confirm),
    /// Change resources that exist; those that do not are an error.
    Replace(Replace),
    /// Remove resources.
    Delete(Delete),
    /// Change some fields of a resource.
    Patch(Patch),
    /// Set or remove labels of a resource.
    Label(Label),
    /// Check files without any datastore.
    Validate(Files),
    /// Turn Kubernetes network policies into Calico resources.
    Convert(Convert),
    /// Print the custom resource definitions for Kubernetes.
    Crds(Crds),
    /// Explain a selector: is it valid, what is its normal form, does it match?
    Selector(Selector),
    /// Tell on one screen whether this node and its cluster are well.
    Status(Status),
    /// Tell whether a connection is allowed or denied, and why.
    Why(Box<Why>),
    /// Run everything on this machine: API server, controllers and agent.
    Up(Up),
    /// End `up`, and remove what it made in the kernel.
    Down(Down),
    /// Make pods of network namespaces for `up`, and try connections between them.
    Pod(Pod),
    /// Issue credentials for `up` to somebody else, as a kubeconfig.
    Kubeconfig(Kubeconfig),
    /// Enforce on this machine what the datastore says.
    Agent(Agent),
    /// Keep the datastore true to what Kubernetes says, and clean up after what is gone.
    Controllers(Controllers),
    /// Serve Calico's resources behind the API server of Kubernetes.
    #[command(name = "apiserver")]
    ApiServer(ApiServer),
    /// Answer Kubernetes' questions about Calico's custom resources before they are stored.
    Webhooks(Webhooks),
    /// Connect containers to the network, for a container runtime.
    Cni(Cni),
    /// Print what would be programmed on a node.
    Render(Render),
    /// Show, check and release addresses.
    Ipam(Ipam),
    /// Check, back up, restore or move the datastore as a whole.
    Datastore(Datastore),
    /// Tell other nodes, and the routers around them, where pods and services are.
    Bgp(Bgp),
    /// Install everything in a cluster, or change what is installed.
    Install(Install),
    /// Look after this node.
    Node(Node),
    /// Look after the cluster.
    Cluster(ClusterArgs),
    /// Write a new operator on Tortie's framework.
    Operator(Operator),
    /// Show on this machine what policy does: pods of network namespaces, real packets, nothing left behind.
    Demo(Demo),
    /// Play a recording of the engine's input and print what it tells the data plane.
    Replay(Replay),
    /// Show the version of this program and of the cluster.
    Version(Version),
    /// Write manual pages, one for each command.
    Man(Man),
    /// Print the completion script for a shell.
    Completion(Completion),
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tortie why -f cluster/ shop/web shop/db --record recording.jsonl
  tortie replay recording.jsonl | grep activePolicyUpdate")]
pub(crate) struct Replay {
    /// A file that was recorded, or `-` for standard input.
    pub(crate) file: PathBuf,
}

/// How a patch is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PatchType {
    /// Merge objects; replace lists. For these resources the same as `merge`.
    Strategic,
    /// Merge objects; replace lists (RFC 7386).
    Merge,
    /// A list of operations (RFC 6902).
    Json,
}

/// Arguments of `patch`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  tortie patch ippool default-pool -p '{\"spec\": {\"disabled\": true}}'"
)]
pub(crate) struct Patch {
    /// Kind of the resource.
    #[arg(add = kinds())]
    pub(crate) kind: String,
    /// Name of the resource.
    #[arg(add = names())]
    pub(crate) name: String,
    /// The patch, in JSON or YAML.
    #[arg(short = 'p', long = "patch", value_name = "PATCH")]
    pub(crate) change: String,
    /// How the patch is to be understood.
    #[arg(short, long, value_name = "TYPE", default_value = "strategic")]
    pub(crate) r#type: PatchType,
    /// Namespace [default: default].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

/// Arguments of `label`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tortie label node n1 rack=a7\n  tortie label node n1 rack --remove"
)]
pub(crate) struct Label {
    /// Kind of the resource.
    #[arg(add = kinds())]
    pub(crate) kind: String,
    /// Name of the resource.
    #[arg(add = names())]
    pub(crate) name: String,
    /// Labels: KEY=VALUE, or KEY with --remove.
    #[arg(required = true)]
    pub(crate) labels: Vec<String>,
    /// Change labels that are set already.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Remove the labels.
    #[arg(long, conflicts_with = "overwrite")]
    pub(crate) remove: bool,
    /// Namespace [default: default].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tortie convert -f k8s-policies.yaml | tortie apply -f -")]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Output form: yaml or json.
    #[arg(short, long, value_name = "FORM", default_value = "yaml")]
    pub(crate) output: String,
}

/// Arguments of `crds`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tortie crds | kubectl apply -f -")]
pub(crate) struct Crds {
    /// API group: `v3` for projectcalico.org/v3, `v1` for crd.projectcalico.org/v1, `migration` for the kind that asks for
    /// a move from the one to the other.
    #[arg(long, value_name = "GROUP", default_value = "v3")]
    pub(crate) group: CrdGroup,
}

/// The API groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CrdGroup {
    /// projectcalico.org/v3
    #[value(alias = "projectcalico.org/v3")]
    V3,
    /// crd.projectcalico.org/v1
    #[value(alias = "crd.projectcalico.org/v1")]
    V1,
    /// migration.projectcalico.org/v1
    #[value(alias = "migration.projectcalico.org/v1")]
    Migration,
}

/// Arguments of `selector`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 valid (and matching, if labels are given), 2 not matching, 1 not valid."
)]
pub(crate) struct Selector {
    /// The selector, such as \"app == 'web' && has(owner)\".
    pub(crate) expression: String,
    /// Labels to match against, as key=value pairs separated by commas.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) labels: Option<String>,
    /// Output form: text or json.
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: String,
}

/// Arguments of `version`.
#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Only the version of this program; no datastore is asked.
    #[arg(long)]
    pub(crate) client: bool,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tortie man --output /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Folder for the pages; it is made if it is not there.
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
}

/// Arguments of `completion`.
#[derive(Debug, Args)]
#[command(
    after_help = "The shell asks the program itself, also for names of resources.\n\nExamples:\n  tortie completion bash > /etc/bash_completion.d/tortie\n  source <(tortie completion zsh)"
)]
pub(crate) struct Completion {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

/// Parses the command line. Called as `calicoctl`, it answers as `tortie` does.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    Cli::try_parse_from(&arguments).map_err(|error| {
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            // Who asks for nothing in particular is shown what there is.
            let _ = write!(anstream::stdout(), "{}", error.render().ansi());
            return ExitCode::SUCCESS;
        }
        let code = if error.use_stderr() && node::is_verify(&arguments) {
            node::UNKNOWN.into()
        } else if error.use_stderr() && is_diff(&arguments) {
            diff::TROUBLE.into()
        } else if error.use_stderr() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        };
        // Nothing is left to do if the terminal does not take the message.
        let _ = error.print();
        code
    })
}

/// Whether these are the arguments of a diff, whatever else is wrong with them.
fn is_diff(arguments: &[OsString]) -> bool {
    let tree = command();
    let mut words = arguments.iter().skip(1);
    let command = words.find_map(|word| tree.find_subcommand(word));
    command.is_some_and(|command| command.get_name() == "diff")
}

/// The command tree, for completion scripts.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}

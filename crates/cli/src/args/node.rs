//! Arguments of `node`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};

use super::bgp::NodeStatusArgs;
use super::diags::Diags;
use super::shutdown::Shutdown;
use super::startup::{Startup, TunnelAddresses};

const VERIFY_HELP: &str = "\
Computes what this node must enforce, as its agent does, and compares it with what the kernel has. Nothing is changed.
Needs the rights that the agent needs. Routes are not compared.

Examples:
  tortie node verify
  tortie node verify --node node-1 -f cluster/        against files instead of the datastore
  tortie node verify -o json | jq '.drift[].object'

Exit code: 0 the kernel has what it should have, 1 it has not, 2 could not find out.";

const CHECK_SYSTEM_HELP: &str = "\
Makes network namespaces that nobody else sees, and there does what an agent does, with the same drivers. Nothing of this machine
is changed, but that the kernel may load modules.

Examples:
  tortie node checksystem
  tortie node checksystem -o json | jq '.[] | select(.result != \"OK\")'

Exit code: 0 all is there that is needed, 1 something is missing.";

const VERIFY_NODE_HELP: &str =
    "Name of this node [default: `FELIX_FELIXHOSTNAME`, `NODENAME` or the name of the machine]";

const VERIFY_PARAMETER_FILE_HELP: &str =
    "File with the agent's parameters [default: /etc/calico/felix.cfg, if it is there]";

/// Exit code of `node verify` for not knowing, where 1 means something else than elsewhere.
pub(crate) const UNKNOWN: u8 = 2;

/// Arguments of `node`.
#[derive(Debug, Args)]
pub(crate) struct Node {
    #[command(subcommand)]
    pub(crate) command: NodeCommand,
}

/// What to do with a node.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Compare what this machine's kernel has with what it should have.
    Verify(Verify),
    /// Try out whether this machine can do what a node has to do.
    #[command(name = "checksystem", visible_alias = "check-system")]
    CheckSystem(CheckSystem),
    /// Show the BGP peers of this node.
    Status(NodeStatusArgs),
    /// Gather what a supporter needs of this node.
    Diags(Diags),
    /// Find this node's addresses, and make what the datastore must hold for it.
    Startup(Startup),
    /// Say good-bye to BGP peers and to Kubernetes, before this node leaves for good.
    Shutdown(Shutdown),
    /// Give tunnel devices their addresses.
    TunnelAddresses(TunnelAddresses),
}

/// Arguments of `node checksystem`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_SYSTEM_HELP)]
pub(crate) struct CheckSystem {
    /// Output form.
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: CheckSystemOutput,
}

/// Output forms of `node checksystem`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckSystemOutput {
    /// For people: a line for each check.
    Text,
    /// For programs: an array of checks.
    Json,
}

/// Arguments of `node verify`.
#[derive(Debug, Args)]
#[command(
    after_help = VERIFY_HELP,
    mut_arg("node", |node| node.help(VERIFY_NODE_HELP)),
    mut_arg("parameter_file", |file| file.help(VERIFY_PARAMETER_FILE_HELP)),
)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Output form.
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: VerifyOutput,
}

/// Which node to compute for, and from what.
#[derive(Debug, Args)]
pub(crate) struct Subject {
    /// Name of the node.
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Read these files or folders, or `-` for standard input, instead of a datastore; may be given several times.
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) filename: Vec<PathBuf>,
    /// Read folders with all their subfolders.
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// File with the agent's parameters.
    #[arg(long, value_name = "FILE")]
    pub(crate) parameter_file: Option<PathBuf>,
}

/// Output forms of `node verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyOutput {
    /// For people: a line for each difference.
    Text,
    /// For programs: one JSON object.
    Json,
}

/// An interface with its addresses, as `eth0=192.168.0.1,fd00::1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeInterface {
    pub(crate) name: String,
    pub(crate) addresses: BTreeSet<IpAddr>,
}

/// Whether arguments that could not be read are those of `node verify`.
pub(super) fn is_verify(arguments: &[OsString]) -> bool {
    arguments.windows(2).any(|pair| pair == ["node", "verify"])
}

impl FromStr for NodeInterface {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, addresses) = text.split_once('=').unwrap_or((text, ""));
        if name.is_empty() {
            return Err("the name of the interface is missing".to_owned());
        }
        let addresses = addresses.split(',').filter(|address| !address.is_empty());
        let addresses = addresses.map(|address| {
            let parsed = address.parse();
            parsed.map_err(|_| format!("`{address}` is not an address"))
        });
        Ok(Self {
            name: name.to_owned(),
            addresses: addresses.collect::<Result<_, _>>()?,
        })
    }
}

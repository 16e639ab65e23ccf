//! Arguments of `ipam`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use ipnet::IpNet;

const SHOW_HELP: &str = "\
Examples:
  tortie ipam show                          how full each pool is
  tortie ipam show --show-blocks            and each of its blocks
  tortie ipam show --ip 10.65.0.7           who has an address
  tortie ipam show --show-borrowed          addresses that a node has from another node's block";

const CHECK_HELP: &str = "\
Compares what address management has given out with what nodes, workloads and services use. Nothing is changed.

Examples:
  tortie ipam check --show-problem-ips
  tortie ipam check -o report.json          for tortie ipam release --from-report";

const RELEASE_HELP: &str = "\
Releases an address that nobody uses, or all that a report of `tortie ipam check -o` calls leaked. An address that a workload,
a node or a service uses is refused. For reports, lock the datastore first (tortie datastore migrate lock), so that nothing
changes between the check and the release.

Examples:
  tortie ipam release --ip 10.65.0.7
  tortie ipam release --from-report report.json";

const CONFIGURE_HELP: &str = "\
Examples:
  tortie ipam configure --strictaffinity=true
  tortie ipam configure --max-blocks-per-host=4";

const SPLIT_HELP: &str = "\
Makes of one pool several smaller ones with the same blocks, so that each can get settings of its own. The datastore must be
locked.

Examples:
  tortie ipam split 2 --name default-ipv4-ippool
  tortie ipam split 4 --cidr 10.65.0.0/16";

const WHY_HELP: &str = "\
Examples:
  tortie ipam why 10.65.0.7
  tortie ipam why 10.65.0.7 -o json

Exit code: 0 the address is free or in use, 1 it is leaked or broken, 2 could not find out.";

/// Arguments of `ipam`.
#[derive(Debug, Args)]
pub(crate) struct Ipam {
    #[command(subcommand)]
    pub(crate) command: IpamCommand,
}

/// What to do with addresses.
#[derive(Debug, Subcommand)]
pub(crate) enum IpamCommand {
    /// Show how full pools and blocks are, or who has an address.
    Show(IpamShow),
    /// Find addresses that are given out and not used, and the reverse.
    Check(IpamCheck),
    /// Take back addresses that nobody uses.
    Release(IpamRelease),
    /// Change how addresses are given out.
    Configure(IpamConfigure),
    /// Make several pools of one.
    Split(IpamSplit),
    /// Tell who holds an address, since when, and whether it is leaked.
    Why(IpamWhy),
}

/// Arguments of `ipam show`.
#[derive(Debug, Args)]
#[command(after_help = SHOW_HELP, group = ArgGroup::new("subject"))]
pub(crate) struct IpamShow {
    /// Tell who has this address.
    #[arg(long, value_name = "ADDRESS", group = "subject")]
    pub(crate) ip: Option<IpAddr>,
    /// Show blocks, too.
    #[arg(long, group = "subject")]
    pub(crate) show_blocks: bool,
    /// Show addresses that a node has from another node's block.
    #[arg(long, group = "subject")]
    pub(crate) show_borrowed: bool,
    /// Show how addresses are given out.
    #[arg(long, group = "subject")]
    pub(crate) show_configuration: bool,
}

/// Arguments of `ipam check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct IpamCheck {
    /// Print every address that is given out.
    #[arg(long)]
    pub(crate) show_all_ips: bool,
    /// Print every address with a problem.
    #[arg(long)]
    pub(crate) show_problem_ips: bool,
    /// Write a report to this file.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Arguments of `ipam release`.
#[derive(Debug, Args)]
#[command(after_help = RELEASE_HELP, group = ArgGroup::new("what").required(true))]
pub(crate) struct IpamRelease {
    /// The address.
    #[arg(long, value_name = "ADDRESS", group = "what")]
    pub(crate) ip: Option<IpAddr>,
    /// Release what this report calls leaked; of several, what all of them call so.
    #[arg(long, value_name = "FILE", group = "what")]
    pub(crate) from_report: Vec<PathBuf>,
    /// Also with an address in use, an unlocked datastore or a report of another version.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Arguments of `ipam configure`.
#[derive(Debug, Args)]
#[command(after_help = CONFIGURE_HELP)]
pub(crate) struct IpamConfigure {
    /// Whether a node gets addresses of its own blocks only.
    #[arg(long, value_name = "BOOL", alias = "strict-affinity")]
    pub(crate) strictaffinity: Option<bool>,
    /// How many blocks a node may have; 0 for no limit of your own.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_blocks_per_host: Option<i32>,
    /// Whether virtual machines keep their addresses.
    #[arg(long, value_name = "Enabled|Disabled")]
    pub(crate) kubevirt_ip_persistence: Option<String>,
    /// How long a released address is not given out again.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) ip_cooldown_seconds: Option<i32>,
}

/// Arguments of `ipam split`.
#[derive(Debug, Args)]
#[command(after_help = SPLIT_HELP, group = ArgGroup::new("pool").required(true))]
pub(crate) struct IpamSplit {
    /// How many pools to make: a power of two.
    #[arg(value_name = "NUMBER")]
    pub(crate) parts: u32,
    /// The pool with this network.
    #[arg(long, value_name = "CIDR", group = "pool")]
    pub(crate) cidr: Option<IpNet>,
    /// The pool with this name.
    #[arg(long, value_name = "NAME", group = "pool")]
    pub(crate) name: Option<String>,
}

/// Arguments of `ipam why`.
#[derive(Debug, Args)]
#[command(after_help = WHY_HELP)]
pub(crate) struct IpamWhy {
    /// The address.
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: IpAddr,
    /// Output form.
    #[arg(short, long, value_name = "FORM", default_value = "text", value_parser = ["text", "json"])]
    pub(crate) output: String,
}

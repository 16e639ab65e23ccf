//! Arguments of `demo`.

use clap::{Args, ValueEnum};

use super::isolation::Inside;

const HELP: &str = "\
Four pods are made of network namespaces on this machine: a frontend, a backend and a database in the namespace `shop`,
and a stranger in another one. The agent enforces on them what a datastore in memory says, and real TCP and UDP packets
show what passes: without policy, after `default deny`, and with policies that allow what the shop needs. Every packet
is compared with what `tortie why` says about it.

Nothing need be installed (for --dataplane iptables: iptables and ipset), no root is needed where user namespaces are
allowed, nothing outside the demo's own namespaces changes, and they end with the program, however it ends. With --keep, an
API server and the datastore are reached through a folder, which goes with it too.

Examples:
  tortie demo
  tortie demo --dataplane iptables --ipv6
  tortie demo --keep                    look around with kubectl, tortie and nsenter
  tortie demo -o json | jq .steps[].changes

Exit code: 0 if all packets were as expected and all verdicts agree, 1 if not, 130 if it was interrupted.";

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Demo {
    /// What enforces policy.
    #[arg(long, value_name = "NAME", default_value = "nftables")]
    pub(crate) dataplane: DemoDataplane,
    /// Give pods IPv6 addresses too, and probe them.
    #[arg(long)]
    pub(crate) ipv6: bool,
    /// Leave everything running until Ctrl-C, with an API server, and tell how to look around.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Output form.
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: DemoOutput,
    /// No colours, even on a terminal.
    #[arg(long)]
    pub(crate) no_color: bool,
    #[command(flatten)]
    pub(crate) inside: Inside,
}

/// What can enforce policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoDataplane {
    /// nftables, over netlink.
    Nftables,
    /// iptables and ipset, by their programs.
    Iptables,
}

/// Output forms of `demo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoOutput {
    /// For people.
    Text,
    /// For programs: one JSON object at the end.
    Json,
}

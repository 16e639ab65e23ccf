//! Arguments of `render`.

use clap::{Args, ValueEnum};

use super::node::Subject;
use super::{IpVersion, NodeInterface};

const HELP: &str = "\
What the agent of a node would bring into the kernel, as text that the kernel's own tools load. Nothing is changed on
this machine. Without -f the datastore is asked. FelixConfiguration and FELIX_… variables count as they do for the agent.

Which interfaces a host has is not in a datastore. Only host endpoints that name none and the set of the host's own
addresses depend on it: give --interface, or --local-interfaces on the node itself.

Output forms:
  nftables   for `nft -f -`: all of the tables `ip calico` and, with IPv6, `ip6 calico`; takes the place of those before
  iptables   for `iptables-restore` or, with --ip 6, `ip6tables-restore`; the sets must be there before
  ipset      for `ipset restore`: the sets that the rules of iptables use
  json       chains, sets, maps and routes as values

Examples:
  tortie render --node node-1 -o nftables
  tortie render --node node-1 -f cluster/ -f new-policy.yaml -o nftables | nft -c -f -
  tortie render --node node-1 -o ipset | ipset restore
  tortie render --node node-1 -o iptables | iptables-restore --noflush
      with --noflush the rules of others stay, and the rules that lead to ours come once more with each time;
      without it the tables have these rules and no others
  tortie render --node node-1 --cost | head
  tortie render --node node-1 -f cluster/ --interface eth0=192.168.0.7 -o json | jq '.families[].chains[].name'";

/// Arguments of `render`.
#[derive(Debug, Args)]
#[command(
    after_help = HELP,
    mut_arg("node", |node| node.help("Name of the node; without it, an error says which there are")),
)]
pub(crate) struct Render {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Output form; see below.
    #[arg(short, long, value_name = "FORM", default_value = "nftables")]
    pub(crate) output: RenderOutput,
    /// Print what each policy costs in the kernel instead, the largest first: rules of both directions and all IP
    /// versions, sets that they refer to, and members of these.
    #[arg(long, conflicts_with = "output")]
    pub(crate) cost: bool,
    /// Only this IP version [default: 4 for iptables and ipset, both for the others].
    #[arg(long, value_name = "VERSION")]
    pub(crate) ip: Option<IpVersion>,
    /// An interface of the node with its addresses; may be given several times.
    #[arg(
        long,
        value_name = "NAME=ADDRESS,…",
        conflicts_with = "local_interfaces"
    )]
    pub(crate) interface: Vec<NodeInterface>,
    /// The interfaces of this machine are the node's.
    #[arg(long)]
    pub(crate) local_interfaces: bool,
}

/// Output forms of `render`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RenderOutput {
    /// Input of `nft -f`.
    Nftables,
    /// Input of `iptables-restore`.
    Iptables,
    /// Input of `ipset restore`.
    Ipset,
    /// Values.
    Json,
}

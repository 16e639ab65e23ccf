//! Arguments of `bgp why` and `bgp doctor`.

use clap::Args;
use tortie_bgp::explain::Target;

use super::{BgpStatusOutput, BgpSubject, RunFolder};

const WHY_HELP: &str = "\
Says of nodes that have the prefix whether they tell it to their peers, and of another node (--node, or this machine) whether it
learns and programs it. Where that is not so, the first thing that stops it is named: a rule of a BGPFilter, the pool, the state of a
claim on a block, a setting, or a session that is not there. What would change it is said beside it.

Without -f the datastore is asked, and about this machine's own node also BIRD and the kernel: what is true stands beside what should
be. With -f the files are all there is.

Examples:
  tortie bgp why 10.65.1.0/26
  tortie bgp why 10.65.1.7                              the longest prefix that is known and has this address
  tortie bgp why 10.65.1.0/26 --node node-2             does node-2 learn and program it?
  tortie bgp why 10.65.1.0/26 --peer 192.0.2.254        is this router told? By address, BGPPeer, node or session
  tortie bgp why 10.96.0.0/12 --node node-1 -f cluster/ -f new-filter.yaml -o json

Exit code: 0 advertised, or learnt and programmed, wherever that was asked; 2 not so; 1 error.";

const DOCTOR_HELP: &str = "\
Looks at the BGP of all nodes, or of one (--node): addresses that are missing or that two nodes have, router ids, AS numbers, ports,
passwords and TTL security that both sides of a session do not agree about, sessions of one side, nodes without sessions, route
reflectors, filters and secrets that are not there, routes that nobody programs. Each is told with object, field, value and what would
be right.

Without -f, and about this machine's own node, also what is true here: whether BIRD runs, sessions that are down with their last error
and whether the peer's port answers, addresses that no interface has, paths with a smaller MTU than the interface.

Examples:
  tortie bgp doctor
  tortie bgp doctor --node node-1
  tortie bgp doctor -f cluster/ -o json | jq '.findings[] | select(.severity == \"error\")'

Exit code: 0 nothing is wrong or there are warnings only, 1 there is an error.";

/// Arguments of `bgp why`.
#[derive(Debug, Args)]
#[command(after_help = WHY_HELP)]
pub(crate) struct BgpWhy {
    /// A network such as 10.65.1.0/26, or an address.
    pub(crate) prefix: Target,
    /// Only about this peer: a `BGPPeer`, a node, an address, or BIRD's name of a session.
    #[arg(long, value_name = "PEER")]
    pub(crate) peer: Option<String>,
    #[command(flatten)]
    pub(crate) subject: BgpSubject,
    #[command(flatten)]
    pub(crate) run: RunFolder,
    /// Output form.
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: BgpStatusOutput,
}

/// Arguments of `bgp doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_HELP)]
pub(crate) struct BgpDoctor {
    #[command(flatten)]
    pub(crate) subject: BgpSubject,
    #[command(flatten)]
    pub(crate) run: RunFolder,
    /// Output form.
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: BgpStatusOutput,
}

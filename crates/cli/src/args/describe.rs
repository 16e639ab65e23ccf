//! Arguments of `describe`.

use clap::Args;

use crate::completion::{kinds, names};

const EXAMPLES: &str = "\
Beside the resource itself: of a policy or a profile, the endpoints that it applies to; of an endpoint, its policies in the
order in which they are asked; of a set, the rules that select it; of a tier, its policies; of a pool, how full it is;
of a node, its blocks and endpoints; of a BGP filter, the peers that use it.

Examples:
  tortie describe np db -n shop
  tortie describe ippool default-ipv4-ippool
  tortie describe nodes                           all of them";

/// Arguments of `describe`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Describe {
    /// Kind of the resources: a name, plural or short name such as `np`; or KIND/NAME.
    #[arg(add = kinds())]
    pub(crate) kind: String,
    /// Names; all resources of the kind if none is given.
    #[arg(add = names())]
    pub(crate) names: Vec<String>,
    /// Namespace [default: default].
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,
    /// All namespaces.
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
}

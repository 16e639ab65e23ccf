//! Arguments of `node shutdown`.

use clap::Args;

use super::bgp::RunFolder;

const SHUTDOWN_HELP: &str = "\
Says good-bye before a node leaves for good, or for long: BIRD tells its peers at once that nothing is to be had here any more, so that
they send packets elsewhere while this node can still forward those that are under way. A `tortie bgp` that runs here does it, and
does not bring BIRD back before `tortie node startup`. Kubernetes is told by the condition NetworkUnavailable of the Node, so that no new
pods come. Rules and routes stay in the kernel.

For a restart or an upgrade it is not needed: BIRD goes on meanwhile.

Environment, as Calico's node has it:
  NODENAME, CALICO_K8S_NODE_REF   name of the node, and of the Node of Kubernetes if that is another
  CALICO_NETWORKING_BACKEND       with `none`, Kubernetes is told nothing

Examples:
  tortie node shutdown
  kubectl drain node-1 --ignore-daemonsets && ssh node-1 sudo tortie node shutdown
  tortie node startup                                       the node is back

Exit code: 0 peers know it and Kubernetes too, 1 not all of this.";

/// Arguments of `node shutdown`.
#[derive(Debug, Args)]
#[command(after_help = SHUTDOWN_HELP)]
pub(crate) struct Shutdown {
    /// Name of this node [default: `FELIX_FELIXHOSTNAME`, NODENAME or the name of the machine].
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunFolder,
}

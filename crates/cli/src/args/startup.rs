//! Arguments of `node startup` and `node tunnel-addresses`.

use clap::Args;

use super::bgp::RunFolder;

const STARTUP_HELP: &str = "\
Finds this node's addresses and makes what the datastore must hold for it: its Node, the cluster's identity, the first
pools, the default configurations, and addresses for tunnel devices. It is run once before the agent starts, and changes
nothing that is there already. It takes back what `tortie node shutdown` has said.

Environment, as Calico's node has it:
  NODENAME                     name of the node
  IP, IP6                      an address, `autodetect` or `none`
  IP_AUTODETECTION_METHOD, IP6_AUTODETECTION_METHOD
                               first-found, kubernetes-internal-ip, can-reach=ADDRESS, interface=REGEX,…,
                               skip-interface=REGEX,… or cidr=NETWORK,…
  AS                           AS number of the node
  CALICO_IPV4POOL_CIDR, _VXLAN, _IPIP, _BLOCK_SIZE, _NAT_OUTGOING, _NODE_SELECTOR, and the same with IPV6POOL
  NO_DEFAULT_POOLS, DISABLE_NODE_IP_CHECK, WAIT_FOR_DATASTORE, CLUSTER_TYPE, CALICO_NODENAME_FILE

Examples:
  tortie node startup
  IP_AUTODETECTION_METHOD=interface=eth.* CALICO_IPV4POOL_VXLAN=CrossSubnet tortie node startup";

const TUNNELS_HELP: &str = "\
A VXLAN or IPIP device has an address of its own, from a pool that uses it. This gives each device that a pool asks for
an address, takes back those that no pool asks for, and goes on whenever pools or this node change.

Examples:
  tortie node tunnel-addresses
  tortie node tunnel-addresses --run-once";

/// Arguments of `node startup`.
#[derive(Debug, Args)]
#[command(after_help = STARTUP_HELP)]
pub(crate) struct Startup {
    /// Name of this node [default: `NODENAME`, what it was called before, or the name of the machine].
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunFolder,
}

/// Arguments of `node tunnel-addresses`.
#[derive(Debug, Args)]
#[command(after_help = TUNNELS_HELP)]
pub(crate) struct TunnelAddresses {
    /// Name of this node [default: `NODENAME`, what it was called before, or the name of the machine].
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// End when all devices have what they need.
    #[arg(long)]
    pub(crate) run_once: bool,
}

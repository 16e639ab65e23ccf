//! Arguments of `up` and `down`.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use ipnet::IpNet;
use tortie_apiserver::http::DEFAULT_MEMORY;
use tortie_apiserver::standalone::SERVICE_NETWORK;
use tortie_store::embedded::DEFAULT_QUOTA;
use tortie_variables as variables;

use super::audit::AuditLog;
use super::isolation::Inside;

const UP_HELP: &str = "\
Without a cluster, everything is on this machine: an API server with Calico's resources and the Kubernetes objects that
policies need, on the embedded datastore; the controllers; the agent. The kubeconfig is in the data folder. While it runs,
every other tortie command reads and writes through it.

Without root, or with --own-network, it has a network of its own, and this machine's stays as it is. `tortie pod run` makes
pods there, of network namespaces, to try policies on real packets. kubectl and other commands of the same user reach it
as usual, and everything is gone when it ends.

Once a BGPPeer, or a BGPConfiguration with more than defaults, asks for BGP, it runs BIRD too, of Debian's package bird2. Like rules and
routes BIRD stays when this ends, until `tortie down`, which has it withdraw what it has announced.

With KUBECONFIG, ETCD_ENDPOINTS or --datastore, the agent and the controllers use that cluster, and no API server is
started.

Examples:
  tortie up                                                everything, until Ctrl-C or a signal
  tortie up --detach                                       the same in the background, until `tortie down`
  KUBECONFIG=/var/lib/tortie/kubeconfig kubectl apply -f policy.yaml    in another terminal
  tortie pod run web --serve tcp:80 -l app=web             a pod, with root or without; see `tortie pod --help`
  tortie kubeconfig --user ann -o ann.kubeconfig           credentials for others, who may do what their roles allow
  tortie up --data-dir /srv/tortie --listen 127.0.0.1:7443
  tortie up --print-systemd > /etc/systemd/system/tortie.service
  KUBECONFIG=/etc/tortie/kubeconfig tortie up --print-systemd    the same for the cluster of a kubeconfig
  tortie down                                              end it, and remove what it made in the kernel";

/// Arguments of `up`.
#[derive(Debug, Args)]
#[command(after_help = UP_HELP)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "options that are given or not"
)]
pub(crate) struct Up {
    /// Where the API server listens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    pub(crate) listen: SocketAddr,
    /// Name of this node [default: `FELIX_FELIXHOSTNAME`, NODENAME or the name of the machine].
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// The network that services of the API server get their addresses from.
    #[arg(long, value_name = "CIDR", default_value_t = SERVICE_NETWORK.into(), value_parser = service_network)]
    pub(crate) service_cidr: IpNet,
    /// What not to run; may be given several times.
    #[arg(long, value_name = "PART")]
    pub(crate) without: Vec<Part>,
    /// Leave this machine's network alone and use one of its own, for pods of `tortie pod run`; without root it is so anyway.
    #[arg(long)]
    pub(crate) own_network: bool,
    /// Take this machine from another agent that enforces policy on it, which then ends.
    #[arg(long)]
    pub(crate) take_over: bool,
    /// Let packets to other nodes go in clear text where WireGuard is asked for, which is not supported.
    #[arg(long, env = variables::TORTIE_ALLOW_CLEARTEXT)]
    pub(crate) allow_cleartext: bool,
    /// How large the store may become, in MiB; what would make it larger is refused.
    #[arg(long, value_name = "MIB", env = variables::TORTIE_QUOTA, default_value_t = DEFAULT_QUOTA >> 20, value_parser = clap::value_parser!(u64).range(16..=1 << 20))]
    pub(crate) quota: u64,
    /// How much memory requests to the API server may hold at a time, in MiB; others wait, or are told to come back.
    #[arg(long, value_name = "MIB", env = variables::TORTIE_MEMORY_BUDGET, default_value_t = DEFAULT_MEMORY >> 20, value_parser = memory_budget)]
    pub(crate) memory_budget: usize,
    /// Go on in the background, and return when everything runs; `tortie down` ends it.
    #[arg(long)]
    pub(crate) detach: bool,
    /// Print a unit for systemd that runs this, and exit.
    #[arg(long)]
    pub(crate) print_systemd: bool,
    /// Where requests to the API server are written down.
    #[command(flatten)]
    pub(crate) audit: AuditLog,
    #[command(flatten)]
    pub(crate) inside: Inside,
}

/// Services have addresses besides the first and the last.
fn service_network(text: &str) -> Result<IpNet, String> {
    let network: Result<IpNet, _> = text.parse();
    match network {
        Ok(network) if network.max_prefix_len() - network.prefix_len() >= 3 => Ok(network.trunc()),
        Ok(_) => Err("must have at least 8 addresses, such as 10.96.0.0/12".to_owned()),
        Err(_) => Err("must be a network, such as 10.96.0.0/12".to_owned()),
    }
}

/// Less is of no use, and more than that is no bound.
fn memory_budget(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(mib @ 16..=65536) => Ok(mib),
        _ => Err("must be a number of MiB from 16 to 65536".to_owned()),
    }
}

/// Parts of `up` that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Enforcement on this machine.
    Agent,
    /// Copies of Kubernetes' objects, and cleaning up.
    Controllers,
}

const DOWN_HELP: &str = "\
Pods of `tortie pod run` end too, and BIRD, which tells its peers first. Interfaces of others are left alone: they belong to the container runtime, and go with
its pods. Of an `up` without root nothing is left in the kernel.

Examples:
  tortie down                              end `tortie up`, and remove its rules, sets, routes and tunnels
  tortie down --data-dir /srv/tortie       the one with this data folder";

/// Arguments of `down`.
#[derive(Debug, Args)]
#[command(after_help = DOWN_HELP)]
pub(crate) struct Down {}

//! Arguments of `controllers`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

const HELP: &str = "\
The settings are those of Calico's kube-controllers: variables of the process win over the KubeControllersConfiguration
named default, which is created if there is none. A change of that resource takes effect at once; what is in force is
written to its status.

Variables:
  ENABLED_CONTROLLERS        workloadendpoint, profile or namespace, policy, node, serviceaccount, loadbalancer, separated by
                             commas. With etcd all are of use, in Kubernetes node and loadbalancer.
                             flannelmigration alone moves the cluster from flannel's network, and ends
  RECONCILER_PERIOD          how often everything is compared with the datastore, such as 5m; 0 turns it off
  COMPACTION_PERIOD          how often etcd forgets its history, such as 10m; 0 turns it off
  HEALTH_ENABLED             whether the datastore and the API server are asked how they are: true or false
  SYNC_NODE_LABELS           whether labels of Kubernetes' nodes are copied, with etcd: true or false
  AUTO_HOST_ENDPOINTS        whether nodes get host endpoints: enabled or disabled
  LOG_LEVEL                  panic, fatal, error, warning, info, debug or trace
  POLICY_WORKERS, PROFILE_WORKERS, WORKLOAD_ENDPOINT_WORKERS
                             how many writes are on their way at once [default: 16]
  DATASTORE_TYPE, ETCD_…, KUBECONFIG, K8S_…
                             where resources are, and the cluster

Examples:
  tortie controllers                                                   in a pod, with the resources in Kubernetes
  ETCD_ENDPOINTS=http://etcd:2379 KUBECONFIG=admin.conf tortie controllers     with the resources in etcd
  ENABLED_CONTROLLERS=node tortie controllers --health-port 9440 --leader-elect
  tortie controllers --explain-config                                  what is in force, and where it comes from";

/// Arguments of `controllers`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Controllers {
    /// File that says how the process is, for probes.
    #[arg(long, value_name = "FILE", default_value = "/status/status.json")]
    pub(crate) status_file: PathBuf,
    /// Port that serves /readiness and /liveness; 0 for none.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) health_port: u16,
    /// Print every setting with its value and where that comes from, and exit.
    #[arg(long)]
    pub(crate) explain_config: bool,
    /// Run in one of several processes at a time.
    #[arg(long)]
    pub(crate) leader_elect: bool,
    /// Namespace of the lease [default: that of the pod, or kube-system].
    #[arg(long, value_name = "NAME", requires = "leader_elect")]
    pub(crate) leader_elect_namespace: Option<String>,
    /// Name of the lease.
    #[arg(long, value_name = "NAME", default_value = "calico-kube-controllers")]
    pub(crate) leader_elect_name: String,
    /// How long others wait for a leader that is silent, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = seconds)]
    pub(crate) leader_elect_lease: Duration,
    /// How long a leader acts without having renewed its lease, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub(crate) leader_elect_renew_deadline: Duration,
    /// How often a leader renews and others look, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) leader_elect_retry: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "must be a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

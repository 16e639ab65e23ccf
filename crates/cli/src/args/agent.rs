//! Arguments of `agent`.

use std::path::PathBuf;

use clap::Args;
use tortie_files::places;
use tortie_variables as variables;

/// Where a recording goes if nobody names a file.
pub(crate) const DEFAULT_RECORDING: &str = "/var/log/calico/agent-recording.jsonl";

const EXAMPLES: &str = "\
Parameters are those of Calico's node agent, from the first of these that has a value:
  FELIX_<PARAMETER> in the environment, the parameter file, FelixConfiguration node.<node>,
  a FelixConfiguration with a nodeSelector, FelixConfiguration default.

Examples:
  tortie agent                                        enforce on this machine what the datastore says
  FELIX_NFTABLESMODE=Disabled tortie agent            with iptables instead of nftables
  tortie agent --explain-config                       which parameters hold here, and where they come from
  FELIX_HEALTHENABLED=true tortie agent --log-level info
  tortie agent --record /tmp/node.jsonl               and keep what it was told, which `tortie replay` plays elsewhere
  kill -USR1 PID                                      start or end a recording of an agent that runs, by default in
                                                      /var/log/calico/agent-recording.jsonl";

/// Arguments of `agent`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Agent {
    /// Name of this node [default: `FELIX_FELIXHOSTNAME`, NODENAME or the name of the machine].
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// File with parameters.
    #[arg(long, value_name = "FILE", default_value = "/etc/calico/felix.cfg")]
    pub(crate) parameter_file: PathBuf,
    /// Print every parameter with its value and where that comes from, and exit.
    #[arg(long)]
    pub(crate) explain_config: bool,
    /// Let packets to other nodes go in clear text where WireGuard is asked for, which is not supported.
    #[arg(long, env = variables::TORTIE_ALLOW_CLEARTEXT)]
    pub(crate) allow_cleartext: bool,
    /// Folder for the files that tell which endpoints are up [default: the parameter `EndpointStatusPathPrefix`].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) status_folder: Option<PathBuf>,
    /// File that tells CNI plugins how large packets of pods may be.
    #[arg(long, value_name = "FILE", default_value = places::MTU)]
    pub(crate) mtu_file: PathBuf,
    /// Record what the policy engine is told, for `tortie replay`; SIGUSR1 ends that, and starts one at any other time.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = DEFAULT_RECORDING,
    )]
    pub(crate) record: Option<PathBuf>,
    /// Take this machine from another agent that enforces policy on it, which then ends.
    #[arg(long)]
    pub(crate) take_over: bool,
    /// File that tells CNI plugins that policy is in force; without it they connect no pods.
    #[arg(long, value_name = "FILE", default_value = places::AGENT_READY)]
    pub(crate) ready_file: PathBuf,
}

//! Arguments of `cni`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tortie_variables as variables;

const EXAMPLES: &str = "\
Examples:
  tortie cni install --dry-run                    what would be installed on this machine?
  tortie cni install --kubeconfig admin.conf      plugins, configuration and kubeconfig, on the node itself
  SLEEP=true tortie cni install                   in a pod with the node's folders under /host, as Calico's does
  tortie cni uninstall --dry-run                  what would be removed from this machine?

A runtime calls the plugins by their names, under which `install` puts this program: `calico`
and `calico-ipam`, and `loopback`, `portmap`, `bandwidth`, `tuning` and `host-local`, which do
what the plugins of those names of the CNI project do.";

const INSTALL_HELP: &str = "\
Examples:
  tortie cni install --dry-run                    what would be installed on this machine?
  tortie cni install --kubeconfig admin.conf      plugins, configuration and kubeconfig, on the node itself
  tortie cni install --root /mnt/node             on a node whose file system is under that folder
  tortie cni install --update-binaries=false      leave every plugin alone that is there already

Missing folders are made. Of the plugins that are there already, `calico`, `calico-ipam` and what
an earlier install wrote are replaced; what somebody else installed stays, unless
--update-binaries=true is given. What was written is told on the standard error.";

const UNINSTALL_HELP: &str = "\
Examples:
  tortie cni uninstall --dry-run          what would be removed?
  tortie cni uninstall                    removes it
  tortie cni uninstall --root /mnt/node   from a node whose file system is under that folder

Removes configurations of the plugin `calico`, its kubeconfig and certificates, and those
binaries that are this program in any version. Plugins and configurations that somebody else
installed stay, and so do folders. Drain the node first: pods that were connected cannot be
disconnected by a plugin that is gone.";

/// Arguments of `cni`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cni {
    #[command(subcommand)]
    pub(crate) command: CniCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum CniCommand {
    /// Connect containers, as a runtime asks it in the environment and on the standard input.
    Calico(CniPlugin),
    /// Give addresses to containers, as a runtime asks it in the environment and on the standard input.
    CalicoIpam(CniPlugin),
    /// Take the loopback interface up, as a runtime asks it.
    Loopback(CniPlugin),
    /// Lead ports of the node to containers, as a runtime asks it, behind another plugin.
    Portmap(CniPlugin),
    /// Limit how much containers send and receive, as a runtime asks it, behind another plugin.
    Bandwidth(CniPlugin),
    /// Change settings of the kernel and of interfaces of containers, as a runtime asks it, behind another plugin.
    Tuning(CniPlugin),
    /// Give addresses to containers from ranges of this node, which it keeps in files, as a plugin asks it.
    HostLocal(CniPlugin),
    /// Install the plugins on this node.
    Install(Box<CniInstall>),
    /// Remove the plugins from this node.
    Uninstall(CniUninstall),
}

/// Arguments of a plugin.
#[derive(Debug, Args)]
pub(crate) struct CniPlugin {
    /// `-v` for the version, `-t` to test the connection to the datastore.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// Arguments of `cni uninstall`.
#[derive(Debug, Args)]
#[command(after_help = UNINSTALL_HELP)]
pub(crate) struct CniUninstall {
    /// Only show what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) places: CniPlaces,
}

/// Where plugins and configuration are.
#[derive(Debug, Args)]
pub(crate) struct CniPlaces {
    /// Folder that the node's file system is under [default: /host if it has one, else /].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,
    /// Folder for the plugins; may be given several times [default: opt/cni/bin and secondary-bin-dir of the root].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) bin_dir: Vec<PathBuf>,
    /// Folder for the configuration, as the node sees it.
    #[arg(
        long,
        env = variables::CNI_NET_DIR,
        value_name = "FOLDER",
        default_value = "/etc/cni/net.d"
    )]
    pub(crate) net_dir: PathBuf,
}

/// Arguments of `cni install`. Each can also be given by the variable that Calico's installer knows.
#[derive(Debug, Args)]
#[command(after_help = INSTALL_HELP)]
pub(crate) struct CniInstall {
    /// Only show what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) places: CniPlaces,
    /// Name of the configuration.
    #[arg(long, env = variables::CNI_CONF_NAME, value_name = "NAME", default_value = DEFAULT_NAME)]
    pub(crate) conf_name: String,
    /// Name of a configuration to remove.
    #[arg(long, env = variables::CNI_OLD_CONF_NAME, value_name = "NAME", default_value = DEFAULT_NAME)]
    pub(crate) old_conf_name: String,
    /// Folder with the files etcd-ca, etcd-cert and etcd-key.
    #[arg(
        long,
        env = variables::TLS_ASSETS_DIR,
        value_name = "FOLDER",
        default_value = "/calico-secrets"
    )]
    pub(crate) tls_assets_dir: PathBuf,
    /// Plugins in /opt/cni/bin that are not copied to the node, separated by commas.
    #[arg(
        long,
        env = variables::SKIP_CNI_BINARIES,
        value_name = "NAMES",
        default_value = ""
    )]
    pub(crate) skip_binaries: String,
    /// Whether plugins that are there already are replaced [default: those of Calico and our own].
    #[arg(long, env = variables::UPDATE_CNI_BINARIES, value_name = "BOOL", action = clap::ArgAction::Set)]
    pub(crate) update_binaries: Option<bool>,
    /// The configuration, with words such as `__CNI_MTU__` to be replaced.
    #[arg(
        long,
        env = variables::CNI_NETWORK_CONFIG,
        value_name = "TEXT",
        hide_env_values = true
    )]
    pub(crate) network_config: Option<String>,
    /// File with the configuration; counts before the text.
    #[arg(long, env = variables::CNI_NETWORK_CONFIG_FILE, value_name = "FILE")]
    pub(crate) network_config_file: Option<PathBuf>,
    /// Stay, and copy certificates for etcd again when they change.
    #[arg(long, env = variables::SLEEP, value_name = "BOOL", default_value = "false", num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) sleep: bool,
    /// Kubeconfig for the plugins; in a pod, one is made from its account.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Account that the plugins have in Kubernetes.
    #[arg(
        long,
        env = variables::CALICO_CNI_SERVICE_ACCOUNT,
        value_name = "NAME",
        default_value = "calico-cni-plugin"
    )]
    pub(crate) service_account: String,
    /// Let the plugins not check the API server's certificate.
    #[arg(long, env = variables::SKIP_TLS_VERIFY, value_name = "BOOL", default_value = "false", num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) skip_tls_verify: bool,
    #[command(flatten)]
    pub(crate) values: CniValues,
}

const DEFAULT_NAME: &str = "10-calico.conflist";

/// What words in the configuration are replaced with.
#[derive(Debug, Args)]
pub(crate) struct CniValues {
    /// How much the plugins log.
    #[arg(long, env = variables::LOG_LEVEL, value_name = "LEVEL", default_value = "info")]
    pub(crate) plugin_log_level: String,
    /// Where the plugins log.
    #[arg(
        long,
        env = variables::LOG_FILE_PATH,
        value_name = "FILE",
        default_value = "/var/log/calico/cni/cni.log"
    )]
    pub(crate) log_file_path: String,
    /// Megabytes of a log.
    #[arg(
        long,
        env = variables::LOG_FILE_MAX_SIZE,
        value_name = "NUMBER",
        default_value = "100"
    )]
    pub(crate) log_file_max_size: String,
    /// Days that old logs are kept.
    #[arg(
        long,
        env = variables::LOG_FILE_MAX_AGE,
        value_name = "NUMBER",
        default_value = "30"
    )]
    pub(crate) log_file_max_age: String,
    /// How many old logs are kept.
    #[arg(
        long,
        env = variables::LOG_FILE_MAX_COUNT,
        value_name = "NUMBER",
        default_value = "10"
    )]
    pub(crate) log_file_max_count: String,
    /// Datastore of the plugins.
    #[arg(
        long,
        env = variables::DATASTORE_TYPE,
        value_name = "TYPE",
        default_value = "kubernetes"
    )]
    pub(crate) datastore_type: String,
    /// Name of this node [default: that of the machine].
    #[arg(long, env = variables::KUBERNETES_NODE_NAME, value_name = "NAME")]
    pub(crate) node_name: Option<String>,
    /// The largest packet; 0 for what the agent says.
    #[arg(long, env = variables::CNI_MTU, value_name = "NUMBER", default_value = "1500")]
    pub(crate) mtu: String,
    /// Whether the agent must have said what the largest packet is.
    #[arg(
        long,
        env = variables::REQUIRE_MTU_FILE,
        value_name = "BOOL",
        default_value = "false"
    )]
    pub(crate) require_mtu_file: String,
    /// API group of the custom resources [default: the one that the API server has].
    #[arg(
        long,
        env = variables::CALICO_API_GROUP,
        value_name = "GROUP",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) api_group: String,
    /// Where etcd is.
    #[arg(long, env = variables::ETCD_ENDPOINTS, value_name = "URLS", default_value = "")]
    pub(crate) etcd_endpoints: String,
    /// Domain that names etcd's members.
    #[arg(
        long,
        env = variables::ETCD_DISCOVERY_SRV,
        value_name = "DOMAIN",
        default_value = ""
    )]
    pub(crate) etcd_discovery_srv: String,
    /// Protocol of the API server.
    #[arg(
        long,
        env = variables::KUBERNETES_SERVICE_PROTOCOL,
        value_name = "NAME",
        default_value = "https"
    )]
    pub(crate) service_protocol: String,
    /// Address of the API server.
    #[arg(
        long,
        env = variables::KUBERNETES_SERVICE_HOST,
        value_name = "ADDRESS",
        default_value = ""
    )]
    pub(crate) service_host: String,
    /// Port of the API server.
    #[arg(
        long,
        env = variables::KUBERNETES_SERVICE_PORT,
        value_name = "NUMBER",
        default_value = ""
    )]
    pub(crate) service_port: String,
}

//! The names of all environment variables that are read, so that each is spelled in one place.
//!
//! Parameters of the agent (`FELIX_…`) are listed in the crate `config`, and variables of Calico's flannel migration beside
//! that.

// === What every program of ours reads ===

/// What is logged, as a filter of `tracing`: `info,tortie_sync=debug`.
pub const TORTIE_LOG: &str = "TORTIE_LOG";
/// Whether the log is text or JSON.
pub const TORTIE_LOG_FORMAT: &str = "TORTIE_LOG_FORMAT";
/// The folder of the embedded datastore.
pub const TORTIE_DATA_DIR: &str = "TORTIE_DATA_DIR";
/// The file of the embedded datastore.
pub const TORTIE_DATA_FILE: &str = "TORTIE_DATA_FILE";
/// How large the embedded datastore may grow.
pub const TORTIE_QUOTA: &str = "TORTIE_QUOTA";
/// How much memory requests to the API server of `up` may hold.
pub const TORTIE_MEMORY_BUDGET: &str = "TORTIE_MEMORY_BUDGET";
/// Whether packets may go in clear text where WireGuard is asked for.
pub const TORTIE_ALLOW_CLEARTEXT: &str = "TORTIE_ALLOW_CLEARTEXT";

// === Which datastore, and how it is reached: Calico's names, which may begin with `CALICO_` ===

/// `etcdv3`, `kubernetes` or `embedded`.
pub const DATASTORE_TYPE: &str = "DATASTORE_TYPE";
/// The group of Calico's custom resources.
pub const CALICO_API_GROUP: &str = "CALICO_API_GROUP";
/// URLs of the members of etcd.
pub const ETCD_ENDPOINTS: &str = "ETCD_ENDPOINTS";
/// A domain whose SRV records name the members of etcd; not supported.
pub const ETCD_DISCOVERY_SRV: &str = "ETCD_DISCOVERY_SRV";
/// A user of etcd.
pub const ETCD_USERNAME: &str = "ETCD_USERNAME";
/// That user's password.
pub const ETCD_PASSWORD: &str = "ETCD_PASSWORD";
/// The key of the client's certificate for etcd.
pub const ETCD_KEY_FILE: &str = "ETCD_KEY_FILE";
/// The client's certificate for etcd.
pub const ETCD_CERT_FILE: &str = "ETCD_CERT_FILE";
/// Who signs the certificates of etcd.
pub const ETCD_CA_CERT_FILE: &str = "ETCD_CA_CERT_FILE";
/// Files that say how to reach a cluster.
pub const KUBECONFIG: &str = "KUBECONFIG";
/// The URL of an API server of Kubernetes.
pub const K8S_API_ENDPOINT: &str = "K8S_API_ENDPOINT";
/// A bearer token for it.
pub const K8S_API_TOKEN: &str = "K8S_API_TOKEN";
/// The key of the client's certificate for it.
pub const K8S_KEY_FILE: &str = "K8S_KEY_FILE";
/// The client's certificate for it.
pub const K8S_CERT_FILE: &str = "K8S_CERT_FILE";
/// Who signs its certificate.
pub const K8S_CA_FILE: &str = "K8S_CA_FILE";
/// Whether its certificate is not checked.
pub const K8S_INSECURE_SKIP_TLS_VERIFY: &str = "K8S_INSECURE_SKIP_TLS_VERIFY";
/// Whether nodes are not watched.
pub const K8S_DISABLE_NODE_POLL: &str = "K8S_DISABLE_NODE_POLL";
/// How many requests a second are sent to it.
pub const K8S_CLIENT_QPS: &str = "K8S_CLIENT_QPS";
/// How many requests are sent to it at once.
pub const K8S_CLIENT_BURST: &str = "K8S_CLIENT_BURST";
/// Whether nodes' pod CIDRs are their blocks of addresses.
pub const USE_POD_CIDR: &str = "USE_POD_CIDR";

// === The same for Felix ===

/// See [`DATASTORE_TYPE`].
pub const FELIX_DATASTORETYPE: &str = "FELIX_DATASTORETYPE";
/// See [`ETCD_ENDPOINTS`].
pub const FELIX_ETCDENDPOINTS: &str = "FELIX_ETCDENDPOINTS";
/// A host and port of etcd, where no endpoints are given.
pub const FELIX_ETCDADDR: &str = "FELIX_ETCDADDR";
/// `http` or `https`, for that.
pub const FELIX_ETCDSCHEME: &str = "FELIX_ETCDSCHEME";
/// See [`ETCD_KEY_FILE`].
pub const FELIX_ETCDKEYFILE: &str = "FELIX_ETCDKEYFILE";
/// See [`ETCD_CERT_FILE`].
pub const FELIX_ETCDCERTFILE: &str = "FELIX_ETCDCERTFILE";
/// See [`ETCD_CA_CERT_FILE`].
pub const FELIX_ETCDCAFILE: &str = "FELIX_ETCDCAFILE";
/// What the names of workloads' interfaces begin with.
pub const FELIX_INTERFACEPREFIX: &str = "FELIX_INTERFACEPREFIX";

// === A node's start ===

/// The name of the node.
pub const NODENAME: &str = "NODENAME";
/// The same, where that is not given.
pub const HOSTNAME: &str = "HOSTNAME";
/// Where the name of the node is written for plugins.
pub const CALICO_NODENAME_FILE: &str = "CALICO_NODENAME_FILE";
/// What BIRD calls itself: an address, or `hash`.
pub const CALICO_ROUTER_ID: &str = "CALICO_ROUTER_ID";
/// The namespace of the pod that a process is in.
pub const POD_NAMESPACE: &str = "POD_NAMESPACE";
/// The name of the node in Kubernetes.
pub const CALICO_K8S_NODE_REF: &str = "CALICO_K8S_NODE_REF";
/// Who connects nodes: `bird`, `vxlan` or `none`.
pub const CALICO_NETWORKING_BACKEND: &str = "CALICO_NETWORKING_BACKEND";
/// Words that say what kind of cluster this is.
pub const CLUSTER_TYPE: &str = "CLUSTER_TYPE";
/// The node's IPv4 address, or how to find it.
pub const IP: &str = "IP";
/// The node's IPv6 address, or how to find it.
pub const IP6: &str = "IP6";
/// How the IPv4 address is found.
pub const IP_AUTODETECTION_METHOD: &str = "IP_AUTODETECTION_METHOD";
/// How the IPv6 address is found.
pub const IP6_AUTODETECTION_METHOD: &str = "IP6_AUTODETECTION_METHOD";
/// The node's AS number.
pub const AS: &str = "AS";
/// Whether other nodes may have the same address.
pub const DISABLE_NODE_IP_CHECK: &str = "DISABLE_NODE_IP_CHECK";
/// Whether no pools are made.
pub const NO_DEFAULT_POOLS: &str = "NO_DEFAULT_POOLS";
/// Whether a datastore that does not answer is waited for.
pub const WAIT_FOR_DATASTORE: &str = "WAIT_FOR_DATASTORE";

// === What a runtime tells a CNI plugin ===

/// What is to be done.
pub const CNI_COMMAND: &str = "CNI_COMMAND";
/// For which container.
pub const CNI_CONTAINERID: &str = "CNI_CONTAINERID";
/// Its network namespace.
pub const CNI_NETNS: &str = "CNI_NETNS";
/// The name of its interface.
pub const CNI_IFNAME: &str = "CNI_IFNAME";
/// More about it, as pairs.
pub const CNI_ARGS: &str = "CNI_ARGS";
/// Where other plugins are.
pub const CNI_PATH: &str = "CNI_PATH";

// === The installation of the CNI plugins ===

/// Where runtimes look for configurations of networks, as the plugins' host sees it.
pub const CNI_NET_DIR: &str = "CNI_NET_DIR";
/// The file for ours.
pub const CNI_CONF_NAME: &str = "CNI_CONF_NAME";
/// A file that is removed.
pub const CNI_OLD_CONF_NAME: &str = "CNI_OLD_CONF_NAME";
/// The configuration.
pub const CNI_NETWORK_CONFIG: &str = "CNI_NETWORK_CONFIG";
/// A file that has it.
pub const CNI_NETWORK_CONFIG_FILE: &str = "CNI_NETWORK_CONFIG_FILE";
/// Certificates for etcd that are copied to the host.
pub const TLS_ASSETS_DIR: &str = "TLS_ASSETS_DIR";
/// Plugins that are not installed.
pub const SKIP_CNI_BINARIES: &str = "SKIP_CNI_BINARIES";
/// Whether plugins that are there are replaced.
pub const UPDATE_CNI_BINARIES: &str = "UPDATE_CNI_BINARIES";
/// Whose token the plugins get.
pub const CALICO_CNI_SERVICE_ACCOUNT: &str = "CALICO_CNI_SERVICE_ACCOUNT";
/// Whether the installation waits for ever, and keeps the plugins' token fresh.
pub const SLEEP: &str = "SLEEP";
/// Where the plugins log.
pub const LOG_FILE_PATH: &str = "LOG_FILE_PATH";
/// How large that file may grow, in MB.
pub const LOG_FILE_MAX_SIZE: &str = "LOG_FILE_MAX_SIZE";
/// How many days old files are kept.
pub const LOG_FILE_MAX_AGE: &str = "LOG_FILE_MAX_AGE";
/// How many old files are kept.
pub const LOG_FILE_MAX_COUNT: &str = "LOG_FILE_MAX_COUNT";
/// The MTU of pods.
pub const CNI_MTU: &str = "CNI_MTU";
/// Whether plugins wait for the agent's MTU.
pub const REQUIRE_MTU_FILE: &str = "REQUIRE_MTU_FILE";
/// How the API server is reached from a pod: `http` or `https`.
pub const KUBERNETES_SERVICE_PROTOCOL: &str = "KUBERNETES_SERVICE_PROTOCOL";
/// Its address.
pub const KUBERNETES_SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";
pub const KUBERNETES_SERVICE_PORT: &str = "KUBERNETES_SERVICE_PORT";
/// Whether the plugins do not check the API server's certificate.
pub const SKIP_TLS_VERIFY: &str = "SKIP_TLS_VERIFY";
pub const KUBERNETES_NODE_NAME: &str = "KUBERNETES_NODE_NAME";

// === The controllers ===

/// Which of them run.
pub const ENABLED_CONTROLLERS: &str = "ENABLED_CONTROLLERS";
/// What they log.
pub const LOG_LEVEL: &str = "LOG_LEVEL";
/// How often all is compared.
pub const RECONCILER_PERIOD: &str = "RECONCILER_PERIOD";
/// How often the history of etcd is compacted.
pub const COMPACTION_PERIOD: &str = "COMPACTION_PERIOD";
/// Whether they tell of their health.
pub const HEALTH_ENABLED: &str = "HEALTH_ENABLED";
/// Whether labels of nodes are copied.
pub const SYNC_NODE_LABELS: &str = "SYNC_NODE_LABELS";
/// Whether nodes get host endpoints.
pub const AUTO_HOST_ENDPOINTS: &str = "AUTO_HOST_ENDPOINTS";
/// How many policies are worked on at once.
pub const POLICY_WORKERS: &str = "POLICY_WORKERS";
/// How many namespaces and service accounts.
pub const PROFILE_WORKERS: &str = "PROFILE_WORKERS";
/// How many pods.
pub const WORKLOAD_ENDPOINT_WORKERS: &str = "WORKLOAD_ENDPOINT_WORKERS";
/// How many nodes.
pub const NODE_WORKERS: &str = "NODE_WORKERS";

// === What other programs, and people, agree on ===

/// The user's folder.
pub const HOME: &str = "HOME";
/// Where data of users is kept.
pub const XDG_DATA_HOME: &str = "XDG_DATA_HOME";
/// Where state of programs is kept.
pub const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
/// Where a user's sockets and locks are.
pub const XDG_RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";
/// The editor for resources.
pub const KUBE_EDITOR: &str = "KUBE_EDITOR";
/// The editor.
pub const VISUAL: &str = "VISUAL";
/// The editor, where that is not given.
pub const EDITOR: &str = "EDITOR";
/// The locale.
pub const LC_ALL: &str = "LC_ALL";
/// What programs are looked for in.
pub const PATH: &str = "PATH";
/// The locale, where neither of the others is given.
pub const LANG: &str = "LANG";
/// The locale of characters.
pub const LC_CTYPE: &str = "LC_CTYPE";
/// Where systemd is told that a service is ready.
pub const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";
/// The lock of iptables.
pub const XTABLES_LOCKFILE: &str = "XTABLES_LOCKFILE";

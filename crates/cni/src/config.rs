//! The network configuration that a runtime hands to the plugins, with Calico's keys.
//!
//! As in Calico, keys that are not known are ignored and `null` counts as absent, but a value of a wrong type is refused,
//! with its key.

mod host;

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{Code, Error, Result};
use crate::request::is_identifier;
use crate::result::CniResult;
use crate::version::{CniVersion, UnknownVersion};

pub(crate) use host::{mtu, node_name};

/// The plugin that this crate is itself.
const CALICO_IPAM: &str = "calico-ipam";

/// A whole configuration.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct NetworkConfig {
    #[serde(rename = "cniVersion")]
    pub(crate) cni_version: String,
    /// The name of the network; addresses are handed out under it.
    pub name: String,
    /// How addresses are found.
    pub ipam: IpamConfig,
    /// Kept for Windows; nothing comes of it here.
    pub mode: String,
    /// The largest packet; 0 to read it from the agent's file.
    pub mtu: u32,
    /// Whether the agent's file with the largest packet must be there.
    pub require_mtu_file: bool,
    /// The agent's file with the largest packet.
    pub mtu_file: PathBuf,
    /// Queues of the interface in each direction.
    pub num_queues: i64,
    /// The name of this node.
    pub nodename: String,
    /// A file with the name of this node.
    pub nodename_file: PathBuf,
    /// Whether that file may be missing.
    pub nodename_file_optional: bool,
    /// The name of this node, of old.
    pub hostname: String,
    /// The file that keeps plugins on this node from asking for addresses at once.
    pub ipam_lock_file: PathBuf,
    /// `etcdv3`, `kubernetes` or `embedded`.
    pub datastore_type: String,
    /// The file of the embedded datastore.
    pub datastore_path: PathBuf,
    /// Where etcd is, separated by commas.
    pub etcd_endpoints: String,
    /// A domain that names etcd's members.
    pub etcd_discovery_srv: String,
    /// The scheme of `etcd_authority`.
    pub etcd_scheme: String,
    /// Where etcd is, of old.
    pub etcd_authority: String,
    /// The key to show to etcd.
    pub etcd_key_file: String,
    /// The certificate to show to etcd.
    pub etcd_cert_file: String,
    /// The authority of etcd's certificate.
    pub etcd_ca_cert_file: String,
    /// The API group of the custom resources.
    pub calico_api_group: String,
    /// `debug`, `info` or `error`.
    pub log_level: String,
    /// Where to log besides the standard error.
    pub log_file_path: PathBuf,
    /// Megabytes after which a new log file is begun.
    pub log_file_max_size: u64,
    /// Days after which old log files go.
    pub log_file_max_age: u64,
    /// How many old log files are kept.
    pub log_file_max_count: usize,
    /// Whether policy is that of Kubernetes, and how to reach it.
    pub policy: PolicyConfig,
    /// How to reach Kubernetes.
    pub kubernetes: KubernetesSection,
    /// What annotations may ask for.
    pub feature_control: FeatureControl,
    /// Settings inside the container.
    pub container_settings: ContainerSettings,
    /// Default routes come on top of those that are configured.
    pub include_default_routes: bool,
    /// Somebody else to do the networking.
    pub dataplane_options: Map<String, Value>,
    /// The kind of interface.
    pub device_type: String,
    /// Whether a container is connected only where an agent has brought policy into force. Default `true`; Calico does not
    /// ask.
    pub require_agent: Option<bool>,
    /// Where the agent tells that.
    pub agent_ready_file: PathBuf,
    /// URLs that must answer before a container is connected.
    pub readiness_gates: Vec<String>,
    /// Seconds to wait until the container's policy is in force.
    pub policy_setup_timeout_seconds: i64,
    /// Where the agent tells that.
    pub endpoint_status_dir: PathBuf,
    /// Labels of the container, from Mesos.
    pub args: ArgsSection,
    #[serde(rename = "prevResult")]
    pub(crate) previous_result: Option<Value>,
    /// The containers that there are, for GC.
    #[serde(rename = "cni.dev/valid-attachments")]
    pub valid_attachments: Option<Vec<Attachment>>,
}

/// How addresses are found.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct IpamConfig {
    /// The plugin.
    pub r#type: String,
    /// `"false"` for no IPv4 address.
    pub assign_ipv4: Option<String>,
    /// `"true"` for an IPv6 address.
    pub assign_ipv6: Option<String>,
    /// Pools for IPv4, by CIDR or name.
    pub ipv4_pools: Vec<String>,
    /// Pools for IPv6, by CIDR or name.
    pub ipv6_pools: Vec<String>,
}

/// Whether policy is that of Kubernetes, and how to reach it.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct PolicyConfig {
    /// `k8s`, or empty.
    pub r#type: String,
    /// Where Kubernetes is.
    pub k8s_api_root: String,
    pub k8s_auth_token: String,
    pub k8s_client_certificate: String,
    /// The certificate's key.
    pub k8s_client_key: String,
    pub k8s_certificate_authority: String,
}

/// How to reach Kubernetes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct KubernetesSection {
    pub kubeconfig: String,
    /// Where Kubernetes is.
    pub k8s_api_root: String,
    /// This node, as Kubernetes calls it.
    pub node_name: String,
}

/// What annotations may ask for.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct FeatureControl {
    /// Addresses of which nobody keeps account.
    pub ip_addrs_no_ipam: bool,
    /// Addresses that lead to the pod.
    pub floating_ips: bool,
}

/// Settings inside the container.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct ContainerSettings {
    /// The container may forward packets.
    pub allow_ip_forwarding: bool,
}

/// Arguments for all plugins of a network.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ArgsSection {
    #[serde(rename = "org.apache.mesos")]
    mesos: Mesos,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Mesos {
    network_info: NetworkInfo,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NetworkInfo {
    labels: Labels,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Labels {
    labels: Vec<Label>,
}

/// A label as Mesos has it: any text.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Label {
    /// Its name.
    pub key: String,
    pub value: String,
}

/// A container's interface that there still is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Attachment {
    #[serde(rename = "containerID")]
    pub container_id: String,
    /// The interface in it.
    pub ifname: String,
}

/// Leaves out everything: there are secrets among it.
impl fmt::Debug for NetworkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkConfig")
            .field("name", &self.name)
            .field("ipam", &self.ipam)
            .finish_non_exhaustive()
    }
}

impl NetworkConfig {
    /// Reads a configuration and refuses one that cannot be right, whatever is asked.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let config: Self = decode(&read_json(text)?)?;
        config.check()?;
        Ok(config)
    }

    /// What a configuration for another plugin says of the log. Such plugins have no such fields, but may be given them.
    pub(crate) fn for_log_of(text: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(text).unwrap_or_default();
        let text = |key: &str| {
            value
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            log_level: text("log_level"),
            log_file_path: text("log_file_path").into(),
            ..Self::default()
        }
    }

    fn check(&self) -> Result<()> {
        self.version()?;
        let Self {
            name, device_type, ..
        } = self;
        check_name(name)?;
        if !["", "veth", "netkit"].contains(&device_type.as_str()) {
            return Err(Error::config(format!(
                "network configuration: `device_type` is `{device_type}`: expected `veth` or `netkit`"
            )));
        }
        let timeout = self.policy_setup_timeout_seconds;
        if timeout < 0 {
            return Err(Error::config(format!(
                "network configuration: `policy_setup_timeout_seconds` is {timeout}: it must not be negative"
            )));
        }
        match self.dataplane_options.get("type") {
            None => Ok(()),
            Some(Value::String(kind)) if kind.is_empty() || kind == "linux" => Ok(()),
            Some(kind) => {
                let message = format!(
                    "network configuration: `dataplane_options.type` is {kind}: only the kernel's own networking (`linux`) is there"
                );
                Err(Error::new(Code::UnsupportedField, message))
            }
        }
    }

    /// The version that results are to have.
    pub fn version(&self) -> Result<CniVersion> {
        parse_version(&self.cni_version)
    }

    /// The version as the configuration writes it, for answers.
    pub fn written_version(&self) -> &str {
        &self.cni_version
    }

    /// What the plugins before this one, or this one itself at ADD, had as their result.
    pub fn previous_result(&self) -> Result<Option<CniResult>> {
        self.previous_result
            .as_ref()
            .map(CniResult::parse)
            .transpose()
            .map_err(|error| Error::config(format!("network configuration: `prevResult`: {error}")))
    }

    /// Whether policy is that of Kubernetes, so that pods and namespaces have a say.
    pub fn is_kubernetes_policy(&self) -> bool {
        self.policy.r#type == "k8s"
    }

    /// Whether this crate finds the addresses itself.
    pub fn is_calico_ipam(&self) -> bool {
        self.ipam.r#type == CALICO_IPAM
    }

    /// Labels that Mesos gives to the container.
    pub fn mesos_labels(&self) -> &[Label] {
        &self.args.mesos.network_info.labels.labels
    }
}

/// A configuration as JSON, in which `null` counts as absent.
pub(crate) fn read_json(text: &[u8]) -> Result<Value> {
    let mut value: Value = serde_json::from_slice(text).map_err(Error::of(
        Code::Decode,
        "the network configuration on the standard input is not JSON",
    ))?;
    if !value.is_object() {
        let message = "the network configuration on the standard input is not a JSON object";
        return Err(Error::new(Code::Decode, message));
    }
    remove_nulls(&mut value);
    Ok(value)
}

/// Those fields of a configuration that a type has. An error names the field.
pub(crate) fn decode<T: for<'de> Deserialize<'de>>(value: &Value) -> Result<T> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let message = format!(
            "network configuration: `{}`: {}",
            error.path(),
            error.inner()
        );
        Error::new(Code::Decode, message)
    })
}

pub(crate) fn parse_version(text: &str) -> Result<CniVersion> {
    text.parse()
        .map_err(|error: UnknownVersion| Error::new(Code::IncompatibleVersion, error.to_string()))
}

/// Whether a network may have this name.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::config("network configuration: `name` is missing"));
    }
    if !is_identifier(name) {
        return Err(Error::config(format!(
            "network configuration: `name` is `{name}`: it must start with a letter or digit and have only those, `_`, `.` and `-`"
        )));
    }
    Ok(())
}

/// The `cniVersion` of any text, for answers to what cannot be read otherwise; empty if there is none.
pub(crate) fn written_version_of(text: &[u8]) -> String {
    let value: Value = serde_json::from_slice(text).unwrap_or_default();
    let version = value.get("cniVersion").and_then(Value::as_str);
    version.unwrap_or_default().to_owned()
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests;

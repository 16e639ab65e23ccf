//! What can be set.
//!
//! `deploy/helm/tortie/values.yaml` says the same to people, with what each is for; tests hold the two together.

mod check;
mod set;

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tortie_api::crd::Group;

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Values {
    pub image: Image,
    pub datastore: Datastore,
    pub ipv4: Pool,
    pub ipv6: Pool,
    pub mtu: u16,
    pub dataplane: Dataplane,
    pub bgp: Bgp,
    pub node: NodePods,
    pub cni: Cni,
    pub controllers: Controllers,
    pub metrics: Metrics,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    pub repository: String,
    /// The version of the chart, if empty.
    pub tag: String,
    pub pull_policy: PullPolicy,
    pub pull_secrets: Vec<String>,
}

/// When an image is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullPolicy {
    Always,
    IfNotPresent,
    Never,
}

/// Where resources are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Datastore {
    pub r#type: DatastoreType,
    pub api_group: ApiGroup,
    pub etcd: Etcd,
}

/// What kind of datastore that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DatastoreType {
    Kubernetes,
    Etcd,
}

/// The group of custom resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiGroup {
    #[serde(rename = "projectcalico.org")]
    V3,
    #[serde(rename = "crd.projectcalico.org")]
    V1,
}

impl ApiGroup {
    /// As definitions are made for it.
    pub fn definitions(self) -> Group {
        match self {
            Self::V3 => Group::V3,
            Self::V1 => Group::V1,
        }
    }
}

/// How etcd is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Etcd {
    pub endpoints: String,
    pub tls_secret: String,
}

/// The first pool of an IP version, and a node's address of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pool {
    pub enabled: bool,
    pub pod_cidr: String,
    pub block_size: u8,
    pub encapsulation: Encapsulation,
    pub nat_outgoing: bool,
    pub node_address: String,
}

/// How packets travel between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Encapsulation {
    #[serde(rename = "VXLAN")]
    Vxlan,
    #[serde(rename = "VXLANCrossSubnet")]
    VxlanCrossSubnet,
    #[serde(rename = "IPIP")]
    Ipip,
    #[serde(rename = "IPIPCrossSubnet")]
    IpipCrossSubnet,
    None,
}

/// What enforces policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dataplane {
    Auto,
    Nftables,
    Iptables,
}

/// BIRD.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bgp {
    pub enabled: bool,
    pub as_number: u32,
}

/// What runs on each node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodePods {
    pub log_level: LogLevel,
    pub resources: Map<String, Value>,
    pub agent_resources: Map<String, Value>,
    pub tolerations: Vec<Value>,
    pub node_selector: BTreeMap<String, String>,
    pub max_unavailable: u32,
    pub endpoint_to_host_action: EndpointToHostAction,
    pub env: BTreeMap<String, String>,
}

/// What is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// What becomes of packets from a pod to its own node that no policy decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EndpointToHostAction {
    Accept,
    Drop,
    Return,
}

/// Where the container runtime looks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cni {
    pub bin_folder: String,
    pub config_folder: String,
}

/// What runs once in a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Controllers {
    pub replicas: u32,
    pub log_level: LogLevel,
    pub resources: Map<String, Value>,
    pub tolerations: Vec<Value>,
    pub node_selector: BTreeMap<String, String>,
}

/// Figures of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metrics {
    pub enabled: bool,
    pub port: u16,
    pub tls_secret: String,
}

/// What holds for what nobody sets.
pub const DEFAULTS: &str = include_str!("../../../deploy/helm/tortie/values.yaml");

/// Why values cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ValuesError {
    /// A file of values, or what holds for what it does not set.
    #[error("{place} is not YAML")]
    Yaml {
        /// Where it was read.
        place: String,
        /// Why.
        source: tortie_api::yaml::Error,
    },
    /// What was given for a field on the command line.
    #[error("--set {given}: {reason}")]
    Set {
        /// As it was given.
        given: String,
        /// What would be right.
        reason: &'static str,
    },
    /// All of them together.
    #[error("{field}: {reason}")]
    Field {
        /// Which one.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Values {
    /// What holds with these files, each a name and a text, and these fields, each `a.b=value`. Later ones win.
    pub fn new<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
        fields: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ValuesError> {
        let mut values = read("the chart's own values", DEFAULTS)?;
        for (name, text) in files {
            merge(&mut values, read(name, text)?);
        }
        for given in fields {
            set::set(&mut values, given)?;
        }
        let values: Self =
            serde_path_to_error::deserialize(values).map_err(|error| ValuesError::Field {
                field: error.path().to_string(),
                reason: error.inner().to_string(),
            })?;
        check::check(&values)?;
        Ok(values)
    }
}

fn read(place: &str, text: &str) -> Result<Value, ValuesError> {
    let value = tortie_api::yaml::parse_one(text);
    value.map_err(|source| ValuesError::Yaml {
        place: place.to_owned(),
        source,
    })
}

/// As Helm does: objects field by field, and anything else as a whole; null takes a field away.
fn merge(values: &mut Value, change: Value) {
    match (values, change) {
        (Value::Object(values), Value::Object(change)) => {
            for (name, change) in change {
                if change.is_null() {
                    values.remove(&name);
                } else {
                    merge(values.entry(name).or_insert(Value::Null), change);
                }
            }
        }
        (value, change) => *value = change,
    }
}

/// The schema by which Helm checks values, in the draft that it knows.
pub fn schema() -> Schema {
    let generator = SchemaSettings::draft07().into_generator();
    generator.into_root_schema_for::<Values>()
}

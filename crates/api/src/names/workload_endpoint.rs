//! Names of workload endpoints: `<node>-<orchestrator>-<workload>-<endpoint>`, with `-` written as `--` inside a part.
//!
//! What the third part holds depends on the orchestrator: the pod for `k8s`, the container for `cni`, the word
//! `libnetwork` for `libnetwork`, and the workload for all others.

use crate::kinds::workload_endpoint::WorkloadEndpointSpec;

/// What identifies a workload endpoint; fields that the orchestrator does not use are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointIds {
    /// The node the workload runs on.
    pub node: String,
    /// Who started the workload, such as `k8s`.
    pub orchestrator: String,
    /// The workload, for orchestrators without a field of their own.
    pub workload: String,
    /// The pod, for `k8s`.
    pub pod: String,
    /// The container, for `cni`.
    pub container_id: String,
    /// The interface within the workload, such as `eth0`.
    pub endpoint: String,
}

/// The key under which agents know a workload endpoint. The workload of a pod is `namespace/pod`.
pub fn agent_key(node: &str, orchestrator: &str, workload: &str, endpoint: &str) -> String {
    let escape = |part: &str| part.replace('%', "%25").replace('/', "%2f");
    format!(
        "/calico/v1/host/{node}/workload/{}/{}/endpoint/{}",
        escape(orchestrator),
        escape(workload),
        escape(endpoint)
    )
}

/// Why a name could not be made or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A part is missing.
    #[error("the name of a workload endpoint needs spec.{0}")]
    Missing(&'static str),
    /// A part would make the name ambiguous.
    #[error("spec.{field} is `{value}`, which must not start or end with `-`")]
    Dash {
        /// The field that holds the part.
        field: &'static str,
        /// The part.
        value: String,
    },
    /// The name has more parts than a workload endpoint has, or none.
    #[error("`{0}` is not the name of a workload endpoint")]
    Unreadable(String),
}

/// The name that follows from a spec.
pub fn workload_endpoint_name(spec: &WorkloadEndpointSpec) -> Result<String, NameError> {
    EndpointIds::from(spec).name()
}

impl From<&WorkloadEndpointSpec> for EndpointIds {
    fn from(spec: &WorkloadEndpointSpec) -> Self {
        Self {
            node: spec.node.clone(),
            orchestrator: spec.orchestrator.clone(),
            workload: spec.workload.clone(),
            pod: spec.pod.clone(),
            container_id: spec.container_id.clone(),
            endpoint: spec.endpoint.clone(),
        }
    }
}

impl EndpointIds {
    /// The name of the endpoint.
    pub fn name(&self) -> Result<String, NameError> {
        let mut name = String::new();
        for (field, value) in self.parts()? {
            if value.is_empty() {
                return Err(NameError::Missing(field));
            }
            push_part(&mut name, field, value)?;
        }
        Ok(name)
    }

    /// The start of the names of all endpoints with these ids, up to the first that is empty.
    pub fn name_prefix(&self) -> Result<String, NameError> {
        let mut name = String::new();
        for (field, value) in self.parts()? {
            if value.is_empty() {
                name.push('-');
                break;
            }
            push_part(&mut name, field, value)?;
        }
        Ok(name)
    }

    /// Reads a name, or the start of one.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        let unreadable = || NameError::Unreadable(name.to_owned());
        if name.is_empty() {
            return Err(unreadable());
        }
        let parts = split(name);
        if parts.len() > 4 {
            return Err(unreadable());
        }
        let mut parts = parts.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        let mut ids = Self {
            node: next(),
            orchestrator: next(),
            ..Self::default()
        };
        let third = next();
        match ids.orchestrator.as_str() {
            "k8s" => ids.pod = third,
            "cni" => ids.container_id = third,
            "libnetwork" => {}
            _ => ids.workload = third,
        }
        ids.endpoint = next();
        Ok(ids)
    }

    fn parts(&self) -> Result<[(&'static str, &str); 4], NameError> {
        if self.node.is_empty() {
            return Err(NameError::Missing("node"));
        }
        let third = match self.orchestrator.as_str() {
            "k8s" => ("pod", self.pod.as_str()),
            "cni" => ("containerID", self.container_id.as_str()),
            "libnetwork" => ("orchestrator", self.orchestrator.as_str()),
            _ => ("workload", self.workload.as_str()),
        };
        Ok([
            ("node", &self.node),
            ("orchestrator", &self.orchestrator),
            third,
            ("endpoint", &self.endpoint),
        ])
    }
}

/// Appends a part with its dashes doubled.
fn push_part(name: &mut String, field: &'static str, value: &str) -> Result<(), NameError> {
    if value.starts_with('-') || value.ends_with('-') {
        return Err(NameError::Dash {
            field,
            value: value.to_owned(),
        });
    }
    if !name.is_empty() {
        name.push('-');
    }
    name.push_str(&value.replace('-', "--"));
    Ok(())
}

/// Splits at single dashes; doubled ones belong to a part.
fn split(name: &str) -> Vec<String> {
    let bytes = name.as_bytes();
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 1;
    while at < bytes.len() {
        if bytes[at] == b'-' {
            if bytes.get(at + 1) == Some(&b'-') {
                at += 1;
            } else {
                parts.push(name[start..at].replace("--", "-"));
                start = at + 1;
            }
        }
        at += 1;
    }
    parts.push(name[start..].replace("--", "-"));
    parts
}

//! The report that `tortie ipam check -o` writes and `tortie ipam release --from-report` reads, in calicoctl's form.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use tortie_api::ClusterInformation;
use tortie_ipam::attribute;
use tortie_ipam::report::{Allocation, Loaded, Problem, Report, State};

/// Larger files are not read.
const MAX_SIZE: u64 = 1 << 30;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportFile {
    pub(super) version: String,
    #[serde(rename = "clusterGUID")]
    pub(super) cluster_guid: String,
    pub(super) datastore_locked: bool,
    pub(super) cluster_information_revision: String,
    pub(super) cluster_type: String,
    pub(super) allocations: BTreeMap<IpAddr, Vec<Held>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) leaked_handles: Vec<LeakedHandle>,
}

/// An address that is given out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Held {
    pub(super) ip: IpAddr,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) handle: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sequence_number: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) pod: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) node: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) r#type: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) creation_timestamp: String,
    pub(super) in_use: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) borrowed: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cooling_down: bool,
    #[serde(default)]
    pub(super) owners: Option<Vec<String>>,
}

/// A handle without addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct LeakedHandle {
    #[serde(rename = "ID")]
    pub(super) id: String,
    #[serde(rename = "UID")]
    pub(super) uid: Option<String>,
    pub(super) revision: String,
}

impl ReportFile {
    pub(super) fn new(
        information: &ClusterInformation,
        datastore_locked: bool,
        report: &Report,
        loaded: &Loaded,
    ) -> Self {
        let mut allocations: BTreeMap<IpAddr, Vec<Held>> = BTreeMap::new();
        for held in &report.allocations {
            allocations
                .entry(held.address)
                .or_default()
                .push(Held::new(held));
        }
        let is_empty = |id: &str| {
            let mut problems = report.problems.iter();
            problems.any(|problem| matches!(problem, Problem::EmptyHandle(empty) if empty == id))
        };
        let handles = loaded
            .handles
            .iter()
            .filter(|handle| is_empty(&handle.spec.handle_id));
        let leaked_handles = handles.map(|handle| LeakedHandle {
            id: handle.spec.handle_id.clone(),
            uid: Some(handle.metadata.uid.clone()).filter(|uid| !uid.is_empty()),
            revision: handle.metadata.resource_version.clone(),
        });
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster_guid: information.spec.cluster_guid.clone(),
            datastore_locked,
            cluster_information_revision: information.metadata.resource_version.clone(),
            cluster_type: information.spec.cluster_type.clone(),
            allocations,
            leaked_handles: leaked_handles.collect(),
        }
    }

    pub(super) fn read(path: &Path) -> Result<Self> {
        let read = || -> Result<Self> {
            let size = fs::metadata(path)?.len();
            anyhow::ensure!(size <= MAX_SIZE, "it has {size} bytes, which is no report");
            Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
        };
        read().with_context(|| format!("the report {}", path.display()))
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        fs::write(path, text).with_context(|| format!("writing the report {}", path.display()))
    }
}

impl Held {
    fn new(held: &Allocation) -> Self {
        let get = |name: &str| held.attributes.get(name).cloned().unwrap_or_default();
        let owners = match &held.state {
            State::InUse(user) => Some(vec![user.clone()]),
            State::Leaked(_) | State::Unknown => None,
        };
        Self {
            ip: held.address,
            handle: held.handle.clone().unwrap_or_default(),
            sequence_number: Some(held.sequence_number),
            pod: get(attribute::POD),
            namespace: get(attribute::NAMESPACE),
            node: get(attribute::NODE),
            r#type: get(attribute::TYPE),
            creation_timestamp: get(attribute::TIMESTAMP),
            // What cannot be told counts as used: it must not be released.
            in_use: !matches!(held.state, State::Leaked(_)) && !held.is_cooling_down,
            borrowed: held.is_borrowed,
            cooling_down: held.is_cooling_down,
            owners,
        }
    }
}

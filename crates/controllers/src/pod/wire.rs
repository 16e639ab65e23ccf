//! A pod's fields as they come; all others are read over.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Pod {
    pub(super) metadata: Metadata,
    pub(super) spec: Spec,
    pub(super) status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: Box<str>,
    pub(super) namespace: Box<str>,
    pub(super) resource_version: Box<str>,
    pub(super) labels: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) node_name: Option<Box<str>>,
    pub(super) service_account_name: Option<Box<str>>,
    pub(super) host_network: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    #[serde(rename = "podIP")]
    pod_ip: Option<Box<str>>,
    #[serde(rename = "podIPs")]
    pod_ips: Option<Vec<PodIp>>,
    phase: Option<Box<str>>,
    reason: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodIp {
    ip: Box<str>,
}

impl Status {
    /// All addresses with commas between; none before the first is reported. Old API servers report the first alone.
    pub(super) fn addresses(&self) -> String {
        let first = self.pod_ip.as_deref().unwrap_or_default();
        let all = self.pod_ips.iter().flatten().map(|address| &*address.ip);
        let all: Vec<&str> = all.filter(|address| !address.is_empty()).collect();
        match (first, all.as_slice()) {
            ("", _) => String::new(),
            (first, []) => first.to_owned(),
            (_, all) => all.join(","),
        }
    }

    pub(super) fn is_evicted(&self) -> bool {
        self.phase.as_deref() == Some("Failed") && self.reason.as_deref() == Some("Evicted")
    }
}

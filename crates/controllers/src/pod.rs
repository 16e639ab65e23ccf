//! A pod, trimmed to what controllers ask of it: one copy for all of them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Deserializer};
use tortie_operator::{Object, Owner};

/// What Kubernetes is called as the orchestrator of endpoints and nodes.
pub(crate) const KUBERNETES: &str = "k8s";

const NAMESPACE_LABEL: &str = "projectcalico.org/namespace";
const ORCHESTRATOR_LABEL: &str = "projectcalico.org/orchestrator";
const SERVICE_ACCOUNT_LABEL: &str = "projectcalico.org/serviceaccount";

/// Names from this length on do not become a label, because a label's value may not be longer than 63.
const MAX_SERVICE_ACCOUNT_LABEL: usize = 63;

/// A pod. There may be a hundred thousand, so it is kept in few and tight pieces.
#[derive(Debug, Clone)]
pub struct Pod {
    namespace: Box<str>,
    name: Box<str>,
    version: Box<str>,
    node: Box<str>,
    service_account: Box<str>,
    /// As JSON.
    labels: Box<str>,
    /// Its addresses with commas between; empty until the first is reported.
    addresses: Box<str>,
    has_own_network: bool,
    is_evicted: bool,
}

impl Pod {
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    pub(crate) fn service_account(&self) -> &str {
        &self.service_account
    }

    /// Whether it is connected: scheduled, with a network and an address of its own.
    pub(crate) fn is_ready(&self) -> bool {
        self.has_own_network && !self.addresses.is_empty() && !self.node.is_empty()
    }

    /// Whether it uses an address that it was given on a node, as far as can be told: without certainty it does. `node` is
    /// what Kubernetes calls the node, if there is such a node.
    pub(crate) fn uses(&self, address: IpAddr, node: Option<&str>) -> bool {
        if !self.node.is_empty() && node.is_some_and(|node| node != &*self.node) {
            return false;
        }
        if self.addresses.is_empty() {
            return true;
        }
        let mut addresses = self.addresses.split(',').map(str::parse);
        !self.is_evicted
            && addresses
                .any(|found: Result<IpAddr, _>| found.map_or(true, |found| found == address))
    }

    /// The labels of its endpoint.
    pub(crate) fn endpoint_labels(&self) -> BTreeMap<String, String> {
        // It was written from such a map.
        let mut labels: BTreeMap<String, String> =
            serde_json::from_str(&self.labels).unwrap_or_default();
        labels.insert(NAMESPACE_LABEL.into(), self.namespace.to_string());
        labels.insert(ORCHESTRATOR_LABEL.into(), KUBERNETES.into());
        let account = &*self.service_account;
        if !account.is_empty() && account.len() < MAX_SERVICE_ACCOUNT_LABEL {
            labels.insert(SERVICE_ACCOUNT_LABEL.into(), account.into());
        }
        labels
    }
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        let wire = wire::Pod::deserialize(decoder)?;
        let labels = wire.metadata.labels.unwrap_or_default();
        let is_evicted = wire.status.is_evicted();
        Ok(Self {
            namespace: wire.metadata.namespace,
            name: wire.metadata.name,
            version: wire.metadata.resource_version,
            node: wire.spec.node_name.unwrap_or_default(),
            service_account: wire.spec.service_account_name.unwrap_or_default(),
            labels: serde_json::to_string(&labels).unwrap_or_default().into(),
            addresses: wire.status.addresses().into(),
            has_own_network: !wire.spec.host_network,
            is_evicted,
        })
    }
}

impl Object for Pod {
    type Kind = k8s_openapi::api::core::v1::Pod;

    fn name(&self) -> &str {
        &self.name
    }

    fn namespace(&self) -> Option<&str> {
        Some(&self.namespace)
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn generation(&self) -> Option<i64> {
        None
    }

    fn is_deleting(&self) -> bool {
        false
    }

    fn has_labels_of(&self, other: &Self) -> bool {
        self.labels == other.labels
    }

    fn has_annotations_of(&self, _: &Self) -> bool {
        true
    }

    fn controller(&self) -> Option<Owner<'_>> {
        None
    }
}

/// The fields as they come; all others are read over.
mod wire {
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
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tortie_api::k8s;

    use super::*;

    #[test]
    fn labels_are_those_that_the_cni_plugin_gives() {
        let long = "a".repeat(63);
        for account in ["", "robot", &long] {
            let json = json!({
                "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web", "tier": "1"}, "uid": "u"},
                "spec": {"nodeName": "n", "serviceAccountName": account, "containers": []},
                "status": {"podIP": "10.0.0.1"},
            });
            let pod: Pod = serde_json::from_value(json.clone()).unwrap();
            let whole: k8s_openapi::api::core::v1::Pod = serde_json::from_value(json).unwrap();
            let endpoint = k8s::pod(&whole, "cali").resource.unwrap();
            assert_eq!(pod.endpoint_labels(), endpoint.metadata.labels);
            assert_eq!(pod.service_account(), endpoint.spec.service_account_name);
            assert!(pod.is_ready());
        }
    }

    #[test]
    fn addresses_are_used_unless_it_is_certain_that_they_are_not() {
        let address: IpAddr = "10.0.0.1".parse().unwrap();
        let both = json!({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]});
        let evicted = json!({"podIP": "10.0.0.1", "phase": "Failed", "reason": "Evicted"});
        for (node, status, on, expected) in [
            ("n", both.clone(), Some("n"), true),
            ("n", both.clone(), None, true),
            ("n", both.clone(), Some("other"), false),
            ("", both, Some("other"), true),
            ("n", json!({"podIP": "10.0.0.1"}), Some("n"), true),
            ("n", json!({"podIP": "10.0.0.2"}), Some("n"), false),
            ("n", json!({}), Some("n"), true),
            ("n", evicted, Some("n"), false),
        ] {
            let json = json!({
                "metadata": {"name": "p", "namespace": "ns"}, "spec": {"nodeName": node}, "status": status,
            });
            let pod: Pod = serde_json::from_value(json).unwrap();
            assert_eq!(pod.uses(address, on), expected, "{pod:?}");
        }
    }

    #[test]
    fn pods_without_network_of_their_own_are_not_looked_after() {
        let pod = |spec: serde_json::Value, status: serde_json::Value| -> Pod {
            let metadata = json!({"name": "p", "namespace": "n"});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status}))
                .unwrap()
        };
        let address = json!({"podIP": "10.0.0.1"});
        assert!(pod(json!({"nodeName": "n"}), address.clone()).is_ready());
        assert!(!pod(json!({}), address.clone()).is_ready());
        assert!(!pod(json!({"nodeName": "n"}), json!({})).is_ready());
        assert!(!pod(json!({"nodeName": "n", "hostNetwork": true}), address).is_ready());
    }
}

//! A pod, trimmed to what controllers ask of it: one copy for all of them.

mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use tortie_operator::{Object, Owner};

use crate::packed::Packed;
use crate::shared::share;

/// What Kubernetes is called as the orchestrator of endpoints and nodes.
pub(crate) const KUBERNETES: &str = "k8s";

const NAMESPACE_LABEL: &str = "projectcalico.org/namespace";
const ORCHESTRATOR_LABEL: &str = "projectcalico.org/orchestrator";
const SERVICE_ACCOUNT_LABEL: &str = "projectcalico.org/serviceaccount";

/// Names from this length on do not become a label, because a label's value may not be longer than 63.
const MAX_SERVICE_ACCOUNT_LABEL: usize = 63;

/// A pod. There may be a hundred thousand, so it is kept in few and tight pieces.
#[derive(Clone)]
pub struct Pod {
    /// Namespace, name, version, node and service account; then its addresses with commas between, none until the first is
    /// reported.
    texts: Packed<5>,
    has_own_network: bool,
    is_evicted: bool,
    /// As JSON. Pods of one set have the same.
    labels: Arc<str>,
}

impl Pod {
    pub(crate) fn namespace(&self) -> &str {
        self.texts.head(0)
    }

    pub(crate) fn name(&self) -> &str {
        self.texts.head(1)
    }

    pub(crate) fn node(&self) -> &str {
        self.texts.head(3)
    }

    pub(crate) fn service_account(&self) -> &str {
        self.texts.head(4)
    }

    /// Whether it is connected: scheduled, with a network and an address of its own.
    pub(crate) fn is_ready(&self) -> bool {
        self.has_own_network && !self.texts.tail().is_empty() && !self.node().is_empty()
    }

    /// Whether it uses an address that it was given on a node, as far as can be told: without certainty it does. `node` is
    /// what Kubernetes calls the node, if there is such a node.
    pub(crate) fn uses(&self, address: IpAddr, node: Option<&str>) -> bool {
        if !self.node().is_empty() && node.is_some_and(|node| node != self.node()) {
            return false;
        }
        let addresses = self.texts.tail();
        if addresses.is_empty() {
            return true;
        }
        let mut addresses = addresses.split(',').map(str::parse);
        !self.is_evicted
            && addresses
                .any(|found: Result<IpAddr, _>| found.map_or(true, |found| found == address))
    }

    pub(crate) fn endpoint_labels(&self) -> BTreeMap<String, String> {
        // It was written from such a map.
        let mut labels: BTreeMap<String, String> =
            serde_json::from_str(&self.labels).unwrap_or_default();
        labels.insert(NAMESPACE_LABEL.into(), self.namespace().to_owned());
        labels.insert(ORCHESTRATOR_LABEL.into(), KUBERNETES.into());
        let account = self.service_account();
        if !account.is_empty() && account.len() < MAX_SERVICE_ACCOUNT_LABEL {
            labels.insert(SERVICE_ACCOUNT_LABEL.into(), account.into());
        }
        labels
    }
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        let wire = wire::Pod::deserialize(decoder)?;
        let (metadata, spec) = (&wire.metadata, &wire.spec);
        let labels = metadata.labels.as_ref();
        let labels = labels.map_or(Ok("{}".to_owned()), serde_json::to_string);
        let addresses = wire.status.addresses();
        let head = [
            &*metadata.namespace,
            &metadata.name,
            &metadata.resource_version,
            spec.node_name.as_deref().unwrap_or_default(),
            spec.service_account_name.as_deref().unwrap_or_default(),
        ];
        Ok(Self {
            texts: Packed::new(head, &addresses),
            has_own_network: !spec.host_network,
            is_evicted: wire.status.is_evicted(),
            labels: share(&labels.unwrap_or_default()),
        })
    }
}

impl fmt::Debug for Pod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pod")
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .field("version", &self.texts.head(2))
            .field("node", &self.node())
            .field("service_account", &self.service_account())
            .field("addresses", &self.texts.tail())
            .field("labels", &self.labels)
            .field("has_own_network", &self.has_own_network)
            .field("is_evicted", &self.is_evicted)
            .finish()
    }
}

impl Object for Pod {
    type Kind = k8s_openapi::api::core::v1::Pod;

    fn name(&self) -> &str {
        self.texts.head(1)
    }

    fn namespace(&self) -> Option<&str> {
        Some(self.texts.head(0))
    }

    fn version(&self) -> &str {
        self.texts.head(2)
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

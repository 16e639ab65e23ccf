//! A node of the datastore in a fifth of the space.

use std::sync::Arc;

use tortie_api::Node;
use tortie_api::node::NodeStatus;

use super::{COPIED_LABELS, kubernetes_name};

/// A node as JSON, without what nobody here reads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PackedNode(Arc<str>);

impl PackedNode {
    pub(super) fn new(node: &Node) -> Self {
        let mut node = node.clone();
        let annotations = &mut node.metadata.annotations;
        annotations.retain(|name, _| name == COPIED_LABELS);
        node.metadata.owner_references.clear();
        node.metadata.uid.clear();
        node.metadata.resource_version.clear();
        node.metadata.creation_timestamp = None;
        node.status = NodeStatus::default();
        let json = serde_json::to_string(&node).unwrap_or_default();
        Self(json.into())
    }

    pub(super) fn unpack(&self) -> Node {
        // It was written from a node.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// What Kubernetes calls the node; nothing if it does not know it.
    pub(super) fn kubernetes_name(&self) -> Option<String> {
        kubernetes_name(&self.unpack()).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_is_kept() {
        let node = |extra: bool| -> Node {
            let mut json = json!({
                "metadata": {"name": "n", "labels": {"a": "1"}, "annotations": {COPIED_LABELS: "{\"a\":\"1\"}"}},
                "spec": {
                    "bgp": {"ipv4Address": "10.0.0.1/24", "asNumber": 64512, "ipv4IPIPTunnelAddr": "10.1.0.1"},
                    "ipv4VXLANTunnelAddr": "10.1.0.2", "wireguard": {"interfaceIPv4Address": "10.1.0.3"},
                    "orchRefs": [{"nodeName": "kube", "orchestrator": "k8s"}],
                    "addresses": [{"address": "10.0.0.1", "type": "InternalIP"}],
                    "interfaces": [{"name": "eth0", "addresses": ["10.0.0.1"]}],
                },
            });
            if extra {
                json["metadata"]["uid"] = "u".into();
                json["metadata"]["resourceVersion"] = "7".into();
                json["metadata"]["annotations"]["other"] = "x".into();
                json["status"] = json!({"podCIDRs": ["10.2.0.0/24"]});
            }
            serde_json::from_value(json).unwrap()
        };
        let packed = PackedNode::new(&node(true));
        assert_eq!(packed.unpack(), node(false));
        assert_eq!(packed.kubernetes_name().as_deref(), Some("kube"));
    }
}

//! Objects that the tests apply.

use serde_json::{Value, json};

/// A policy for all namespaces.
pub(super) fn policy(name: &str, order: u32) -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "GlobalNetworkPolicy",
        "metadata": {"name": name, "labels": {"app": "shop"}},
        "spec": {
            "selector": "role == 'web'", "order": order, "types": ["Ingress"],
            "ingress": [{"action": "Allow", "protocol": "TCP", "destination": {"ports": [80, "8000:8080"]}}],
        },
    })
}

pub(super) fn tier(name: &str, order: u32) -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "Tier",
        "metadata": {"name": name}, "spec": {"order": order},
    })
}

pub(super) fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "shop"}},
        "data": {"key": value},
    })
}

pub(super) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub(super) fn pod(namespace: &str, name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"role": "web"}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "web"}]},
    })
}

/// Several objects in one document.
pub(super) fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

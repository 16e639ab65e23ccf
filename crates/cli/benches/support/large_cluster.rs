//! The objects of a large cluster, written straight into the etcd of an API server: it takes JSON there as well, and going
//! through it would take longer than all that is measured.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// As many operations as etcd takes in one transaction.
const BATCH: usize = 120;

/// How many namespaces there are.
pub(crate) const NAMESPACES: usize = 100;

pub(crate) const BORN: &str = "2026-01-01T00:00:00Z";

/// The namespace of a pod or policy.
pub(crate) fn namespace(number: usize) -> String {
    format!("ns-{}", number % NAMESPACES)
}

pub(crate) fn pod_name(number: usize) -> String {
    format!("pod-{number}-5d4f8c7b9-abcde")
}

pub(crate) fn node_name(number: usize) -> String {
    format!("node-{number}")
}

/// Keys and values of the API server's etcd.
pub(crate) fn kubernetes(nodes: usize, pods: usize, policies: usize) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for number in 0..NAMESPACES {
        let name = namespace(number);
        let spec = json!({"finalizers": ["kubernetes"]});
        let mut object = object("v1", "Namespace", None, &name, &spec);
        object["status"] = json!({"phase": "Active"});
        all.push((format!("/registry/namespaces/{name}"), object));
        let account = object_without_spec("v1", "ServiceAccount", &name, "default");
        all.push((format!("/registry/serviceaccounts/{name}/default"), account));
    }
    for number in 0..nodes {
        let name = node_name(number);
        let mut node = object("v1", "Node", None, &name, &json!({}));
        node["metadata"]["labels"] = json!({
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/zone": format!("zone-{}", number % 3),
        });
        node["status"] =
            json!({"addresses": [{"type": "InternalIP", "address": node_address(number)}]});
        all.push((format!("/registry/minions/{name}"), node));
    }
    for number in 0..pods {
        all.push(pod(number, nodes));
    }
    for number in 0..policies {
        let name = format!("policy-{number}");
        let key = format!("/registry/networkpolicies/{}/{name}", namespace(number));
        all.push((key, policy(number, &name)));
    }
    all
}

pub(crate) fn pod_labels(number: usize) -> Value {
    json!({
        "app": format!("app-{}", number % 500), "pod-template-hash": "5d4f8c7b9",
        "app.kubernetes.io/part-of": format!("suite-{}", number % 50), "tier": "backend",
    })
}

fn pod(number: usize, nodes: usize) -> (String, Value) {
    let (namespace, name) = (namespace(number), pod_name(number));
    let spec = json!({
        "nodeName": node_name(number % nodes.max(1)), "serviceAccountName": "default", "restartPolicy": "Always",
        "containers": [{
            "name": "main", "image": "registry.example/app:1.2.3", "imagePullPolicy": "IfNotPresent",
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        }],
    });
    let mut pod = object("v1", "Pod", Some(&namespace), &name, &spec);
    pod["metadata"]["labels"] = pod_labels(number);
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("app-{number}"), "uid": uid("owner"),
        "controller": true,
    }]);
    let address = pod_address(number, nodes);
    pod["status"] = json!({"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]});
    (format!("/registry/pods/{namespace}/{name}"), pod)
}

/// A policy of Kubernetes with a few rules.
pub(crate) fn policy(number: usize, name: &str) -> Value {
    let peer = |role: &str| json!({"podSelector": {"matchLabels": {"role": role}}});
    let spec = json!({
        "podSelector": {"matchLabels": {"app": format!("app-{}", number % 500)}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [peer("client"), peer("admin")], "ports": [{"port": 80, "protocol": "TCP"}]}],
        "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}],
    });
    object(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        Some(&namespace(number)),
        name,
        &spec,
    )
}

pub(crate) fn base_of(node: usize) -> [usize; 4] {
    let base = node * 64;
    [10, 64 + base / 65536, base / 256 % 256, base % 256]
}

pub(crate) fn pod_address(number: usize, nodes: usize) -> String {
    let nodes = nodes.max(1);
    let [first, second, third, fourth] = base_of(number % nodes);
    format!("{first}.{second}.{third}.{}", fourth + number / nodes % 64)
}

pub(crate) fn node_address(number: usize) -> String {
    format!("172.16.{}.{}", number / 250, number % 250 + 1)
}

pub(crate) fn object(
    version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    spec: &Value,
) -> Value {
    let mut metadata =
        json!({"name": name, "uid": uid(&format!("{kind}{name}")), "creationTimestamp": BORN});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
}

fn object_without_spec(version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    let mut object = object(version, kind, Some(namespace), name, &Value::Null);
    object.as_object_mut().unwrap().remove("spec");
    object
}

/// The same for the same seed.
pub(crate) fn uid(seed: &str) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    let hash = hasher.finish();
    format!(
        "{:08x}-{:04x}-4000-8000-{:012x}",
        hash >> 32,
        hash >> 16 & 0xffff,
        hash & 0xffff_ffff_ffff
    )
}

/// Puts all of it into an etcd.
pub(crate) fn put(endpoint: &str, objects: &[(String, Value)]) {
    for batch in objects.chunks(BATCH) {
        let mut input = String::from("\n");
        for (key, value) in batch {
            // Quoted once more, as etcdctl reads it.
            let value = Value::String(value.to_string());
            writeln!(input, "put {key} {value}").unwrap();
        }
        input.push_str("\n\n");
        let mut child = Command::new("etcdctl")
            .args(["--endpoints", endpoint, "txn"])
            .env("ETCDCTL_API", "3")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success());
    }
}

//! How much a process takes that follows a large cluster. A measurement: it wants a process of its own and an optimised
//! build to mean something. `SCALE_PART=10` makes it a tenth of the size.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde::Deserialize;
use serde_json::{Value, json};
use tortie_operator::{Manager, Meta, trimmed};
use tortie_testkit::{Etcd, KubeApiServer};

use crate::kubernetes::support::client;

const NODES: usize = 5_000;
const PODS: usize = 50_000;
const POLICIES: usize = 10_000;

trimmed! {
    /// What of a pod a network operator uses.
    pub(crate) struct SmallPod: Pod {
        /// Where it runs.
        spec: SmallPodSpec,
        /// Its addresses.
        status: SmallPodStatus,
    }
}

/// Where a pod runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SmallPodSpec {
    node_name: Box<str>,
    service_account_name: Box<str>,
}

/// The addresses of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SmallPodStatus {
    phase: Box<str>,
    #[serde(rename = "podIPs")]
    pod_ips: Box<[SmallPodAddress]>,
}

/// An address of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SmallPodAddress {
    ip: Box<str>,
}

trimmed! {
    /// What of a node a network operator uses.
    pub(crate) struct SmallNode: Node {}
}

fn managed_fields() -> Value {
    let fields: serde_json::Map<_, _> = (0..40)
        .map(|n| (format!("f:field-{n}"), json!({})))
        .collect();
    json!([{"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2024-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": fields}}])
}

fn meta(name: &str, namespace: Option<&str>, number: usize) -> Value {
    json!({
        "name": name, "namespace": namespace, "uid": format!("00000000-0000-4000-8000-{number:012}"),
        "creationTimestamp": "2024-01-01T00:00:00Z", "managedFields": managed_fields(),
        "labels": {"app": format!("app-{}", number % 500), "tier": "web", "pod-template-hash": "5d4f8c7b9"},
        "annotations": {"kubernetes.io/config.seen": "2024-01-01T00:00:00Z", "checksum": "0123456789abcdef".repeat(4)},
    })
}

fn pod(number: usize) -> Value {
    let env: Vec<_> = (0..8)
        .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": "a value"}))
        .collect();
    let ip = format!(
        "10.{}.{}.{}",
        number / 65536,
        number / 256 % 256,
        number % 256
    );
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"});
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition);
    let mut metadata = meta(
        &format!("pod-{number}-5d4f8c7b9-x2x7k"),
        Some(&format!("ns-{}", number % 200)),
        number,
    );
    metadata["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
        "name": format!("app-{}-5d4f8c7b9", number % 500), "uid": "00000000-0000-4000-8000-000000000001"}]);
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {
            "nodeName": format!("node-{}", number % NODES), "serviceAccountName": "default",
            "containers": [{"name": "main", "image": "registry.example.com/shop/web:v1.2.3", "env": env,
                            "ports": [{"containerPort": 8080, "name": "http"}]}],
        },
        "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                   "conditions": conditions},
    })
}

fn node(number: usize) -> Value {
    let images: Vec<_> = (0..20)
        .map(|n| json!({"names": [format!("registry.example.com/image-{n}:v1.2.3")], "sizeBytes": 123_456_789}))
        .collect();
    json!({"apiVersion": "v1", "kind": "Node", "metadata": meta(&format!("node-{number}"), None, number),
           "status": {"images": images}})
}

fn policy(number: usize) -> Value {
    let selector = json!({"matchLabels": {"app": format!("app-{}", number % 500)}});
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": meta(&format!("policy-{number}"), Some(&format!("ns-{}", number % 200)), number),
        "spec": {"podSelector": selector, "policyTypes": ["Ingress"],
                 "ingress": [{"from": [{"podSelector": selector}], "ports": [{"protocol": "TCP", "port": 8080}]}]},
    })
}

/// Writes objects as the API server would keep them: through it, it would take an hour.
fn store(etcd: &Etcd, objects: impl Iterator<Item = (String, Value)>) {
    let mut batch = String::new();
    let mut count = 0;
    let flush = |batch: &mut String| {
        let mut etcdctl = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", etcd.endpoint(), "txn"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        etcdctl
            .stdin
            .take()
            .unwrap()
            .write_all(format!("\n{batch}\n\n").as_bytes())
            .unwrap();
        assert!(etcdctl.wait().unwrap().success());
        batch.clear();
    };
    for (key, object) in objects {
        writeln!(
            batch,
            "put {key} {}",
            serde_json::to_string(&object.to_string()).unwrap()
        )
        .unwrap();
        count += 1;
        if count % 100 == 0 {
            flush(&mut batch);
        }
    }
    if !batch.is_empty() {
        flush(&mut batch);
    }
}

fn memory(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes / 1024.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement of minutes"]
async fn a_large_cluster() {
    let cluster = KubeApiServer::start().unwrap();
    let part = std::env::var("SCALE_PART").map_or(1, |part| part.parse().unwrap());
    let (nodes, pods, policies) = (NODES / part, PODS / part, POLICIES / part);
    let start = Instant::now();
    let namespaced = |kind: &str, object: &Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
        format!("/registry/{kind}/{}/{}", text("namespace"), text("name"))
    };
    let pod_keys = (0..pods)
        .map(pod)
        .map(|pod| (namespaced("pods", &pod), pod));
    let policy_keys = (0..policies)
        .map(policy)
        .map(|policy| (namespaced("networkpolicies", &policy), policy));
    let node_keys =
        (0..nodes).map(|number| (format!("/registry/minions/node-{number}"), node(number)));
    store(cluster.etcd(), pod_keys.chain(policy_keys).chain(node_keys));
    println!(
        "stored in {:.1?}; a pod has {} bytes",
        start.elapsed(),
        pod(1).to_string().len()
    );

    let client = client(&cluster).await;
    println!("before: {:.0} MB", memory("VmRSS"));
    let manager = Manager::builder(client).build();
    let start = Instant::now();
    let (small_nodes, small_pods) = (manager.cache::<SmallNode>(), manager.cache::<SmallPod>());
    let whole_policies = manager.cache::<NetworkPolicy>();
    small_nodes.wait_synced().await;
    small_pods.wait_synced().await;
    whole_policies.wait_synced().await;
    println!("synced in {:.1?}", start.elapsed());
    assert_eq!(
        (small_nodes.len(), small_pods.len(), whole_policies.len()),
        (nodes, pods, policies)
    );
    println!(
        "after: {:.0} MB, at most {:.0} MB",
        memory("VmRSS"),
        memory("VmHWM")
    );
    println!("an entry of metadata has {} bytes", size_of::<Meta>());
}

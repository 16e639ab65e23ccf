//! Many pods of a node at once, as after a drain or when a deployment is scaled up.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tortie_kernel::route::Batch;
use tortie_testkit::cni::Runtime;
use tortie_testkit::net::{Namespace, Node};
use tortie_testkit::{Etcd, KubeApiServer};

use super::{Bench, POOLS, apply, print};

/// How many pods come at once.
const AT_ONCE: usize = 15;

/// Measures bursts on both datastores that clusters have.
pub(super) fn measure(binary: &Path, count: usize) {
    let mut node = Node::new().unwrap();
    // An API server does not start on a machine without an address.
    let uplink = node.socket().link("uplink").unwrap().unwrap().index;
    let address: IpAddr = "192.0.2.1".parse().unwrap();
    let add = |batch: &mut Batch| batch.add_address(uplink, address.into());
    node.socket().execute(add).unwrap();
    let namespace = node.namespace();
    let folder = tempfile::tempdir().unwrap();
    let settings = |datastore: Value| {
        let mut config = json!({
            "cniVersion": "1.0.0", "name": "net", "type": "calico", "nodename": "n1",
            "nodename_file_optional": true, "ipam_lock_file": folder.path().join("lock"), "log_level": "error",
            "ipam": {"type": "calico-ipam"}, "require_agent": false,
        });
        let fields = datastore.as_object().cloned().unwrap_or_default();
        config.as_object_mut().unwrap().extend(fields);
        Bench {
            runtime: Runtime::new(namespace, binary).unwrap(),
            config: config.to_string(),
        }
    };
    let containers: Vec<(String, Namespace)> = (0..count)
        .map(|i| (format!("burst{i:05}"), Namespace::new().unwrap()))
        .collect();

    let etcd = namespace.run(Etcd::start).unwrap().unwrap();
    apply(
        namespace,
        binary,
        &[("ETCD_ENDPOINTS", etcd.endpoint())],
        POOLS,
    );
    let on_etcd = json!({"datastore_type": "etcdv3", "etcd_endpoints": etcd.endpoint()});
    bursts("etcd", &settings(on_etcd), &containers);
    drop(etcd);

    let cluster = namespace.run(KubeApiServer::start).unwrap().unwrap();
    fill(namespace, binary, &cluster, &containers);
    let on_kubernetes = json!({
        "datastore_type": "kubernetes", "policy": {"type": "k8s"},
        "kubernetes": {"kubeconfig": cluster.kubeconfig()}, "calico_api_group": "crd.projectcalico.org/v1",
    });
    bursts("kubernetes", &settings(on_kubernetes), &containers);
}

fn bursts(name: &str, bench: &Bench, containers: &[(String, Namespace)]) {
    for command in ["ADD", "DEL"] {
        let bursts = containers.chunks(AT_ONCE);
        let times = bursts.flat_map(|burst| bench.all(command, burst, burst.len()));
        let command = command.to_lowercase();
        print(
            &format!("cni-{command}/{name}-burst-of-{AT_ONCE}"),
            times.collect(),
        );
    }
}

/// Definitions, pools, a node and the pods.
fn fill(node: &Namespace, binary: &Path, cluster: &KubeApiServer, pods: &[(String, Namespace)]) {
    let kubectl = |arguments: &[&str], input: &str| {
        let ran = node.run(|| cluster.kubectl_stdin(arguments, input));
        ran.unwrap().unwrap().into_stdout().unwrap();
    };
    let definitions = Command::new(binary)
        .args(["crds", "--group", "v1"])
        .output()
        .unwrap();
    let definitions = String::from_utf8(definitions.stdout).unwrap();
    kubectl(&["apply", "-f", "-"], &definitions);
    let wait = [
        "wait",
        "--for=condition=Established",
        "crd",
        "--all",
        "--timeout=60s",
    ];
    kubectl(&wait, "");
    let mut items = vec![
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
    ];
    items.extend(pods.iter().map(|(name, _)| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        })
    }));
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": items});
    kubectl(&["apply", "-f", "-"], &objects.to_string());
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let pools = POOLS.split("---\n").filter(|part| part.contains("IPPool"));
    let pools: Vec<&str> = pools.collect();
    apply(
        node,
        binary,
        &[("KUBECONFIG", &kubeconfig)],
        &pools.join("---\n"),
    );
}

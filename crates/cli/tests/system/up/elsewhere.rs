//! With a datastore that is elsewhere: etcd, or a cluster of Kubernetes.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tortie_testkit::{Etcd, KubeApiServer};

use crate::up::server::{NODE, Up, node, success};

/// How soon something has to be so.
const PATIENCE: Duration = Duration::from_secs(20);

fn ruleset(up: &Up) -> String {
    let mut command = Command::new("nft");
    command.args(["list", "ruleset"]);
    success(up.run(command, b""))
}

#[track_caller]
fn await_that(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[track_caller]
fn apply(up: &Up, object: &Value) {
    let output = up.try_tortie_with(&["apply", "-f", "-"], &object.to_string());
    success(output);
}

fn host_endpoint() -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "HostEndpoint",
        "metadata": {"name": "n1-uplink", "labels": {"role": "gateway"}},
        "spec": {"node": NODE, "interfaceName": "uplink"},
    })
}

fn policy() -> Value {
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "GlobalNetworkPolicy",
        "metadata": {"name": "default.gateways"},
        "spec": {
            "selector": "role == 'gateway'", "types": ["Ingress"],
            "ingress": [{"action": "Allow", "protocol": "TCP", "destination": {"ports": [4321]}}],
        },
    })
}

/// What was applied is enforced, and is gone when that has ended.
#[track_caller]
fn assert_enforced_until_the_end(mut up: Up) {
    apply(&up, &host_endpoint());
    apply(&up, &policy());
    await_that("the policy is in force", || {
        let rules = ruleset(&up);
        rules.contains("cali-fh-uplink") && rules.contains("4321")
    });
    for file in ["kubeconfig", "tortie.redb", "api.sock"] {
        assert!(!up.file(file).exists(), "{file}");
    }
    up.tortie(&["down"]);
    assert_eq!(up.await_end(), Some(0), "{}", up.log());
    assert_eq!(ruleset(&up), "");
}

#[test]
fn etcd_is_used_where_its_address_is_given() {
    let node = node();
    let etcd = node.namespace().run(Etcd::start).unwrap().unwrap();
    let variables = vec![("ETCD_ENDPOINTS", etcd.endpoint().to_owned())];
    let up = Up::on(node.namespace(), variables);
    let mut command = Command::new("etcdctl");
    command
        .args(["--endpoints", etcd.endpoint(), "get", "--keys-only"])
        .args(["--prefix", "/calico/resources/v3/projectcalico.org/nodes/"])
        .env("ETCDCTL_API", "3");
    let keys = success(up.run(command, b""));
    assert!(keys.contains("/nodes/n1\n"), "{keys}");
    assert_enforced_until_the_end(up);
}

#[test]
fn a_cluster_is_used_where_its_kubeconfig_is_given() {
    let node = node();
    let started = node.namespace().run(KubeApiServer::start);
    let kubernetes = started.unwrap().unwrap();
    let kubeconfig = kubernetes.kubeconfig().display().to_string();
    let kubectl = |arguments: &[&str], input: &str| {
        let work = || kubernetes.kubectl_stdin(arguments, input);
        success(node.namespace().run(work).unwrap().unwrap())
    };
    let crds = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .arg("crds")
        .output()
        .unwrap();
    kubectl(
        &["apply", "-f", "-"],
        &String::from_utf8(crds.stdout).unwrap(),
    );
    let established = ["wait", "--for=condition=established", "crd", "--all"];
    kubectl(&established, "");
    let this = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
    kubectl(&["apply", "-f", "-"], &this.to_string());
    let places = tempfile::tempdir().unwrap();
    let name_file = places.path().join("nodename").display().to_string();
    let variables = vec![
        ("KUBECONFIG", kubeconfig),
        ("DATASTORE_TYPE", "kubernetes".to_owned()),
        ("CALICO_NODENAME_FILE", name_file),
    ];
    let up = Up::on(node.namespace(), variables);
    // The node has told where it is.
    let annotation = |name: &str| {
        let path = format!("jsonpath={{.metadata.annotations.projectcalico\\.org/{name}}}");
        kubectl(&["get", "node", NODE, "-o", &path], "")
    };
    assert_eq!(annotation("IPv4Address"), "192.0.2.1/32");
    let tunnel = annotation("IPv4VXLANTunnelAddr");
    assert!(tunnel.starts_with("10.65.0."), "{tunnel}");
    // Kubernetes knows whether pods here have a network.
    let network = || {
        let path = "jsonpath={range .status.conditions[?(@.type==\"NetworkUnavailable\")]}{.status} {.reason}{end}";
        kubectl(&["get", "node", NODE, "-o", path], "")
    };
    await_that("the network is there", || network() == "False CalicoIsUp");
    // A kubelet that registers anew does not know of that.
    kubectl(&["delete", "node", NODE], "");
    kubectl(&["apply", "-f", "-"], &this.to_string());
    await_that("the node has its address again", || {
        annotation("IPv4Address") == "192.0.2.1/32"
            && annotation("IPv4VXLANTunnelAddr").starts_with("10.65.0.")
    });
    // The controllers follow the cluster.
    let pools = || kubectl(&["get", "ippools", "-o", "name"], "");
    assert!(pools().contains("default-ipv4-ippool"), "{}", pools());
    let run = places.path().display().to_string();
    let said = up.tortie(&["node", "shutdown", "--node", NODE, "--run-folder", &run]);
    assert!(said.contains("no BIRD runs here"), "{said}");
    assert_eq!(network(), "True CalicoIsDown");
    assert!(places.path().join("shutdownTS").exists());
    assert_enforced_until_the_end(up);
}

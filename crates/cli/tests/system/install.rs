//! `tortie install`, on a real API server. There is no kubelet, so that nothing gets ready.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod rights;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tortie_testkit::KubeApiServer;

fn install(kubeconfig: Option<&Path>, args: &[&str]) -> Output {
    let mut tortie = Command::new(env!("CARGO_BIN_EXE_tortie"));
    tortie.env_clear().arg("install").args(args);
    if let Some(kubeconfig) = kubeconfig {
        tortie.env("KUBECONFIG", kubeconfig);
    }
    tortie.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[track_caller]
fn ok(ran: &Output) -> &str {
    assert_eq!(
        ran.status.code(),
        Some(0),
        "{}{}",
        text(&ran.stdout),
        text(&ran.stderr)
    );
    text(&ran.stdout)
}

#[track_caller]
fn failed(ran: &Output) -> &str {
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran.stdout));
    text(&ran.stderr)
}

#[test]
fn yaml_needs_no_cluster() {
    let ran = install(
        None,
        &["--dry-run", "-o", "yaml", "--set", "mtu=1400", "-n", "net"],
    );
    let objects = tortie_api::yaml::parse(ok(&ran)).unwrap();
    assert_eq!(objects[0]["kind"], "Namespace");
    let of_namespace = objects
        .iter()
        .filter(|one| one["metadata"]["namespace"] == "net");
    assert!(of_namespace.count() > 5);
    let node = objects
        .iter()
        .find(|one| one["kind"] == "DaemonSet")
        .unwrap();
    assert!(
        node.to_string()
            .contains(r#"{"name":"CNI_MTU","value":"1400"}"#)
    );

    assert!(failed(&install(None, &["-o", "yaml"])).contains("give --dry-run too"));
    let said = install(
        None,
        &["--dry-run", "-o", "yaml", "--set", "ipv4.blockSize=9"],
    );
    assert!(
        failed(&said)
            .contains("ipv4.blockSize: 9 is no prefix length of blocks: expected 20 to 32")
    );
}

#[test]
fn values_that_are_shown_are_those_that_hold() {
    let shown = install(None, &["--show-values"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, ok(&shown)).unwrap();
    let file = file.to_str().unwrap();
    let with = install(None, &["--dry-run", "-o", "yaml", "-f", file]);
    assert_eq!(ok(&with), ok(&install(None, &["--dry-run", "-o", "yaml"])));
}

#[test]
fn kubernetes_gets_what_is_missing_and_nothing_else() {
    let cluster = KubeApiServer::start().unwrap();
    let run = |args: &[&str]| install(Some(cluster.kubeconfig()), args);
    let kubeadm = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kubeadm-config, namespace: kube-system}\n\
        data: {ClusterConfiguration: 'networking: {podSubnet: 10.244.0.0/16}'}";
    apply(&cluster, kubeadm);

    let ran = run(&["--dry-run"]);
    let said = ok(&ran);
    assert!(
        said.starts_with("Kubernetes v1.20.2, 0 nodes, pods in 10.244.0.0/16, no kube-proxy"),
        "{said}"
    );
    assert!(
        said.contains("created    22 definitions of custom resources"),
        "{said}"
    );
    assert!(said.ends_with("Nothing was stored.\n"), "{said}");
    assert!(!exists(&cluster, &["namespace", "tortie-system"]));

    let ran = run(&["--no-wait"]);
    let said = ok(&ran);
    assert!(
        said.contains("created    DaemonSet(tortie-system/tortie-node)"),
        "{said}"
    );
    assert!(exists(
        &cluster,
        &["daemonset", "tortie-node", "-n", "tortie-system"]
    ));

    // Again: nothing. With another value: only what has it.
    let again = run(&["--no-wait"]);
    assert!(
        ok(&again).contains("\n0 objects created, 0 changed, "),
        "{}",
        ok(&again)
    );
    let changed = run(&["--no-wait", "--set", "mtu=1400"]);
    let said = ok(&changed);
    assert!(
        said.contains("changed    DaemonSet(tortie-system/tortie-node)"),
        "{said}"
    );
    assert!(!said.contains("ConfigMap"), "{said}");

    // No controller of Kubernetes counts nodes here.
    let late = run(&["--timeout", "1s", "--set", "mtu=1400"]);
    let said = failed(&late);
    assert!(
        said.contains("after 1 s, Kubernetes has not counted the nodes"),
        "{said}"
    );
    assert!(
        said.contains("kubectl -n tortie-system describe pods"),
        "{said}"
    );

    let elsewhere = run(&["-n", "other"]);
    assert!(failed(&elsewhere).contains("DaemonSet(tortie-system/tortie-node) is there already"));
}

#[test]
fn kubernetes_keeps_what_somebody_changed_until_told_otherwise() {
    let cluster = KubeApiServer::start().unwrap();
    let run = |args: &[&str]| install(Some(cluster.kubeconfig()), args);
    ok(&run(&["--no-wait"]));
    let patch = r#"{"spec":{"template":{"spec":{"priorityClassName":"mine"}}}}"#;
    let args = [
        "patch",
        "daemonset",
        "tortie-node",
        "-n",
        "tortie-system",
        "-p",
        patch,
    ];
    cluster.kubectl(&args).unwrap().into_stdout().unwrap();
    let kept = run(&["--no-wait"]);
    let said = failed(&kept);
    assert!(
        said.contains("DaemonSet(tortie-system/tortie-node) was changed by somebody else"),
        "{said}"
    );
    assert!(said.contains("priorityClassName"), "{said}");
    assert_eq!(priority(&cluster), "mine");
    ok(&run(&["--no-wait", "--force-conflicts"]));
    assert_eq!(priority(&cluster), "system-node-critical");
}

#[test]
fn kubernetes_with_another_network_is_left_alone() {
    let cluster = KubeApiServer::start().unwrap();
    let other = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: calico-node, namespace: kube-system}\nspec:\n  \
        selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    \
        spec: {containers: [{name: node, image: 'calico/node:v3.30'}]}";
    apply(&cluster, other);
    let ran = install(Some(cluster.kubeconfig()), &["--no-wait"]);
    let said = failed(&ran);
    assert!(
        said.contains("DaemonSet(kube-system/calico-node) is another network (calico/node:v3.30)"),
        "{said}"
    );
    assert!(!exists(&cluster, &["namespace", "tortie-system"]));
}

/// A cluster that has the older group stays with it.
#[test]
fn kubernetes_decides_about_the_group_of_resources() {
    let cluster = KubeApiServer::start().unwrap();
    let crds = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .args(["crds", "--group", "v1"])
        .output()
        .unwrap();
    apply(&cluster, text(&crds.stdout));
    ok(&install(Some(cluster.kubeconfig()), &["--no-wait"]));
    let args = [
        "get",
        "configmap",
        "tortie-datastore",
        "-n",
        "tortie-system",
        "-o",
        "json",
    ];
    let map = cluster.kubectl(&args).unwrap().into_stdout().unwrap();
    let map: Value = serde_json::from_str(&map).unwrap();
    assert_eq!(map["data"]["CALICO_API_GROUP"], "crd.projectcalico.org/v1");
    assert!(!exists(&cluster, &["crd", "ippools.projectcalico.org"]));
    let other = install(
        Some(cluster.kubeconfig()),
        &["--set", "datastore.apiGroup=projectcalico.org"],
    );
    assert!(failed(&other).contains("the cluster has its resources in crd.projectcalico.org"));
}

fn priority(cluster: &KubeApiServer) -> String {
    let path = "jsonpath={.spec.template.spec.priorityClassName}";
    let args = [
        "get",
        "daemonset",
        "tortie-node",
        "-n",
        "tortie-system",
        "-o",
        path,
    ];
    cluster.kubectl(&args).unwrap().into_stdout().unwrap()
}

#[track_caller]
fn apply(cluster: &KubeApiServer, objects: &str) {
    let applied = cluster
        .kubectl_stdin(&["apply", "-f", "-"], objects)
        .unwrap();
    applied.into_stdout().unwrap();
}

fn exists(cluster: &KubeApiServer, what: &[&str]) -> bool {
    cluster
        .kubectl(&[&["get"], what].concat())
        .unwrap()
        .success()
}

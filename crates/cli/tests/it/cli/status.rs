//! `tortie status`.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tortie_testkit::Etcd;

use crate::cli::program::{Tortie, fixture};

const TORTIE: &str = env!("CARGO_BIN_EXE_tortie");

const NODE: &str = "\
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: n1}
spec: {bgp: {ipv4Address: 192.0.2.1/24}}
";

/// Asks on a machine on which no agent runs.
fn status(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("unshare")
        .args(["--net", TORTIE, "--data-file"])
        .arg(folder.join("data.redb"))
        .arg("status")
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .unwrap()
}

#[track_caller]
fn check(output: &Output, code: i32, lines: &[&str]) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
    for line in lines {
        let has = stdout.lines().any(|found| found.contains(line));
        assert!(has, "no `{line}` in\n{stdout}{stderr}");
    }
}

#[test]
fn a_cluster_without_problems_is_well() {
    let folder = tempfile::tempdir().unwrap();
    let tortie = Tortie::embedded(folder.path());
    let file = fixture("all-kinds.yaml").display().to_string();
    tortie.ok(&["apply", "-f", &file]);
    let lines = [
        "Datastore   embedded, ",
        "Nodes       0",
        "Endpoints   0 of workloads, 1 of hosts",
        "Policies    2 in 4 tiers",
        "Addresses   pods, 10.65.0.0/16: 1 of 65536 in use",
        "is no node of the cluster",
        "Well",
    ];
    check(&status(folder.path(), &[]), 0, &lines);
    let output = status(folder.path(), &["-o", "json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["well"], true, "{json}");
    assert_eq!(json["cluster"]["pools"][0]["inUse"], 1, "{json}");
    assert_eq!(json["problems"], Value::Array(Vec::new()), "{json}");
}

#[test]
fn what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let tortie = Tortie::embedded(folder.path());
    tortie.ok_with_input(&["apply", "-f", "-"], NODE);
    let no_agent = "node n1: no agent enforces policy on this machine";
    check(
        &status(folder.path(), &["--node", "n1"]),
        1,
        &["Nodes       1: n1", no_agent, "Not well: 1 problem"],
    );
    let pool = "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {name: tiny}\nspec: {cidr: 10.9.0.0/30, blockSize: 30}\n\
                ---\napiVersion: projectcalico.org/v3\nkind: IPReservation\nmetadata: {name: all}\nspec: {reservedCIDRs: [10.9.0.0/30]}\n";
    tortie.ok_with_input(&["apply", "-f", "-"], pool);
    tortie.ok(&["datastore", "migrate", "lock"]);
    let lines = [
        "Cluster     not ready",
        "ClusterInformation(default): datastoreReady is false",
        "IPPool(tiny): all of its addresses are in use or reserved",
        "Not well: 2 problems",
    ];
    check(&status(folder.path(), &[]), 1, &lines);
}

#[test]
fn an_object_that_cannot_be_read_is_a_problem() {
    let etcd = Etcd::start().unwrap();
    let tortie = Tortie::with_variables(vec![("ETCD_ENDPOINTS", etcd.endpoint().to_owned())]);
    let key = "/calico/resources/v3/projectcalico.org/networkpolicies/shop/broken";
    etcd.etcdctl(&["put", key, "{\"spec\": {\"order\": \"first\"}}"])
        .unwrap();
    let output = tortie.run(&["status"]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    assert!(
        output
            .stdout
            .contains("NetworkPolicy(shop/broken): cannot be read"),
        "{}",
        output.stdout
    );
}

#[test]
fn a_datastore_that_does_not_answer_is_a_problem() {
    let tortie = Tortie::with_variables(vec![("ETCD_ENDPOINTS", "http://127.0.0.1:1".to_owned())]);
    let output = tortie.run(&["status"]);
    assert_eq!((output.code, &*output.stderr), (1, ""));
    assert!(
        output
            .stdout
            .contains("datastore: etcd at http://127.0.0.1:1"),
        "{}",
        output.stdout
    );
}

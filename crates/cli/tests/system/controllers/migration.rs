//! The move from the older group of custom resources to the newer one, by the program and `kubectl` alone.

use std::process::Command;

use serde_json::{Value, json};

use crate::controllers::program::Program;
use crate::controllers::site::{Site, eventually};

const V1: &str = "crd.projectcalico.org/v1";
const V3: &str = "projectcalico.org/v3";

/// Where the program looks for the components if it is in no pod.
const NAMESPACE: &str = "calico-system";

const KINDS: &str = "tiers,globalnetworkpolicies,globalnetworksets,hostendpoints,ippools,bgppeers,felixconfigurations";

/// `tortie` in one of the groups.
fn tortie(site: &Site, group: &str, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tortie"))
        .args(arguments)
        .env_clear()
        .env("DATASTORE_TYPE", "kubernetes")
        .env("CALICO_API_GROUP", group)
        .env("KUBECONFIG", site.kubeconfig())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn controllers(site: &Site, group: &str) -> Program {
    let variables = [
        ("DATASTORE_TYPE", "kubernetes"),
        ("CALICO_API_GROUP", group),
    ];
    Program::start(site, &[], &variables)
}

fn install(site: &Site, group: &str) {
    let crds = tortie(site, V3, &["crds", "--group", group]);
    let applied = site.api.kubectl_stdin(&["apply", "-f", "-"], &crds);
    applied.unwrap().into_stdout().unwrap();
}

/// Both groups, of which an aggregated API server that does not answer stands before the newer.
fn two_groups() -> Site {
    let site = Site::new();
    install(&site, "v1");
    install(&site, "migration");
    site.apply(
        &json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v3.projectcalico.org"},
            "spec": {
                "group": "projectcalico.org", "version": "v3", "groupPriorityMinimum": 1500,
                "versionPriority": 200, "insecureSkipTLSVerify": true,
                "service": {"name": "calico-api", "namespace": "default"},
            },
        })
        .to_string(),
    );
    install(&site, "v3");
    let established = "--for=condition=Established";
    site.kubectl(&["wait", "crd", "--all", established, "--timeout=60s"]);
    for namespace in ["shop", NAMESPACE] {
        site.kubectl(&["create", "namespace", namespace]);
    }
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cli/all-kinds.yaml");
    tortie(&site, V1, &["apply", "-f", fixture]);
    let quiet = r#"{"spec": {"prometheusMetricsPort": 0}}"#;
    let settings = [
        "patch",
        "kubecontrollersconfiguration",
        "default",
        "-p",
        quiet,
    ];
    tortie(&site, V1, &settings);
    site
}

fn migration(kind: &str) -> String {
    json!({
        "apiVersion": "migration.projectcalico.org/v1", "kind": "DatastoreMigration",
        "metadata": {"name": "v1-to-v3"}, "spec": {"type": kind},
    })
    .to_string()
}

/// What the migration says once it has come so far.
fn await_phase(site: &Site, program: &Program, phase: &str) -> Value {
    let mut found = Value::Null;
    let came = eventually(|| {
        let text = site.kubectl(&["get", "datastoremigration", "v1-to-v3", "-o", "json"]);
        found = serde_json::from_str(&text).unwrap();
        found["status"]["phase"] == phase
    });
    assert!(came, "not {phase}: {}\n{}", found["status"], program.log());
    found
}

/// What all resources of some kinds ask for, by kind and name.
fn specs(site: &Site, group: &str) -> Vec<(String, String, Value)> {
    let mut specs = Vec::new();
    for kind in KINDS.split(',') {
        let list: Value =
            serde_json::from_str(&tortie(site, group, &["get", kind, "-o", "json"])).unwrap();
        for item in list["items"].as_array().unwrap() {
            let name = item["metadata"]["name"].as_str().unwrap();
            specs.push((kind.to_owned(), name.to_owned(), item["spec"].clone()));
        }
    }
    specs
}

#[test]
fn a_migration_that_is_asked_for_is_carried_out() {
    let site = two_groups();
    let before = specs(&site, V1);
    assert!(before.len() > 7, "{before:?}");
    let refused = site
        .api
        .kubectl_stdin(&["apply", "-f", "-"], &migration("Elsewhere"))
        .unwrap();
    assert!(
        refused.stderr.contains("APIServerToCRDs"),
        "{}",
        refused.stderr
    );

    let program = controllers(&site, V1);
    site.apply(&migration("APIServerToCRDs"));
    let migration = await_phase(&site, &program, "Converged");
    let progress = &migration["status"]["progress"];
    assert_eq!(progress["typeProgress"], "21 / 21");
    assert!(
        progress["typeDetails"].as_array().unwrap().len() > 10,
        "{progress}"
    );
    let table = site.kubectl(&["get", "datastoremigrations"]);
    let columns: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(columns, ["NAME", "PHASE", "TYPES", "MESSAGE", "AGE"]);
    assert_eq!(specs(&site, V3), before);

    // Once the nodes' agents use the newer group, it is complete, and the program ends to be started anew.
    let container = json!({
        "name": "c", "image": "x", "env": [{"name": "CALICO_API_GROUP", "value": V3}],
    });
    site.apply(
        &json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "calico-node", "namespace": NAMESPACE},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
            },
        })
        .to_string(),
    );
    let rolled_out = json!({"status": {
        "observedGeneration": 1, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2,
        "currentNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 2,
    }});
    let target = ["-n", NAMESPACE, "patch", "daemonset", "calico-node"];
    let change = ["--subresource=status", "--type=merge", "-p"];
    let rolled_out = rolled_out.to_string();
    site.kubectl(&[&target[..], &change[..], &[&rolled_out]].concat());
    await_phase(&site, &program, "Complete");
    let (status, log) = program.wait();
    assert!(status.success(), "{log}");

    // Deleting the request afterwards removes the older group.
    let program = controllers(&site, V3);
    site.kubectl(&["delete", "datastoremigration", "v1-to-v3", "--timeout=60s"]);
    let gone = eventually(|| {
        let left = site.kubectl(&["get", "crd", "-o", "name"]);
        !left.contains(".crd.projectcalico.org")
    });
    assert!(gone, "{}", program.log());
    assert_eq!(specs(&site, V3), before);
    assert!(program.terminate().success());
}

//! The manifests of the example, and of a new project, on a real API server.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use tortie_testkit::KubeApiServer;

use crate::operator::{checkout, write_shop_guard};

struct Cluster(KubeApiServer);

impl Cluster {
    fn start() -> Self {
        let cluster = Self(KubeApiServer::start().unwrap());
        let kinds = [("Issuer", "issuers"), ("Certificate", "certificates")];
        for (kind, plural) in kinds {
            cluster.apply(&definition_of_cert_manager(kind, plural));
        }
        cluster.await_definitions();
        cluster
    }

    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.0.kubectl(arguments).unwrap();
        assert!(output.success(), "kubectl {arguments:?}: {}", output.stderr);
        output.stdout
    }

    fn apply(&self, object: &Value) {
        let applied = self
            .0
            .kubectl_stdin(&["apply", "-f", "-"], &object.to_string());
        applied.unwrap().into_stdout().unwrap();
    }

    fn await_definitions(&self) {
        let condition = "--for=condition=Established";
        self.kubectl(&["wait", "crd", "--all", condition, "--timeout=60s"]);
    }

    /// Whether the account of an operator may do this in a namespace.
    fn may(&self, name: &str, verb: &str, resource: &str, namespace: &str) -> bool {
        let account = format!("--as=system:serviceaccount:{name}:{name}");
        let arguments = ["auth", "can-i", verb, resource, "-n", namespace, &account];
        self.0.kubectl(&arguments).unwrap().stdout.trim() == "yes"
    }
}

/// So much of a definition that objects can be stored.
fn definition_of_cert_manager(kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.cert-manager.io")},
        "spec": {
            "group": "cert-manager.io", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    })
}

/// Kinds and names of objects in YAML or in a list as JSON.
fn names<'a>(objects: impl IntoIterator<Item = &'a Value>) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = objects.into_iter();
    objects
        .map(|object| (text(&object["kind"]), text(&object["metadata"]["name"])))
        .collect()
}

/// Applies the manifests of a project as its README says. `plural` is its kind, with the group.
fn check(project: &Path, name: &str, plural: &str) {
    let cluster = Cluster::start();
    let path = |part: &str| project.join("config").join(part).display().to_string();
    // To run the operator elsewhere, the definition alone is enough; the sample is what the definition says.
    cluster.kubectl(&["apply", "-k", &path("crd")]);
    cluster.await_definitions();
    cluster.kubectl(&["apply", "-f", &path("samples/sample.yaml")]);
    cluster.kubectl(&["get", plural, "sample"]);

    let everything = path("default");
    cluster.kubectl(&["apply", "-k", &everything]);
    let written = cluster.kubectl(&["kustomize", &everything]);
    let written: Vec<Value> = written
        .split("\n---\n")
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect();
    let found = cluster.kubectl(&["get", "-k", &everything, "-o", "json"]);
    let found: Value = serde_json::from_str(&found).unwrap();
    let found = found["items"].as_array().unwrap();
    assert!(written.len() >= 13, "{}", written.len());
    assert_eq!(names(found), names(&written));
    // Everything that has a namespace is in that of the project.
    let namespaces: BTreeSet<&str> = found
        .iter()
        .filter_map(|object| object["metadata"]["namespace"].as_str())
        .collect();
    assert_eq!(namespaces, BTreeSet::from([name]));
    // The account may do what the operator does, and no more.
    let lease = "leases.coordination.k8s.io";
    for (verb, resource, namespace, may) in [
        ("list", plural, "", true),
        ("patch", &format!("{plural}/status"), "", true),
        ("watch", "namespaces", "", true),
        (
            "create",
            "networkpolicies.networking.k8s.io",
            "default",
            true,
        ),
        ("update", lease, name, true),
        ("update", lease, "default", false),
        ("get", "secrets", name, false),
        ("delete", "namespaces", "", false),
    ] {
        let answer = cluster.may(name, verb, resource, namespace);
        assert_eq!(answer, may, "{verb} {resource} in `{namespace}`");
    }
    // Once more changes nothing.
    let again = cluster.kubectl(&["apply", "-k", &everything]);
    for line in again.lines() {
        assert!(
            line.ends_with(" unchanged") || line.ends_with(" configured"),
            "{line}"
        );
    }
}

#[test]
fn the_manifests_of_the_example_can_be_applied() {
    let example = checkout().join("examples/operator");
    let plural = "namespacebaselines.example.tortie.dev";
    check(&example, "namespace-baseline", plural);
}

#[test]
fn the_manifests_of_a_new_project_can_be_applied() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("shop-guard");
    write_shop_guard(&project);
    check(&project, "shop-guard", "shoppolicies.ops.example.com");
}

//! On a real kube-apiserver, beside kubectl.

use tortie_testkit::KubeApiServer;

use crate::cli::program::Tortie;
use crate::cli::round_trip;

/// A cluster with the CRDs of one group, installed as the README says.
fn cluster(group: &str) -> (KubeApiServer, Tortie) {
    let server = KubeApiServer::start().unwrap();
    let tortie = Tortie::with_variables(vec![(
        "KUBECONFIG",
        server.kubeconfig().display().to_string(),
    )]);
    let crds = tortie.ok(&["crds", "--group", group]);
    let applied = server.kubectl_stdin(&["apply", "-f", "-"], &crds).unwrap();
    assert!(applied.success(), "{}", applied.stderr);
    let waited = server
        .kubectl(&[
            "wait",
            "--for=condition=Established",
            "crd",
            "--all",
            "--timeout=60s",
        ])
        .unwrap();
    assert!(waited.success(), "{}", waited.stderr);
    assert!(
        server
            .kubectl(&["create", "namespace", "shop"])
            .unwrap()
            .success()
    );
    (server, tortie)
}

#[test]
fn every_kind_survives_a_round_trip_in_the_v3_group() {
    let (_server, tortie) = cluster("v3");
    round_trip::check(&tortie, "all-kinds.yaml", "yaml");
}

#[test]
fn every_kind_survives_a_round_trip_in_the_v1_group() {
    let (_server, tortie) = cluster("v1");
    round_trip::check(&tortie, "all-kinds.yaml", "yaml");
}

#[test]
fn kubectl_and_tortie_agree() {
    let (server, tortie) = cluster("v3");
    let policy = "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {name: by-kubectl}\nspec: {selector: all(), order: 5, types: [Ingress]}\n";
    assert!(
        server
            .kubectl_stdin(&["apply", "-f", "-"], policy)
            .unwrap()
            .success()
    );
    let by_kubectl = server
        .kubectl(&["get", "gnp", "by-kubectl", "-o", "json"])
        .unwrap()
        .into_stdout()
        .unwrap();
    let by_tortie = tortie.ok(&["get", "gnp", "by-kubectl", "-o", "json"]);
    let spec =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["spec"].clone();
    assert_eq!(spec(&by_kubectl), spec(&by_tortie));

    tortie.ok(&[
        "patch",
        "gnp",
        "by-kubectl",
        "-p",
        "{\"spec\": {\"order\": 6}}",
    ]);
    let order = server
        .kubectl(&["get", "gnp", "by-kubectl", "-o", "jsonpath={.spec.order}"])
        .unwrap();
    assert_eq!(order.stdout, "6");
    tortie.ok(&["delete", "gnp", "by-kubectl"]);
    assert!(
        !server
            .kubectl(&["get", "gnp", "by-kubectl"])
            .unwrap()
            .success()
    );
}

#[test]
fn kubernetes_policies_appear_under_calicos_name() {
    let (server, tortie) = cluster("v3");
    let policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web, namespace: shop}\nspec: {podSelector: {matchLabels: {app: web}}}\n";
    assert!(
        server
            .kubectl_stdin(&["apply", "-f", "-"], policy)
            .unwrap()
            .success()
    );
    let table = tortie.ok(&["get", "networkpolicy", "-A"]);
    assert!(
        table
            .lines()
            .any(|line| line.starts_with("shop ") && line.contains("knp.default.web")),
        "{table}"
    );
    let yaml = tortie.ok(&[
        "get",
        "networkpolicy",
        "knp.default.web",
        "-n",
        "shop",
        "-o",
        "yaml",
    ]);
    assert!(yaml.contains("app == 'web'"), "{yaml}");
    let refused = tortie.run(&["delete", "networkpolicy", "knp.default.web", "-n", "shop"]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
}

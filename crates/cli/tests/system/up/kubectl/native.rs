//! Kubernetes' own objects.

use serde_json::json;

use super::objects::{list, namespace, pod};
use crate::up::server::Up;

#[test]
fn a_namespace_goes_with_what_is_in_it() {
    let up = Up::api_server();
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "closed", "namespace": "shop"}, "spec": {"podSelector": {}},
    });
    let calico = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "NetworkPolicy",
        "metadata": {"name": "default.open", "namespace": "shop"}, "spec": {"selector": "all()"},
    });
    let objects = [namespace("shop"), pod("shop", "web", "n1"), policy, calico];
    up.kubectl_with(&["create", "--filename=-"], &list(&objects));
    let inside = "pods,netpol,networkpolicies.projectcalico.org,serviceaccounts";
    let names = up.kubectl(&["get", inside, "--namespace=shop", "--output=name"]);
    let expected = [
        "pod/web",
        "networkpolicy.networking.k8s.io/closed",
        "networkpolicy.projectcalico.org/default.open",
        "networkpolicy.projectcalico.org/knp.default.closed",
        "serviceaccount/default",
    ];
    assert_eq!(names.lines().collect::<Vec<_>>(), expected);
    up.kubectl(&["delete", "namespace", "shop", "--timeout=20s"]);
    up.refusal(&["get", "namespace", "shop"], "");
    assert_eq!(
        up.kubectl(&["get", inside, "--namespace=shop", "--output=name"]),
        ""
    );
    let told = up.refusal(
        &["create", "--filename=-"],
        &pod("shop", "web", "n1").to_string(),
    );
    assert!(told.contains("namespaces \"shop\" not found"), "{told}");
    // One that is made again is empty.
    up.kubectl_with(&["create", "--filename=-"], &namespace("shop").to_string());
    let names = up.kubectl(&["get", inside, "--namespace=shop", "--output=name"]);
    assert_eq!(names, "serviceaccount/default\n");
}

#[test]
fn a_namespace_waits_for_objects_that_are_held_back() {
    let up = Up::api_server();
    let mut held = pod("shop", "web", "n1");
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    up.kubectl_with(
        &["create", "--filename=-"],
        &list(&[namespace("shop"), held]),
    );
    up.kubectl(&["delete", "namespace", "shop", "--wait=false"]);
    let phase = up.kubectl(&[
        "get",
        "namespace",
        "shop",
        "--output=jsonpath={.status.phase}",
    ]);
    assert_eq!(phase, "Terminating");
    let late = pod("shop", "late", "n1").to_string();
    let told = up.refusal(&["create", "--filename=-"], &late);
    assert!(told.contains("being terminated"), "{told}");
    let free = r#"{"metadata":{"finalizers":null}}"#;
    up.kubectl(&[
        "patch",
        "pod",
        "web",
        "--namespace=shop",
        "--type=merge",
        "--patch",
        free,
    ]);
    up.kubectl(&["wait", "--for=delete", "namespace/shop", "--timeout=20s"]);
}

#[test]
fn pods_are_found_by_node_and_phase() {
    let up = Up::api_server();
    let pods = [
        pod("default", "one", "n1"),
        pod("default", "two", "n2"),
        pod("default", "three", "n1"),
    ];
    up.kubectl_with(&["create", "--filename=-"], &list(&pods));
    let on = |selector: &str| {
        let selector = format!("--field-selector={selector}");
        up.kubectl(&[
            "get",
            "pods",
            "-A",
            &selector,
            "--output=jsonpath={.items[*].metadata.name}",
        ])
    };
    assert_eq!(on("spec.nodeName=n1"), "one three");
    assert_eq!(on("spec.nodeName!=n1"), "two");
    assert_eq!(on("metadata.name=two,spec.nodeName=n1"), "");
    assert_eq!(on("status.phase=Pending,spec.nodeName=n2"), "two");
    let told = up.refusal(&["get", "pods", "--field-selector=spec.colour=red"], "");
    assert!(told.contains("spec.colour"), "{told}");
    let wide = up.kubectl(&["get", "pods", "--output=wide", "--no-headers"]);
    let node = |name: &str| {
        wide.lines()
            .any(|line| line.starts_with(name) && line.contains("n2"))
    };
    assert!(node("two") && !node("one"), "{wide}");
}

#[test]
fn policies_of_kubernetes_are_checked_and_shown() {
    let up = Up::api_server();
    let policy = |port: &str| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "podSelector": {"matchLabels": {"role": "web"}}, "policyTypes": ["Ingress"],
                "ingress": [{"ports": [{"protocol": port, "port": 80}]}],
            },
        })
        .to_string()
    };
    let told = up.refusal(&["create", "--filename=-"], &policy("ICMP"));
    assert!(told.contains("spec.ingress[0].ports[0].protocol"), "{told}");
    up.kubectl_with(&["apply", "--filename=-"], &policy("TCP"));
    let row = up.kubectl(&["get", "netpol", "--no-headers"]);
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words.get(..2), Some(&["web", "role=web"][..]), "{row}");
    let described = up.kubectl(&["describe", "netpol", "web"]);
    assert!(described.contains("To Port: 80/TCP"), "{described}");
}

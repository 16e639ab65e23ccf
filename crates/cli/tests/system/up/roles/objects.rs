//! Roles and bindings as objects.

use serde_json::json;

use super::Person;
use crate::up::server::Up;

#[test]
fn they_are_made_shown_and_described() {
    let up = Up::api_server();
    up.kubectl(&[
        "create",
        "role",
        "reader",
        "--verb=get,list",
        "--resource=pods,pods/status",
    ]);
    up.kubectl(&[
        "create",
        "rolebinding",
        "reader",
        "--role=reader",
        "--user=ann",
        "--serviceaccount=default:web",
    ]);
    up.kubectl(&[
        "create",
        "clusterrole",
        "figures",
        "--verb=get",
        "--non-resource-url=/metrics",
    ]);
    up.kubectl(&[
        "create",
        "clusterrolebinding",
        "figures",
        "--clusterrole=figures",
        "--group=dev",
    ]);
    let row = |kind: &str, name: &str| {
        let row = up.kubectl(&["get", kind, name, "--no-headers", "--output=wide"]);
        let words = row.split_whitespace().map(str::to_owned);
        words.collect::<Vec<_>>()
    };
    assert_eq!(row("rolebinding", "reader")[..2], ["reader", "Role/reader"]);
    assert_eq!(row("rolebinding", "reader")[3..], ["ann", "default/web"]);
    assert_eq!(
        row("clusterrolebinding", "figures")[1],
        "ClusterRole/figures"
    );
    assert_eq!(row("role", "reader").len(), 2);
    let described = up.kubectl(&["describe", "role", "reader"]);
    assert!(described.contains("pods/status"), "{described}");
    let described = up.kubectl(&["describe", "clusterrole", "figures"]);
    assert!(described.contains("[/metrics]"), "{described}");
    assert_eq!(
        up.json(&["role", "reader"])["rules"],
        json!([{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list"]}])
    );
    assert!(
        up.kubectl(&["explain", "clusterrole.aggregationRule"])
            .contains("clusterRoleSelectors")
    );
}

#[test]
fn a_binding_stays_with_its_role() {
    let up = Up::api_server();
    up.kubectl(&[
        "create",
        "rolebinding",
        "ann",
        "--clusterrole=view",
        "--user=ann",
    ]);
    let patch = r#"{"roleRef": {"name": "edit"}}"#;
    let told = up.refusal(
        &[
            "patch",
            "rolebinding",
            "ann",
            "--type=merge",
            "--patch",
            patch,
        ],
        "",
    );
    assert!(told.contains("cannot change roleRef"), "{told}");
    let mut binding = up.json(&["rolebinding", "ann"]);
    binding["subjects"][0]["name"] = json!("bob");
    up.kubectl_with(&["replace", "--filename=-"], &binding.to_string());
    assert_eq!(
        up.json(&["rolebinding", "ann"])["subjects"][0]["name"],
        "bob"
    );
    let mut binding = up.json(&["rolebinding", "ann"]);
    binding["roleRef"]["kind"] = json!("Role");
    let told = up.refusal(&["replace", "--filename=-"], &binding.to_string());
    assert!(told.contains("cannot change roleRef"), "{told}");
}

#[test]
fn defaults_are_there_again_after_a_start_and_what_was_bound_as_well() {
    let up = Up::api_server_with_port();
    let ann = Person::new(&up, "ann", &[]);
    let file = ann.file.clone();
    up.kubectl(&[
        "create",
        "clusterrolebinding",
        "ann",
        "--clusterrole=view",
        "--user=ann",
    ]);
    let patch = r#"[{"op": "remove", "path": "/rules/0"}]"#;
    up.kubectl(&[
        "patch",
        "clusterrole",
        "system:aggregate-to-view",
        "--type=json",
        "--patch",
        patch,
    ]);
    ann.refused(&["get", "pods"], "User \"ann\" cannot list");
    up.kubectl(&["delete", "clusterrole", "view"]);
    up.kubectl(&["delete", "clusterrolebinding", "system:discovery"]);
    ann.refused(&["get", "tiers"], "tiers");
    ann.refused(&["get", "--raw", "/apis"], "cannot get path \"/apis\"");
    let up = up.kill().start();
    let ann = Person { up: &up, file };
    ann.kubectl(&["get", "pods"]);
    ann.kubectl(&["get", "tiers"]);
    ann.kubectl(&["api-resources"]);
    ann.refused(&["create", "configmap", "x"], "cannot create");
}

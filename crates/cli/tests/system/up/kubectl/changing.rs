//! Objects change, in all ways.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::objects::{config_map, list, policy, tier};
use crate::up::server::Up;

/// An object of Calico's and one of Kubernetes', with a field that changes.
fn pairs() -> [(&'static str, &'static str, Value, &'static str); 2] {
    [
        (
            "globalnetworkpolicy.projectcalico.org",
            "default.web",
            policy("default.web", 5),
            "/spec/order",
        ),
        ("configmap", "one", config_map("one", "5"), "/data/key"),
    ]
}

/// The field's next value.
fn raised(kind: &str, value: u32) -> Value {
    if kind == "configmap" {
        json!(value.to_string())
    } else {
        json!(value)
    }
}

fn with(object: &Value, pointer: &str, value: Value) -> String {
    let mut object = object.clone();
    *object.pointer_mut(pointer).unwrap() = value;
    object.to_string()
}

#[test]
fn apply_changes_what_differs_and_nothing_else() {
    let up = Up::api_server();
    for (kind, name, object, field) in pairs() {
        let apply = |text: &str| up.kubectl_with(&["apply", "--filename=-"], text);
        let told = |what: &str| format!("{kind}/{name} {what}\n");
        assert_eq!(apply(&object.to_string()), told("created"));
        let before = up.json(&[kind, name]);
        assert_eq!(apply(&object.to_string()), told("unchanged"));
        assert_eq!(up.json(&[kind, name]), before);
        // What another has set stays; what is no longer in the file goes.
        up.kubectl(&["label", kind, name, "other=yes"]);
        let mut next = object.clone();
        next["metadata"]["labels"] = json!({"new": "1"});
        let next = with(&next, field, raised(kind, 6));
        assert_eq!(apply(&next), told("configured"));
        let after = up.json(&[kind, name]);
        assert_eq!(after.pointer(field), Some(&raised(kind, 6)));
        let labels = &after["metadata"]["labels"];
        assert_eq!(
            (&labels["other"], &labels["new"]),
            (&json!("yes"), &json!("1"))
        );
        assert_eq!(labels["app"], Value::Null);
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    }
}

#[test]
fn server_side_apply_knows_who_manages_what() {
    let up = Up::api_server();
    for (kind, name, object, field) in pairs() {
        let apply = |manager: &str, text: &str, more: &[&str]| {
            let manager = format!("--field-manager={manager}");
            let arguments = ["apply", "--server-side", &manager, "--filename=-"];
            up.try_kubectl(&[&arguments, more].concat(), text)
        };
        let told = format!("{kind}/{name} serverside-applied\n");
        assert_eq!(apply("one", &object.to_string(), &[]).stdout, told);
        let shown = ["--show-managed-fields"];
        let before = up.json(&[kind, name, shown[0]]);
        assert_eq!(apply("one", &object.to_string(), &[]).stdout, told);
        assert_eq!(up.json(&[kind, name, shown[0]]), before);
        let manager = &before["metadata"]["managedFields"][0];
        assert_eq!(
            (&manager["manager"], &manager["operation"]),
            (&json!("one"), &json!("Apply"))
        );

        let other = with(&object, field, raised(kind, 9));
        let refused = apply("two", &other, &[]);
        assert!(!refused.success(), "{}", refused.stdout);
        let field_name = field.rsplit('/').next().unwrap();
        assert!(
            refused.stderr.contains("conflict with \"one\"") && refused.stderr.contains(field_name),
            "{}",
            refused.stderr
        );
        assert_eq!(up.json(&[kind, name, shown[0]]), before);
        assert_eq!(apply("two", &other, &["--force-conflicts"]).stdout, told);
        let after = up.json(&[kind, name]);
        assert_eq!(after.pointer(field), Some(&raised(kind, 9)));
        // What its only manager no longer wants goes.
        let mut without = object.clone();
        without["metadata"]["labels"] = json!({});
        let without = with(&without, field, raised(kind, 9));
        for manager in ["one", "two"] {
            assert_eq!(apply(manager, &without, &[]).stdout, told);
        }
        assert_eq!(
            up.json(&[kind, name])["metadata"]["labels"]["app"],
            Value::Null
        );
    }
}

#[test]
fn labels_annotations_and_patches_change_objects() {
    let up = Up::api_server();
    for (kind, name, object, field) in pairs() {
        up.kubectl_with(&["create", "--filename=-"], &object.to_string());
        up.kubectl(&["label", kind, name, "colour=red"]);
        let refused = up.refusal(&["label", kind, name, "colour=blue"], "");
        assert!(refused.contains("--overwrite"), "{refused}");
        up.kubectl(&["label", kind, name, "colour=blue", "--overwrite"]);
        up.kubectl(&["label", kind, name, "app-"]);
        up.kubectl(&["annotate", kind, name, "note=a b c"]);
        let metadata = &up.json(&[kind, name])["metadata"];
        assert_eq!(metadata["labels"]["colour"], "blue");
        assert_eq!(metadata["labels"]["app"], Value::Null);
        assert_eq!(metadata["annotations"]["note"], "a b c");
        assert_eq!(
            metadata["generation"].as_u64().unwrap_or(1),
            1,
            "{metadata}"
        );

        let patch = |form: &str, patch: &Value| {
            let form = format!("--type={form}");
            let patch = patch.to_string();
            up.try_kubectl(&["patch", kind, name, &form, "--patch", &patch], "")
        };
        let value = |value: u32| raised(kind, value);
        let (section, key) = field.trim_start_matches('/').split_once('/').unwrap();
        let steps = json!([
            {"op": "test", "path": field, "value": value(5)},
            {"op": "replace", "path": field, "value": value(7)},
        ]);
        assert!(patch("json", &steps).success());
        assert_eq!(up.json(&[kind, name]).pointer(field), Some(&value(7)));
        let failed = patch("json", &steps);
        assert!(!failed.success(), "a test that fails stops the patch");
        assert!(patch("merge", &json!({section: {key: value(8)}})).success());
        assert_eq!(up.json(&[kind, name]).pointer(field), Some(&value(8)));
        assert!(patch("strategic", &json!({section: {key: value(9)}})).success());
        assert_eq!(up.json(&[kind, name]).pointer(field), Some(&value(9)));
        let told = patch("merge", &json!({section: {key: value(9)}})).stdout;
        assert!(told.contains("(no change)"), "{told}");
    }
}

#[test]
fn lists_of_kubernetes_objects_merge_by_key() {
    let up = Up::api_server();
    let pod = super::objects::pod("default", "web", "n1");
    up.kubectl_with(&["create", "--filename=-"], &pod.to_string());
    let patch = json!({"spec": {"containers": [{"name": "side", "image": "log"}]}});
    let patch = patch.to_string();
    up.kubectl(&["patch", "pod", "web", "--patch", &patch]);
    let containers = "--output=jsonpath={.spec.containers[*].name}";
    let names = up.kubectl(&["get", "pod", "web", containers]);
    assert!(names.contains("main") && names.contains("side"), "{names}");
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"role": "web"}, "ports": [{"name": "http", "port": 80}]},
    });
    up.kubectl_with(&["create", "--filename=-"], &service.to_string());
    let patch = json!({"spec": {"ports": [{"name": "https", "port": 443}]}}).to_string();
    up.kubectl(&["patch", "service", "web", "--patch", &patch]);
    let ports = up.json(&["service", "web"])["spec"]["ports"].clone();
    let mut numbers: Vec<_> = ports
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["port"].as_u64())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [Some(80), Some(443)]);
    up.kubectl(&["patch", "service", "web", "--type=merge", "--patch", &patch]);
    let ports = up.json(&["service", "web"])["spec"]["ports"].clone();
    assert_eq!(ports.as_array().map(Vec::len), Some(1));
}

#[test]
fn differences_are_shown_and_dry_runs_change_nothing() {
    let up = Up::api_server();
    for (kind, name, object, field) in pairs() {
        let diff = |text: &str| up.try_kubectl(&["diff", "--filename=-"], text);
        assert_eq!(diff(&object.to_string()).status.code(), Some(1));
        let created = up.kubectl_with(
            &["create", "--dry-run=server", "--filename=-"],
            &object.to_string(),
        );
        assert_eq!(created, format!("{kind}/{name} created (server dry run)\n"));
        up.refusal(&["get", kind, name], "");
        up.kubectl_with(&["apply", "--filename=-"], &object.to_string());
        let same = diff(&object.to_string());
        assert_eq!((same.status.code(), same.stdout.as_str()), (Some(0), ""));
        let before = up.json(&[kind, name]);
        let next = with(&object, field, raised(kind, 6));
        let found = diff(&next);
        assert_eq!(found.status.code(), Some(1), "{}", found.stderr);
        let key = field.rsplit('/').next().unwrap();
        let added = found
            .stdout
            .lines()
            .any(|line| line.starts_with('+') && line.contains(key));
        assert!(added, "{}", found.stdout);
        up.kubectl_with(&["apply", "--dry-run=server", "--filename=-"], &next);
        up.kubectl(&["delete", kind, name, "--dry-run=server"]);
        assert_eq!(up.json(&[kind, name]), before);
    }
}

#[test]
fn an_editor_changes_objects() {
    let up = Up::api_server();
    let editor = up.folder().join("editor");
    fs::write(
        &editor,
        "#!/bin/sh\nexec sed -i -e 's/order: 5/order: 6/' -e 's/key: \"5\"/key: \"6\"/' \"$1\"\n",
    )
    .unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    for (kind, name, object, field) in pairs() {
        up.kubectl_with(&["create", "--filename=-"], &object.to_string());
        for expected in ["edited", "no changes"] {
            let mut edit = up.kubectl_command(&["edit", kind, name]);
            edit.env("KUBE_EDITOR", &editor);
            let output = up.run(edit, b"");
            let told = format!("{}{}", output.stdout, output.stderr);
            assert!(output.success() && told.contains(expected), "{told}");
        }
        assert_eq!(
            up.json(&[kind, name]).pointer(field),
            Some(&raised(kind, 6))
        );
    }
}

#[test]
fn objects_are_deleted_by_name_by_label_and_by_file() {
    let up = Up::api_server();
    let all = [
        config_map("one", "1"),
        config_map("two", "2"),
        policy("default.one", 1),
        policy("default.two", 2),
        tier("gold", 1),
    ];
    up.kubectl_with(&["create", "--filename=-"], &list(&all));
    up.kubectl(&["label", "cm/two", "gnp/default.two", "app-"]);
    up.kubectl(&["delete", "cm,gnp", "--selector=app=shop"]);
    let names = up.kubectl(&["get", "cm,gnp", "--output=name"]);
    let expected = "configmap/two\nglobalnetworkpolicy.projectcalico.org/default.two\n";
    assert_eq!(names, expected);
    up.kubectl_with(
        &["delete", "--ignore-not-found", "--filename=-"],
        &list(&all),
    );
    assert_eq!(up.kubectl(&["get", "cm,gnp", "--output=name"]), "");
    up.refusal(&["get", "tier", "gold"], "");

    // Whoever holds an object back decides when it goes; who waits is told.
    let mut held = config_map("held", "1");
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    up.kubectl_with(&["create", "--filename=-"], &held.to_string());
    up.kubectl(&["delete", "cm", "held", "--wait=false"]);
    let late = up.refusal(&["wait", "--for=delete", "cm/held", "--timeout=1s"], "");
    assert!(late.contains("timed out"), "{late}");
    let mut wait = up.kubectl_command(&["wait", "--for=delete", "cm/held", "--timeout=20s"]);
    let mut waiting = up.spawn(&mut wait);
    let free = r#"{"metadata":{"finalizers":null}}"#;
    up.kubectl(&["patch", "cm", "held", "--type=merge", "--patch", free]);
    assert!(waiting.wait().unwrap().success());
    up.refusal(&["get", "cm", "held"], "");
}

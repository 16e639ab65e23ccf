//! Custom resources.

use serde_json::{Value, json};

use super::Both;

fn definition() -> Value {
    let spec = json!({
        "type": "object", "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    let status = json!({"type": "object", "properties": {"phase": {"type": "string"}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"], "properties": {"spec": spec, "status": status},
                }},
            }],
        },
    })
}

fn widget(name: &str, spec: &Value) -> String {
    let metadata = json!({"name": name, "namespace": "default", "labels": {"app": "a"}});
    let status = json!({"phase": "made up"});
    json!({
        "apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata, "spec": spec, "status": status,
    })
    .to_string()
}

const CREATE: [&str; 3] = ["create", "--validate=false", "--filename=-"];

fn define(both: &Both) {
    both.same(&CREATE, &definition().to_string());
    let wait = [
        "wait",
        "--for=condition=Established",
        "crd/widgets.example.org",
        "--timeout=30s",
    ];
    both.same(&wait, "");
}

#[test]
fn a_kind_is_served_as_long_as_it_is_defined() {
    let both = Both::new();
    define(&both);
    let names = [
        ".status.acceptedNames.singular",
        ".status.acceptedNames.listKind",
        ".status.storedVersions",
        ".status.conditions[?(@.type==\"NamesAccepted\")].reason",
    ];
    both.same_fields("crd", "widgets.example.org", &names);
    let spec = json!({"size": 1, "unknown": 2, "any": {"deep": {"er": true}}});
    both.same(&CREATE, &widget("one", &spec));
    both.same_fields("wd", "one", &[".spec", ".status", ".metadata.generation"]);
    for (spec, why) in [
        (json!({"size": 0}), "spec.size"),
        (json!({"size": "1"}), "spec.size"),
        (json!({}), "spec.size"),
        (json!({"size": 1, "color": "green"}), "spec.color"),
    ] {
        both.refused(&CREATE, &widget("wrong", &spec), why);
    }
    let phase = r#"{"status":{"phase":"Ready"},"spec":{"size":5}}"#;
    for part in ["--subresource=status", "--type=merge"] {
        both.same(
            &[
                "patch",
                "widget",
                "one",
                part,
                "--type=merge",
                "--patch",
                phase,
            ],
            "",
        );
        both.same_fields(
            "widget",
            "one",
            &[".spec.size", ".status.phase", ".metadata.generation"],
        );
    }
    let applied = widget("two", &json!({"size": 2, "color": "blue"}));
    let apply = ["apply", "--server-side", "--validate=false", "--filename=-"];
    both.same(&apply, &applied);
    both.same(&apply, &widget("two", &json!({"size": 3})));
    both.same_fields("widget", "two", &[".spec"]);
    both.same(
        &["apply", "--validate=false", "--filename=-"],
        &widget("three", &json!({"size": 3})),
    );
    both.same(&["label", "widget", "three", "app=b", "--overwrite"], "");
    both.same(&["get", "widgets", "--selector=app=a", "--output=name"], "");

    both.same(
        &["delete", "crd", "widgets.example.org", "--timeout=30s"],
        "",
    );
    both.refused(
        &["get", "widgets.example.org"],
        "",
        "the server doesn't have a resource type",
    );
    // What is defined again has no objects from before.
    define(&both);
    both.same(&["get", "widgets", "--output=name"], "");
}

#[test]
fn a_definition_waits_for_objects_that_are_held_back() {
    let both = Both::new();
    define(&both);
    both.same(&CREATE, &widget("held", &json!({"size": 1})));
    let held = r#"{"metadata":{"finalizers":["example.org/hold"]}}"#;
    let patch = ["patch", "widget", "held", "--type=merge", "--patch"];
    both.same(&[&patch[..], &[held]].concat(), "");
    both.same(
        &["delete", "crd", "widgets.example.org", "--wait=false"],
        "",
    );
    let wait = [
        "wait",
        "--for=condition=Terminating",
        "crd/widgets.example.org",
        "--timeout=30s",
    ];
    both.same(&wait, "");
    both.refused(
        &CREATE,
        &widget("late", &json!({"size": 1})),
        "is terminating",
    );
    let free = r#"{"metadata":{"finalizers":null}}"#;
    both.same(&[&patch[..], &[free]].concat(), "");
    // One that is gone at once is not waited for.
    let gone = [
        "wait",
        "--for=delete",
        "crd/widgets.example.org",
        "--timeout=30s",
    ];
    for output in both.run(&gone, "") {
        assert!(output.success(), "{}", output.stderr);
    }
}

#[test]
fn wrong_definitions_are_refused() {
    let both = Both::new();
    let mut cases = Vec::new();
    let mut add = |pointer: &str, value: Value, why: &'static str| {
        let mut wrong = definition();
        *wrong.pointer_mut(pointer).unwrap() = value;
        cases.push((wrong, why));
    };
    add(
        "/metadata/name",
        json!("others.example.org"),
        "metadata.name",
    );
    add("/spec/group", json!("example"), "spec.group");
    add("/spec/scope", json!("Everywhere"), "spec.scope");
    add("/spec/versions/0/storage", json!(false), "storage version");
    add(
        "/spec/versions/0/schema/openAPIV3Schema/type",
        json!("string"),
        "openAPIV3Schema.type",
    );
    add("/spec/names/kind", json!(""), "spec.names.kind");
    for (wrong, why) in cases {
        both.refused(&CREATE, &wrong.to_string(), why);
    }
}

//! What a write of an object's status may change.

use serde_json::{Value, json};

use super::Both;

/// Writes metadata, specification and status of an object through its status.
fn patch(both: &Both, kind: &str, spec: &Value, status: &Value) {
    let patch = json!({
        "metadata": {
            "annotations": {"example.org/a": "1"}, "labels": {"l": "2"}, "finalizers": ["example.org/f"],
        },
        "spec": spec,
        "status": status,
    });
    let patch = patch.to_string();
    let how = ["--subresource=status", "--type=merge", "--patch", &patch];
    both.same(&[&["patch", kind, kind][..], &how].concat(), "");
    let fields = [
        ".metadata.annotations.example\\.org/a",
        ".metadata.labels.l",
        ".metadata.finalizers",
        ".spec.activeDeadlineSeconds",
        ".spec.sessionAffinity",
        ".spec.unschedulable",
        ".status.podIP",
        ".status.phase",
        ".status.loadBalancer",
    ];
    both.same_fields(kind, kind, &fields);
}

#[test]
fn labels_and_annotations_are_written_with_the_status() {
    let both = Both::new();
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"},
            "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i"}]},
        },
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "namespace"}},
        {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "service"},
            "spec": {"ports": [{"port": 80}]},
        },
    ]});
    both.same(
        &["create", "--filename=-", "--output=name"],
        &objects.to_string(),
    );
    let balanced = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}});
    for (kind, spec, status) in [
        (
            "pod",
            json!({"activeDeadlineSeconds": 5}),
            json!({"podIP": "10.0.0.1"}),
        ),
        (
            "node",
            json!({"unschedulable": true}),
            json!({"phase": "Running"}),
        ),
        ("namespace", json!({}), json!({"phase": "Active"})),
        ("service", json!({"sessionAffinity": "ClientIP"}), balanced),
    ] {
        patch(&both, kind, &spec, &status);
    }
    let other = r#"{"metadata":{"uid":"6c1f7f9e-2c1b-4a3e-9f0e-5a4d1b7f0c11","annotations":{"example.org/a":"2"}}}"#;
    let arguments = [
        "patch",
        "pod",
        "pod",
        "--subresource=status",
        "--type=merge",
        "--patch",
        other,
    ];
    both.refused(&arguments, "", "6c1f7f9e-2c1b");
}

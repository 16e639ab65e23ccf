//! Secrets, events and leases.

use serde_json::{Value, json};

use super::Both;

fn create(both: &Both, object: &Value) {
    let arguments = ["create", "--filename=-", "--output=name"];
    both.same(&arguments, &object.to_string());
}

#[test]
fn secrets_hold_data_and_their_tables_only_count_it() {
    let both = Both::new();
    let secret = |name: &str, fields: Value| {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        for (field, value) in fields.as_object().unwrap() {
            secret[field] = value.clone();
        }
        secret
    };
    let data = json!({"data": {"a": "YQ=="}, "stringData": {"b": "text"}});
    create(&both, &secret("plain", data));
    both.same_fields(
        "secret",
        "plain",
        &[".data.a", ".data.b", ".type", ".stringData"],
    );
    let plain = [
        "get",
        "secret",
        "plain",
        "--no-headers",
        "--output=custom-columns=:.data",
    ];
    both.same(&plain, "");
    let arguments = [
        "create",
        "secret",
        "generic",
        "made",
        "--from-literal=key=value",
    ];
    both.same(&arguments, "");
    let listed = both.up.kubectl(&["get", "secret", "made", "--no-headers"]);
    let cells: Vec<&str> = listed.split_whitespace().take(3).collect();
    assert_eq!(cells, ["made", "Opaque", "1"]);
    both.same_fields("secret", "made", &[".data", ".type"]);
    create(
        &both,
        &secret("fixed", json!({"data": {"a": "YQ=="}, "immutable": true})),
    );
    for (kind, name, patch, why) in [
        (
            "secret",
            "fixed",
            json!({"data": {"a": "Yg=="}}),
            "immutable",
        ),
        ("secret", "plain", json!({"type": "other"}), "type"),
    ] {
        let patch = patch.to_string();
        both.refused(
            &["patch", kind, name, "--type=merge", "--patch", &patch],
            "",
            why,
        );
    }
    for (fields, why) in [
        (
            json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ=="}}),
            "tls.key",
        ),
        (json!({"data": {"a/b": "YQ=="}}), "a/b"),
        (json!({"data": {"a": "no base64"}}), ""),
    ] {
        let wrong = secret("wrong", fields).to_string();
        both.refused(&["create", "--validate=false", "--filename=-"], &wrong, why);
    }
}

#[test]
fn an_event_is_one_object_in_two_groups() {
    let both = Both::new();
    create(
        &both,
        &json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "one", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default", "uid": "u"},
            "reason": "Tested", "message": "as it should be", "type": "Warning", "count": 2,
            "source": {"component": "test"},
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        }),
    );
    let other = [
        ".apiVersion",
        ".note",
        ".regarding.name",
        ".reason",
        ".deprecatedCount",
        ".type",
    ];
    both.same_fields("events.v1.events.k8s.io", "one", &other);
    create(
        &both,
        &json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": "two", "namespace": "default"},
            "regarding": {"kind": "Pod", "name": "other", "namespace": "default"},
            "reason": "Tested", "note": "from there", "type": "Normal", "action": "Test",
            "eventTime": "2026-01-01T00:00:00.000001Z", "reportingController": "example.org/test",
            "reportingInstance": "test-1",
        }),
    );
    let core = [
        ".apiVersion",
        ".message",
        ".involvedObject.name",
        ".reportingComponent",
        ".eventTime",
    ];
    both.same_fields("events", "two", &core);
    let about = "--field-selector=involvedObject.name=web,involvedObject.kind=Pod,type!=Normal";
    both.same(&["get", "events", about, "--output=name"], "");
    let told = both.up.kubectl(&["get", "events", "--no-headers"]);
    assert!(told.contains("Warning   Tested   pod/web"), "{told}");
    both.same(&["delete", "events.v1.events.k8s.io", "one"], "");
    both.same(&["get", "events", "--output=name"], "");
    let elsewhere = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "three", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "kube-public"},
    });
    let arguments = ["create", "--filename=-"];
    both.refused(
        &arguments,
        &elsewhere.to_string(),
        "does not match event.namespace",
    );
}

#[test]
fn leases_are_held_and_renewed() {
    let both = Both::new();
    create(
        &both,
        &json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"},
            "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000001Z"},
        }),
    );
    let patch = r#"{"spec":{"holderIdentity":"b","leaseTransitions":1}}"#;
    both.same(
        &["patch", "lease", "leader", "--type=merge", "--patch", patch],
        "",
    );
    both.same_fields("lease", "leader", &[".spec"]);
}

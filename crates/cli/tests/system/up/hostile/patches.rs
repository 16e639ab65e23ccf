//! Patches that are none, that fail, or that grow.

use serde_json::{Value, json};

use super::Target;
use super::http::{MAPS, POLICIES};

const STEPS: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The objects that are patched.
fn objects() -> [String; 2] {
    [format!("{MAPS}/one"), format!("{POLICIES}/default.one")]
}

#[track_caller]
fn check(target: &Target, media_type: &str, patch: &str, codes: &[u16]) {
    for path in objects() {
        let answer = target
            .http
            .send("PATCH", &path, media_type, patch.as_bytes());
        answer.assert_refused(codes, &format!("{media_type} {patch:.80}"));
    }
}

#[test]
fn bad_patches_are_refused() {
    let target = Target::new();
    for patch in [
        "",
        "{",
        "{}",
        "[1]",
        "[{}]",
        "null",
        r#"[{"op":"jump","path":"/a"}]"#,
        r#"[{"op":"add","path":"/a"}]"#,
        r#"[{"op":"add","path":"a","value":1}]"#,
        r#"[{"op":"copy","path":"/a"}]"#,
    ] {
        check(&target, STEPS, patch, &[400, 422]);
    }
    for steps in [
        json!([{"op": "remove", "path": "/nothing"}]),
        json!([{"op": "replace", "path": "/a/b/c", "value": 1}]),
        json!([{"op": "test", "path": "/metadata/name", "value": "other"}]),
        json!([{"op": "add", "path": "/metadata/finalizers/5", "value": "a"}]),
        json!([{"op": "add", "path": "/metadata/labels/-", "value": "a"}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "replace", "path": "", "value": []}]),
        json!([{"op": "replace", "path": "", "value": "text"}]),
        json!([{"op": "move", "from": "/metadata", "path": "/metadata/labels"}]),
        json!([{"op": "replace", "path": "/metadata/name", "value": "other"}]),
        json!([{"op": "replace", "path": "/kind", "value": "Pod"}]),
        json!([{"op": "add", "path": "/surprise", "value": 1}]),
        json!([{"op": "remove", "path": "/metadata"}, {"op": "remove", "path": "/kind"}, {"op": "add", "path": "/metadata", "value": 7}]),
        json!([{"op": "replace", "path": "/metadata/uid", "value": "other"}]),
        json!([{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]),
    ] {
        check(&target, STEPS, &steps.to_string(), &[400, 409, 422]);
    }
    for media_type in [MERGE, STRATEGIC] {
        for patch in [
            "",
            "{",
            "[]",
            "null",
            "1",
            r#"{"metadata":1}"#,
            r#"{"metadata":{"name":"other"}}"#,
            r#"{"kind":"Pod"}"#,
            r#"{"surprise":1}"#,
        ] {
            check(&target, media_type, patch, &[400, 422]);
        }
    }
    for patch in [
        json!({"data": [{"$patch": "delete"}], "spec": [{"$patch": "delete"}]}),
        json!({"metadata": {"$patch": "jump"}}),
        json!({"metadata": {"$setElementOrder/finalizers": 7, "finalizers": [{"a": 1}]}}),
        json!({"metadata": {"ownerReferences": [{"name": "no key"}]}}),
    ] {
        check(&target, STRATEGIC, &patch.to_string(), &[400, 422]);
    }
    for patch in [
        "",
        "[]",
        "a",
        "{}: {}",
        r#"{"metadata":{"name":"other"}}"#,
        r#"{"metadata":{"managedFields":[{"manager":"x"}]}}"#,
    ] {
        for path in objects() {
            let path = format!("{path}?fieldManager=a");
            let answer = target.http.send("PATCH", &path, APPLY, patch.as_bytes());
            answer.assert_refused(&[400, 422], patch);
        }
    }
    for path in objects() {
        let answer = target.http.send("PATCH", &path, APPLY, b"{}");
        answer.assert_refused(&[400, 422], "no field manager");
    }
    target.assert_unharmed();
}

/// Each step doubles the object.
#[test]
fn patches_that_copy_themselves_are_stopped() {
    let target = Target::new();
    let mut steps =
        vec![json!({"op": "add", "path": "/annotations", "value": {"a": "x".repeat(1024)}})];
    steps.extend((0..40).map(
        |n| json!({"op": "copy", "from": "/annotations", "path": format!("/annotations/c{n}")}),
    ));
    check(&target, STEPS, &Value::from(steps).to_string(), &[413, 422]);
    let mut list = vec![json!({"op": "add", "path": "/list", "value": ["x".repeat(1024)]})];
    list.extend((0..40).map(|_| json!({"op": "copy", "from": "/list", "path": "/list/-"})));
    check(&target, STEPS, &Value::from(list).to_string(), &[413, 422]);
    let many = vec![json!({"op": "test", "path": "/metadata/name", "value": "one"}); 10_001];
    check(&target, STEPS, &Value::from(many).to_string(), &[413]);
    target.assert_unharmed();
}

/// Each step builds on the innermost field of the one before.
#[test]
fn patches_that_nest_deeper_and_deeper_are_stopped() {
    let target = Target::new();
    let mut nested = json!({});
    for _ in 0..100 {
        nested = json!({"a": nested});
    }
    let mut path = "/a".to_owned();
    let mut steps = Vec::new();
    for _ in 0..150 {
        steps.push(json!({"op": "add", "path": path, "value": nested}));
        path.push_str(&"/a".repeat(101));
    }
    check(&target, STEPS, &Value::from(steps).to_string(), &[413, 422]);
    let mut steps = vec![json!({"op": "add", "path": "/a", "value": nested})];
    for _ in 0..200 {
        steps.push(json!({"op": "add", "path": "/b", "value": {}}));
        steps.push(json!({"op": "move", "from": "/a", "path": "/b/a"}));
        steps.push(json!({"op": "move", "from": "/b", "path": "/a"}));
    }
    check(&target, STEPS, &Value::from(steps).to_string(), &[413, 422]);
    target.assert_unharmed();
}

//! What is too much or said twice.

use serde_json::json;

use crate::standalone::support::{Alone, TIERS};

const JSON: &str = "application/json";

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_are_given_twice_are_refused_told_or_ignored() {
    let alone = Alone::start().await;
    let body = r#"{"metadata": {"name": "gold"}, "spec": {"order": 1, "order": 2}}"#;
    let refused = alone.ask("POST", TIERS, JSON, body).await;
    assert_eq!(refused.code, 400, "{refused:?}");
    assert_eq!(
        refused.message(),
        "strict decoding error: duplicate field \"spec.order\""
    );
    let path = format!("{TIERS}?fieldValidation=Warn");
    let warned = alone.ask("POST", &path, JSON, body).await;
    assert_eq!(warned.code, 201, "{warned:?}");
    let warning = r#"warning: 299 - "duplicate field \"spec.order\"""#;
    assert!(warned.head.contains(warning), "{}", warned.head);
    assert_eq!(warned.json()["spec"]["order"], 2);
    let path = format!("{TIERS}/gold?fieldValidation=Ignore");
    let merge = "application/merge-patch+json";
    let change = r#"{"spec": {"order": 3, "order": 4}}"#;
    let ignored = alone.ask("PATCH", &path, merge, change).await;
    assert_eq!(ignored.code, 200, "{ignored:?}");
    assert!(!ignored.head.contains("warning"), "{}", ignored.head);
    let path = format!("{TIERS}/gold");
    assert_eq!(alone.ask("PATCH", &path, merge, change).await.code, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_has_bounds_also_for_what_patches_add() {
    let alone = Alone::start().await;
    let labels = |from: usize| -> serde_json::Value {
        let names = (from..from + 1500).map(|number| format!("label-{number:010}"));
        let labels = names.map(|name| (name, json!("0123456789abcdef")));
        serde_json::Value::Object(labels.collect())
    };
    let tier = json!({"metadata": {"name": "gold", "labels": labels(0)}});
    assert_eq!(alone.post(TIERS, &tier).await.code, 201);
    let change = json!({"metadata": {"labels": labels(1500)}}).to_string();
    let path = format!("{TIERS}/gold");
    let merge = "application/merge-patch+json";
    let refused = alone.ask("PATCH", &path, merge, &change).await;
    assert_eq!(refused.code, 422, "{refused:?}");
    assert!(
        refused
            .message()
            .contains("metadata.labels: must be at most 65536 bytes together"),
        "{refused:?}"
    );
    let namespace = json!({"metadata": {"name": "a", "finalizers": ["no name"]}});
    let refused = alone.post("/api/v1/namespaces", &namespace).await;
    assert_eq!(refused.code, 422, "{refused:?}");
}

/// Each change is small enough; what they add up to is not.
#[tokio::test(flavor = "multi_thread")]
async fn objects_do_not_grow_beyond_their_bound() {
    let alone = Alone::start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let half = "x".repeat(2 << 20);
    let map = json!({"metadata": {"name": "big"}, "data": {"one": half}});
    assert_eq!(alone.post(maps, &map).await.code, 201);
    let change = json!({"data": {"two": half}}).to_string();
    let path = format!("{maps}/big");
    let refused = alone
        .ask("PATCH", &path, "application/merge-patch+json", &change)
        .await;
    assert_eq!(refused.code, 413, "{}", refused.head);
    let message = refused.message();
    assert!(message.ends_with("the limit is 3145728"), "{message}");
}

/// A policy with a field that its type does not have, and a pod with one.
fn with_unknown_field() -> [(&'static str, serde_json::Value, &'static str); 2] {
    let tier = json!({"metadata": {"name": "silver"}, "spec": {"order": 10, "colour": "red"}});
    let pod = json!({
        "metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i", "colour": "red"}]},
    });
    let pods = "/api/v1/namespaces/default/pods";
    [
        (TIERS, tier, "spec.colour"),
        (pods, pod, "spec.containers[0].colour"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_the_type_does_not_have_are_told_or_refused_as_asked() {
    let alone = Alone::start().await;
    for (path, object, field) in with_unknown_field() {
        let warning = format!("warning: 299 - \"unknown field \\\"{field}\\\"\"");
        let refused = alone
            .post(&format!("{path}?fieldValidation=Strict"), &object)
            .await;
        assert!(matches!(refused.code, 400 | 422), "{refused:?}");
        assert!(refused.message().contains(field), "{refused:?}");

        let warned = alone
            .post(&format!("{path}?fieldValidation=Warn"), &object)
            .await;
        assert_eq!(warned.code, 201, "{warned:?}");
        assert!(warned.head.contains(&warning), "{}", warned.head);
        assert!(!warned.body.contains("\"red\""), "{}", warned.body);

        let name = object["metadata"]["name"].as_str().unwrap();
        let own = format!("{path}/{name}?fieldValidation=Warn&fieldManager=ann&force=true");
        let mut applied = object.clone();
        applied["apiVersion"] = warned.json()["apiVersion"].clone();
        applied["kind"] = warned.json()["kind"].clone();
        let merge = json!({"spec": object["spec"], "metadata": {"labels": {"a": "b"}}});
        for (method, media, body) in [
            ("PATCH", "application/merge-patch+json", &merge),
            ("PATCH", "application/apply-patch+yaml", &applied),
            ("PUT", "application/json", &applied),
        ] {
            let warned = alone.ask(method, &own, media, &body.to_string()).await;
            assert_eq!(warned.code, 200, "{media}: {warned:?}");
            assert!(warned.head.contains(&warning), "{media}: {}", warned.head);
        }

        let mut other = object.clone();
        other["metadata"]["name"] = json!("quiet");
        let quiet = alone
            .post(&format!("{path}?fieldValidation=Ignore"), &other)
            .await;
        assert_eq!(quiet.code, 201, "{quiet:?}");
        assert!(!quiet.head.contains("warning:"), "{}", quiet.head);
    }
    // However many there are.
    let unknown: serde_json::Map<_, _> = (0..1000)
        .map(|number| (format!("f{number}"), json!(1)))
        .collect();
    let tier = json!({"metadata": {"name": "many"}, "spec": unknown});
    let warned = alone
        .post(&format!("{TIERS}?fieldValidation=Warn"), &tier)
        .await;
    assert_eq!(warned.code, 201, "{warned:?}");
    assert_eq!(
        warned.head.matches("warning:").count(),
        16,
        "{}",
        warned.head
    );
}

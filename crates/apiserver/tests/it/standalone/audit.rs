//! What is written down of requests.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use tortie_apiserver::audit::{Level, Log, Settings};
use tortie_apiserver::http::Options;

use crate::standalone::heavy::{SETS, network_set};
use crate::standalone::support::{Alone, TIERS};

async fn alone(path: &Path, level: Level) -> Alone {
    let settings = Settings {
        path: path.to_owned(),
        level,
        max_bytes: 1 << 20,
        backups: 1,
    };
    Alone::start_with(Options {
        audit: Log::open(&settings).unwrap(),
        ..Options::default()
    })
    .await
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_written_down_as_kubernetes_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let alone = alone(&path, Level::Metadata).await;
    let tier = json!({"metadata": {"name": "gold"}});
    assert_eq!(alone.post(TIERS, &tier).await.code, 201);
    assert_eq!(alone.post(TIERS, &tier).await.code, 409);
    alone
        .get(&format!("{TIERS}/gold/status?token=abc&pretty=true"))
        .await;
    alone.get("/version").await;
    // Nobody needs to know who looked after the server's health.
    alone.get("/healthz").await;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let lines = lines(&path);
    let seen: Vec<_> = lines
        .iter()
        .map(|line| {
            format!(
                "{} {} {}",
                line["verb"], line["requestURI"], line["responseStatus"]["code"]
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            format!("\"create\" \"{TIERS}\" 201"),
            format!("\"create\" \"{TIERS}\" 409"),
            format!("\"get\" \"{TIERS}/gold/status?token=redacted&pretty=true\" 200"),
            "\"get\" \"/version\" 200".to_owned(),
        ]
    );
    let mut first = lines[0].clone();
    for field in ["auditID", "requestReceivedTimestamp", "stageTimestamp"] {
        assert!(first[field].is_string(), "{first}");
        first.as_object_mut().unwrap().remove(field);
    }
    let expected = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "stage": "ResponseComplete",
        "requestURI": TIERS, "verb": "create", "sourceIPs": [], "userAgent": "",
        "user": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        "objectRef": {"resource": "tiers", "apiGroup": "projectcalico.org", "apiVersion": "v3"},
        "responseStatus": {"metadata": {}, "code": 201},
        "annotations": {"authorization.k8s.io/decision": "allow"},
    });
    assert_eq!(first, expected);
    assert_eq!(
        lines[2]["objectRef"],
        json!({
            "resource": "tiers", "name": "gold", "subresource": "status",
            "apiGroup": "projectcalico.org", "apiVersion": "v3",
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_are_written_down_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let alone = alone(&path, Level::RequestResponse).await;
    let map = json!({
        "metadata": {
            "name": "settings",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "all of it"},
        },
        "data": {"colour": "red", "dbPassword": "hunter2"},
    });
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(alone.post(maps, &map).await.code, 201);
    assert_eq!(alone.get(maps).await.code, 200);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        !text.contains("hunter2") && !text.contains("all of it"),
        "{text}"
    );
    let lines = lines(&path);
    let data = json!({"colour": "red", "dbPassword": "redacted"});
    assert_eq!(lines[0]["requestObject"]["data"], data);
    assert_eq!(lines[0]["responseObject"]["data"], data);
    assert!(lines[0]["responseObject"]["metadata"]["uid"].is_string());
    // A list is not one object.
    assert_eq!(lines[1]["verb"], "list");
    assert!(lines[1].get("responseObject").is_none());
}

/// Its client leaves before it is stored, and there is a line all the same.
#[tokio::test(flavor = "multi_thread")]
async fn requests_without_an_answer_are_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let alone = alone(&path, Level::Metadata).await;
    let set = network_set("left", 150_000).to_string();
    drop(alone.send("POST", SETS, "application/json", &set).await);
    for _ in 0..1_000 {
        if !lines(&path).is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let lines = lines(&path);
    assert_eq!(
        lines[0]["objectRef"]["resource"], "globalnetworksets",
        "{lines:?}"
    );
    assert_eq!(lines[0]["responseStatus"]["code"], 504, "{lines:?}");
}

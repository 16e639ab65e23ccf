//! Admission webhooks that the API server calls.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::oneshot;
use tortie_operator::webhook::{Operation, Refusal, Review};
use tortie_operator::{Manager, WebhookServer};
use tortie_testkit::KubeApiServer;

use crate::kubernetes::support::{client, config_map, free_address, namespace, value_of};

/// Makes a certificate for 127.0.0.1 that is its own authority.
fn issue(folder: &Path) {
    let file = |name: &str| folder.join(name).display().to_string();
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-noenc",
        ])
        .args([
            "-days",
            "30",
            "-subj",
            "/CN=webhook",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ])
        .args(["-keyout", &file("new.key"), "-out", &file("new.crt")])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    for kind in ["key", "crt"] {
        std::fs::rename(
            folder.join(format!("new.{kind}")),
            folder.join(format!("tls.{kind}")),
        )
        .unwrap();
    }
}

/// Tells the API server of the webhooks, with the certificate to expect.
fn register(
    cluster: &KubeApiServer,
    name: &str,
    namespace: &str,
    address: SocketAddr,
    folder: &Path,
) {
    let bundle = std::fs::read(folder.join("tls.crt")).unwrap();
    let bundle = serde_json::to_value(k8s_openapi::ByteString(bundle)).unwrap();
    let webhook = |path: &str, operations: &[&str]| {
        json!([{
            "name": format!("{path}.tortie.test"),
            "clientConfig": {"url": format!("https://{address}/{path}"), "caBundle": bundle},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": operations}],
            "namespaceSelector": {"matchLabels": {"webhooks": namespace}},
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5, "failurePolicy": "Fail",
        }])
    };
    for (kind, webhooks) in [
        (
            "MutatingWebhookConfiguration",
            webhook("mutate", &["CREATE", "UPDATE"]),
        ),
        (
            "ValidatingWebhookConfiguration",
            webhook("validate", &["CREATE", "UPDATE", "DELETE"]),
        ),
    ] {
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name}, "webhooks": webhooks,
        });
        let applied = cluster.kubectl_stdin(&["apply", "-f", "-"], &object.to_string());
        applied.unwrap().into_stdout().unwrap();
    }
    let label = format!("webhooks={namespace}");
    let labelled = cluster.kubectl(&["label", "--overwrite", "namespace", namespace, &label]);
    labelled.unwrap().into_stdout().unwrap();
}

async fn validate(review: Review<ConfigMap>) -> Result<Vec<String>, Refusal> {
    assert_eq!(review.user.username, "admin");
    let object = review.object.as_ref().or(review.old.as_ref()).unwrap();
    match (review.operation, value_of(object).as_str()) {
        (Operation::Delete, "keep") => Err(Refusal::new("it is to be kept")),
        (Operation::Delete, _) => Ok(Vec::new()),
        (_, "bad") => Err(Refusal::invalid([(
            "data.value".to_owned(),
            "must not be bad".to_owned(),
        )])),
        (_, "panic") => panic!("as expected"),
        (Operation::Update, _) => {
            let before = value_of(review.old.as_ref().unwrap());
            Ok(vec![format!("it was {before}")])
        }
        _ => Ok(Vec::new()),
    }
}

async fn mutate(_: Review<ConfigMap>, mut map: ConfigMap) -> Result<ConfigMap, Refusal> {
    let labels = map.metadata.labels.get_or_insert_default();
    labels.insert("seen".to_owned(), "yes".to_owned());
    Ok(map)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_asks_and_respects_the_answers_also_after_a_new_certificate() {
    let cluster = KubeApiServer::shared();
    let client = client(cluster).await;
    let ns = namespace(&client, "webhooks").await;
    let folder = tempfile::tempdir().unwrap();
    issue(folder.path());
    let address = free_address();
    let file = |name: &str| folder.path().join(name);
    let server = WebhookServer::new(address, file("tls.crt"), file("tls.key"))
        .most_bytes(100_000)
        .validate::<ConfigMap, _>("/validate", validate)
        .mutate::<ConfigMap, _>("/mutate", mutate);
    let metrics = free_address();
    let manager = Manager::builder(client.clone())
        .webhooks(server)
        .metrics(metrics)
        .build();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run(async {
        let _ = stopped.await;
    }));
    register(cluster, "webhooks", &ns, address, folder.path());
    let maps: Api<ConfigMap> = Api::namespaced(client, &ns);
    let create = async |name: &str, value: &str| {
        maps.create(&PostParams::default(), &config_map(&ns, name, value))
            .await
    };
    let refused = |result: kube::Result<ConfigMap>| match result {
        Err(kube::Error::Api(status)) => (status.code, status.message),
        other => panic!("not refused: {other:?}"),
    };

    // The API server learns of webhooks a moment later.
    let mut made = create("first-0", "1").await.unwrap();
    for round in 1..200 {
        if made.metadata.labels.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        made = create(&format!("first-{round}"), "1").await.unwrap();
    }
    assert_eq!(made.metadata.labels.unwrap()["seen"], "yes");
    let (code, text) = refused(create("second", "bad").await);
    assert_eq!(code, 422);
    assert!(
        text.ends_with("denied the request: data.value: must not be bad"),
        "{text}"
    );
    let (code, text) = refused(create("third", "panic").await);
    assert!(
        code == 500 && text.contains("the webhook failed: it panicked"),
        "{code} {text}"
    );
    let (_, text) = refused(create("large", &"x".repeat(200_000)).await);
    assert!(
        text.contains("413") || text.contains("100000 bytes"),
        "{text}"
    );

    create("kept", "keep").await.unwrap();
    let denied = maps.delete("kept", &DeleteParams::default()).await;
    assert!(
        matches!(denied, Err(kube::Error::Api(status)) if status.message.ends_with("it is to be kept"))
    );
    let patch = Patch::Merge(json!({"data": {"value": "2"}}));
    maps.patch("kept", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let set = ["annotate", "configmap", "kept", "-n", &ns, "a=b"];
    let warned = cluster.kubectl(&set).unwrap();
    assert!(warned.stderr.contains("Warning: it was 2"), "{warned:?}");
    maps.delete("kept", &DeleteParams::default()).await.unwrap();

    // A new certificate, which only the new configuration accepts.
    issue(folder.path());
    register(cluster, "webhooks", &ns, address, folder.path());
    let mut attempts = 0;
    let made = loop {
        attempts += 1;
        match create(&format!("later-{attempts}"), "1").await {
            Ok(made) => break made,
            Err(error) if attempts > 100 => panic!("{error}"),
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    };
    assert_eq!(made.metadata.labels.unwrap()["seen"], "yes");
    let figures = crate::kubernetes::support::http_get(metrics, "/metrics").await;
    let counted = "controller_runtime_webhook_requests_total{webhook=\"/validate\",code=\"422\"} 1";
    assert!(figures.contains(counted), "{figures}");

    for kind in [
        "mutatingwebhookconfiguration",
        "validatingwebhookconfiguration",
    ] {
        cluster
            .kubectl(&["delete", kind, "webhooks"])
            .unwrap()
            .into_stdout()
            .unwrap();
    }
    drop(stop);
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_is_an_error_that_names_its_file() {
    let folder = tempfile::tempdir().unwrap();
    issue(folder.path());
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("tls.crt"), "nothing").unwrap();
    let server = WebhookServer::new(free_address(), file("tls.crt"), file("tls.key"));
    let manager = Manager::builder(client(KubeApiServer::shared()).await)
        .webhooks(server)
        .build();
    let error = manager.run(std::future::pending()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("tls.crt: it holds no certificate"),
        "{error}"
    );
}

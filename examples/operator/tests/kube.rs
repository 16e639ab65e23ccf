//! The operator on a real API server: the cluster of `KUBECONFIG`, or one that is started for the test.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::discovery::ApiResource;
use namespace_baseline::resource::{NamespaceBaseline, NamespaceBaselineSpec};
use namespace_baseline::{add_controller, add_webhooks};
use serde_json::{Value, json};
use tortie_operator::{Manager, WebhookServer};
use tortie_testkit::KubeApiServer;

/// The webhooks are called only by a server on this machine.
struct Cluster {
    client: kube::Client,
    own: Option<KubeApiServer>,
}

async fn cluster() -> Cluster {
    let given = std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty());
    let own = match &given {
        Some(_) => None,
        None => Some(KubeApiServer::start().expect("a kube-apiserver for the test")),
    };
    let config = match &own {
        None => kube::Config::infer().await.unwrap(),
        Some(server) => {
            let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .unwrap()
        }
    };
    let client = kube::Client::try_from(config).unwrap();
    Cluster { client, own }
}

async fn apply(client: &kube::Client, mut object: Value) {
    let (group, version) = object["apiVersion"]
        .as_str()
        .unwrap()
        .rsplit_once('/')
        .unwrap_or(("", "v1"));
    let kind = object["kind"].as_str().unwrap();
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: object["apiVersion"].as_str().unwrap().to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    object["metadata"]["managedFields"].take();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let params = PatchParams::apply("test").force();
    api.patch(&name, &params, &Patch::Apply(&object))
        .await
        .unwrap();
}

async fn eventually(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !look().await {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "it did not come: {what}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn issue_certificate(folder: &Path) -> Vec<u8> {
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
            "1",
            "-subj",
            "/CN=webhooks",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ])
        .args(["-keyout", &file("tls.key"), "-out", &file("tls.crt")])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    std::fs::read(folder.join("tls.crt")).unwrap()
}

/// The manifests of `config/webhook` with the address of this process instead of the service's.
fn webhook_configurations(port: u16, certificate: Vec<u8>) -> Vec<Value> {
    let bundle = serde_json::to_value(ByteString(certificate)).unwrap();
    let rules = json!([{
        "apiGroups": ["example.tortie.dev"], "apiVersions": ["v1alpha1"], "resources": ["namespacebaselines"],
        "operations": ["CREATE", "UPDATE"],
    }]);
    [
        ("MutatingWebhookConfiguration", "mutate"),
        ("ValidatingWebhookConfiguration", "validate"),
    ]
    .map(|(kind, path)| {
        let url = format!("https://127.0.0.1:{port}/{path}");
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "namespace-baseline-test"},
            "webhooks": [{
                "name": format!("{path}.example.tortie.dev"),
                "clientConfig": {"url": url, "caBundle": bundle},
                "rules": rules, "failurePolicy": "Fail", "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        })
    })
    .to_vec()
}

#[test]
fn the_definition_in_config_is_that_of_the_types() {
    let written = include_str!("../config/crd/definition.json");
    let current = serde_json::to_string_pretty(&NamespaceBaseline::definition().unwrap()).unwrap();
    let hint = "run `cargo run -- crd >config/crd/definition.json`";
    assert_eq!(written.trim_end(), current, "{hint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selected_namespaces_are_protected_as_long_as_they_are_selected() {
    let cluster = cluster().await;
    let client = cluster.client.clone();
    let definition = NamespaceBaseline::definition().unwrap();
    apply(&client, serde_json::to_value(&definition).unwrap()).await;
    let objects: Api<NamespaceBaseline> = Api::all(client.clone());
    eventually("the kind is served", async || {
        objects.list(&Default::default()).await.is_ok()
    })
    .await;

    let folder = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut builder = Manager::builder(client.clone());
    if cluster.own.is_some() {
        let certificate = issue_certificate(folder.path());
        let address = ([127, 0, 0, 1], port).into();
        let files = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
        let [chain, key] = files;
        builder = builder.webhooks(add_webhooks(WebhookServer::new(address, chain, key)));
        for configuration in webhook_configurations(port, certificate) {
            apply(&client, configuration).await;
        }
    }
    let manager = builder.build();
    add_controller(&manager);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(manager.run(async {
        let _ = stopped.await;
    }));

    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("protected-test".to_owned());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let spec = NamespaceBaselineSpec {
        namespace_labels: [("protected-by-test".to_owned(), "yes".to_owned())].into(),
        ..NamespaceBaselineSpec::default()
    };
    let object = NamespaceBaseline::new("test", spec);

    if cluster.own.is_some() {
        let mut wrong = object.clone();
        wrong.metadata.name = Some("wrong".to_owned());
        wrong.spec.directions = vec!["Sideways".to_owned()];
        // The API server learns of webhooks a moment later.
        eventually("the webhook refuses", async || {
            match objects.create(&PostParams::default(), &wrong).await {
                Err(kube::Error::Api(status)) => status.message.contains("`Sideways` is neither"),
                _ => {
                    let _ = objects.delete("wrong", &DeleteParams::default()).await;
                    false
                }
            }
        })
        .await;
    }
    let made = objects
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    if cluster.own.is_some() {
        assert_eq!(
            (made.spec.directions.len(), made.spec.allow_dns),
            (2, Some(true))
        );
    }

    let policies: Api<NetworkPolicy> = Api::namespaced(client.clone(), "protected-test");
    let policy = "namespacebaseline-test";
    let status = async || {
        objects
            .get("test")
            .await
            .unwrap()
            .status
            .unwrap_or_default()
    };
    eventually("a status", async || status().await.conditions.len() == 1).await;
    assert!(
        policies.get_opt(policy).await.unwrap().is_none(),
        "it is not selected"
    );
    let label =
        |value: Value| Patch::Merge(json!({"metadata": {"labels": {"protected-by-test": value}}}));
    let params = PatchParams::default();
    namespaces
        .patch("protected-test", &params, &label(json!("yes")))
        .await
        .unwrap();
    eventually("the policy", async || {
        policies.get_opt(policy).await.unwrap().is_some()
    })
    .await;
    eventually("its status", async || {
        status().await.namespaces == ["protected-test"]
    })
    .await;

    // What is owned is made again, and repaired.
    policies
        .delete(policy, &DeleteParams::default())
        .await
        .unwrap();
    eventually("the policy again", async || {
        policies.get_opt(policy).await.unwrap().is_some()
    })
    .await;
    let open = Patch::Merge(json!({"spec": {"ingress": [{}]}}));
    policies.patch(policy, &params, &open).await.unwrap();
    eventually("the policy repaired", async || {
        let spec = policies.get(policy).await.unwrap().spec.unwrap();
        spec.ingress.is_none_or(|rules| rules.is_empty())
    })
    .await;

    namespaces
        .patch("protected-test", &params, &label(Value::Null))
        .await
        .unwrap();
    eventually("no policy", async || {
        policies.get_opt(policy).await.unwrap().is_none()
    })
    .await;
    namespaces
        .patch("protected-test", &params, &label(json!("yes")))
        .await
        .unwrap();
    eventually("the policy a third time", async || {
        policies.get_opt(policy).await.unwrap().is_some()
    })
    .await;
    objects
        .delete("test", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the object gone", async || {
        objects.get_opt("test").await.unwrap().is_none()
    })
    .await;
    assert!(
        policies.get_opt(policy).await.unwrap().is_none(),
        "nothing is left behind"
    );

    let _ = stop.send(());
    running.await.unwrap().unwrap();
    namespaces
        .delete("protected-test", &DeleteParams::default())
        .await
        .unwrap();
    if cluster.own.is_none() {
        let definitions: Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
            Api::all(client);
        definitions
            .delete(
                "namespacebaselines.example.tortie.dev",
                &DeleteParams::default(),
            )
            .await
            .unwrap();
    }
}

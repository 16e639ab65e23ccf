//! Kinds that others define, and the operator of `examples/operator` on them.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use namespace_baseline::add_controller;
use namespace_baseline::resource::{NamespaceBaseline, NamespaceBaselineSpec};
use serde_json::{Value, json};
use tortie_operator::{LeaderElection, Manager};

use crate::up::server::Up;

const DEFINITION: &str =
    include_str!("../../../../../examples/operator/config/crd/definition.json");

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_operator_reconciles() {
    let up = Up::api_server();
    up.kubectl_with(&["apply", "--filename=-"], DEFINITION);
    let client = up.client().await;
    let leases: Api<Lease> = Api::namespaced(client.clone(), "default");
    let manager = Manager::builder(client.clone());
    let manager = manager.leader_election(LeaderElection::new("default", "baseline"));
    let manager = manager.build();
    add_controller(&manager);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(manager.run(async {
        let _ = stopped.await;
    }));

    let namespaces: Api<Namespace> = Api::all(client.clone());
    up.kubectl(&["create", "namespace", "shop"]);
    let objects: Api<NamespaceBaseline> = Api::all(client.clone());
    let spec = NamespaceBaselineSpec {
        namespace_labels: [("protected".to_owned(), "yes".to_owned())].into(),
        ..NamespaceBaselineSpec::default()
    };
    let object = NamespaceBaseline::new("test", spec);
    objects
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let status = async || {
        objects
            .get("test")
            .await
            .unwrap()
            .status
            .unwrap_or_default()
    };
    eventually("a status", async || status().await.conditions.len() == 1).await;

    let policies: Api<NetworkPolicy> = Api::namespaced(client.clone(), "shop");
    let policy = "namespacebaseline-test";
    let is_there = async || policies.get_opt(policy).await.unwrap().is_some();
    assert!(!is_there().await, "it is not selected");
    let label = Patch::Merge(json!({"metadata": {"labels": {"protected": "yes"}}}));
    let params = PatchParams::default();
    namespaces.patch("shop", &params, &label).await.unwrap();
    eventually("the policy", is_there).await;
    eventually("its status", async || status().await.namespaces == ["shop"]).await;
    policies
        .delete(policy, &DeleteParams::default())
        .await
        .unwrap();
    eventually("the policy again", is_there).await;
    assert!(leases.get_opt("baseline").await.unwrap().is_some());
    objects
        .delete("test", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the object gone", async || {
        objects.get_opt("test").await.unwrap().is_none()
    })
    .await;
    assert!(!is_there().await, "nothing is left behind");
    let _ = stop.send(());
    running.await.unwrap().unwrap();
}

#[test]
fn a_kind_is_there_after_a_restart_and_no_name_is_given_twice() {
    let up = Up::api_server();
    up.kubectl_with(&["apply", "--filename=-"], DEFINITION);
    let object = json!({
        "apiVersion": "example.tortie.dev/v1alpha1", "kind": "NamespaceBaseline",
        "metadata": {"name": "one"}, "spec": {"namespaceLabels": {"a": "b"}},
    });
    up.kubectl_with(&["apply", "--filename=-"], &object.to_string());
    let up = up.kill().start();
    let told = up.kubectl(&["get", "namespacebaselines", "--output=name"]);
    assert_eq!(told, "namespacebaseline.example.tortie.dev/one\n");
    let mut other: Value = serde_json::from_str(DEFINITION).unwrap();
    other["metadata"]["name"] = json!("others.example.tortie.dev");
    other["spec"]["names"]["plural"] = json!("others");
    other["spec"]["names"]["singular"] = json!("other");
    up.kubectl_with(&["create", "--filename=-"], &other.to_string());
    let other = up.json(&["crd", "others.example.tortie.dev"]);
    let condition = &other["status"]["conditions"][0];
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("False"), &json!("KindConflict"))
    );
    up.refusal(&["get", "others.example.tortie.dev"], "");
    // Those who have the right for the kind alone.
    let role = ["create", "clusterrole", "reader", "--verb=get,list"];
    up.kubectl(
        &[
            &role[..],
            &["--resource=namespacebaselines.example.tortie.dev"],
        ]
        .concat(),
    );
}

/// What nobody would call is refused: whoever stored it would count on it.
#[test]
fn webhooks_are_not_taken() {
    let up = Up::api_server();
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "a"}, "webhooks": [],
    });
    let told = up.refusal(&["create", "--filename=-"], &webhook.to_string());
    assert!(
        told.contains("no matches for kind \"ValidatingWebhookConfiguration\""),
        "{told}"
    );
    let mut definition: Value = serde_json::from_str(DEFINITION).unwrap();
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"url": "https://127.0.0.1/"}, "conversionReviewVersions": ["v1"],
    }});
    let told = up.refusal(&["create", "--filename=-"], &definition.to_string());
    assert!(told.contains("calls no webhooks"), "{told}");
    definition["spec"]["conversion"] = json!({"strategy": "None"});
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"] = json!([{"rule": "true"}]);
    let told = up.try_kubectl(&["create", "--filename=-"], &definition.to_string());
    assert!(told.success(), "{}", told.stderr);
    assert!(
        told.stderr.contains("Warning: x-kubernetes-validations"),
        "{}",
        told.stderr
    );
}

//! On a real kube-apiserver, with services and what is behind them, and kinds that are unknown at first.

use std::sync::Arc;

use serde_json::{Value, json};
use tortie_api::crd::{self, Group};
use tortie_store::Store;
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_sync::Config;
use tortie_testkit::KubeApiServer;

use crate::world::{Consumer, World, quick, set};

async fn store(server: &KubeApiServer) -> (Arc<dyn Store>, Config) {
    let config = KubernetesConfig {
        kubeconfig: vec![server.kubeconfig().into()],
        api_group: Some(Group::V3),
        ..KubernetesConfig::default()
    };
    let store = KubernetesStore::connect(&config).await.unwrap();
    let config = Config {
        pace: quick(),
        ..Config::for_agent(Some(store.client().clone()))
    };
    (Arc::new(store), config)
}

fn kubectl(server: &KubeApiServer, args: &[&str]) {
    server.kubectl(args).unwrap().into_stdout().unwrap();
}

fn apply(server: &KubeApiServer, objects: &[Value]) {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string();
    let args = ["apply", "--validate=false", "-f", "-"];
    let applied = server.kubectl_stdin(&args, &list);
    applied.unwrap().into_stdout().unwrap();
}

fn web(address: &str) -> [Value; 3] {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web", "namespace": "default",
            "annotations": { "cni.projectcalico.org/podIP": format!("{address}/32") },
        },
        "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "clusterIP": "10.96.0.80", "ports": [{ "port": 80 }] },
    });
    // The test's API server is older than `v1`.
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1beta1", "kind": "EndpointSlice",
        "metadata": {
            "name": "web-1", "namespace": "default",
            "labels": { "kubernetes.io/service-name": "web" },
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [address] }],
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
    });
    [pod, service, slice]
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_services_and_slices_are_followed_and_missing_kinds_waited_for() {
    let server = KubeApiServer::start().unwrap();
    let (store, config) = store(&server).await;
    apply(&server, &web("10.0.0.5"));
    let mut consumer = Consumer::start(&store, &config);
    consumer.until_in_sync().await;
    consumer.until_like(&*store, &config.kinds).await;
    let told = |world: &World, kind: &str, part: &str| {
        let mut matching = world.matching(kind);
        matching.any(|value| value.to_string().contains(part))
    };
    for (kind, part) in [
        ("workloadEndpoint ", "10.0.0.5"),
        ("service ", "10.96.0.80"),
        ("endpointSlice ", "10.0.0.5"),
        ("endpointSlice ", "8080"),
    ] {
        assert!(told(&consumer.world, kind, part), "{:#?}", consumer.world);
    }

    let [_, _, slice] = web("10.0.0.6");
    apply(&server, &[slice]);
    let is_changed = |this: &Consumer| told(&this.world, "endpointSlice ", "10.0.0.6");
    consumer.until("a changed slice", is_changed).await;
    apply(&server, &crd::manifests(Group::V3));
    let established = ["wait", "crd", "--all", "--for=condition=Established"];
    kubectl(&server, &established);
    store.create(set("late", "192.0.2.0/24")).await.unwrap();
    consumer.until_like(&*store, &config.kinds).await;
    assert!(consumer.world.has("late"));

    kubectl(&server, &["delete", "endpointslice/web-1", "service/web"]);
    let now = "--grace-period=0";
    kubectl(&server, &["delete", "pod/web", "--force", now]);
    let are_gone = |this: &Consumer| !this.world.has("\"web");
    consumer.until("deletions", are_gone).await;
    consumer.until_like(&*store, &config.kinds).await;

    let mut fresh = Consumer::start(&store, &config);
    fresh.until_in_sync().await;
    fresh.world.assert_is(&consumer.world, "a new consumer");
    assert!(told(&fresh.world, "service ", "ClusterIP"));
    let counters = consumer.syncer.counters();
    assert_eq!(counters.errors(), 0, "{counters:?}");
}

//! On a real kube-apiserver, with services and what is behind them, and kinds that are unknown at first.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tortie_agent::inputs::Config;
use tortie_api::crd::{self, Group};
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_store::{Kind, Store};
use tortie_sync::Status;
use tortie_testkit::KubeApiServer;

use crate::datastores::refusing_api::{Lie, RefusingApi};
use crate::datastores::world::{Consumer, World, quick, resource, set};

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
        let is_told = |this: &Consumer| told(&this.world, kind, part);
        consumer.until(part, is_told).await;
    }
    // What decides about packets is not absent only because nobody has heard of it.
    let is_refused = |this: &Consumer| {
        let refusals = this.refusals.join("\n");
        refusals.contains("GlobalNetworkPolicy: list: Kubernetes answers 404")
            && refusals.contains("Tier: list")
            && !refusals.contains("StagedNetworkPolicy")
    };
    consumer.until("missing kinds", is_refused).await;
    assert_ne!(consumer.status, Status::InSync);

    let [_, _, slice] = web("10.0.0.6");
    apply(&server, &[slice]);
    let is_changed = |this: &Consumer| told(&this.world, "endpointSlice ", "10.0.0.6");
    consumer.until("a changed slice", is_changed).await;
    apply(&server, &crd::manifests(Group::V3));
    let established = ["wait", "crd", "--all", "--for=condition=Established"];
    kubectl(&server, &established);
    store.create(set("late", "192.0.2.0/24")).await.unwrap();
    consumer.until_in_sync().await;
    assert_eq!(consumer.refusals, [""; 0]);
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
    let counters = fresh.syncer.counters();
    assert_eq!(counters.errors(), 0, "{counters:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_known_stays_while_the_api_server_denies_all_knowledge_of_it() {
    let server = KubeApiServer::start().unwrap();
    apply(&server, &crd::manifests(Group::V3));
    let established = ["wait", "crd", "--all", "--for=condition=Established"];
    kubectl(&server, &established);
    let (direct, config) = store(&server).await;
    let api = RefusingApi::start(config.cluster.unwrap()).await;
    let config = KubernetesConfig {
        api_endpoint: Some(format!("http://{}", api.address)),
        api_group: Some(Group::V3),
        ..KubernetesConfig::default()
    };
    let store: Arc<dyn Store> = Arc::new(KubernetesStore::connect(&config).await.unwrap());
    let config = config_for(&[
        Kind::GlobalNetworkSet,
        Kind::GlobalNetworkPolicy,
        Kind::StagedGlobalNetworkPolicy,
    ]);
    let spec = json!({"selector": "all()", "types": ["Ingress"]});
    for kind in &config.kinds {
        let object = match kind {
            Kind::GlobalNetworkSet => set("first", "192.0.2.0/24"),
            kind => resource(*kind, "", "default.first", &spec),
        };
        direct.create(object).await.unwrap();
    }
    let mut consumer = Consumer::start(&store, &config);
    consumer.until_in_sync().await;
    let before = consumer.world.clone();
    for (status, part, kind) in [
        (404, "globalnetworksets", "GlobalNetworkSet"),
        (403, "globalnetworkpolicies", "GlobalNetworkPolicy"),
        (404, "/globalnetworkpolicies", "GlobalNetworkPolicy"),
        (404, "stagedglobal", "StagedGlobalNetworkPolicy"),
    ] {
        api.lie(Some(Lie { part, status }));
        let is_refused = |this: &Consumer| this.refusals.iter().any(|line| line.starts_with(kind));
        consumer.until(part, is_refused).await;
        // Long enough for everything to be listed again, in vain.
        let resyncs = consumer.syncer.counters().resyncs();
        let is_listed = |this: &Consumer| this.syncer.counters().resyncs() > resyncs + 3;
        while !is_listed(&consumer) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        api.lie(None);
        consumer
            .until("can be read again", |this| this.refusals.is_empty())
            .await;
        consumer.world.assert_is(&before, part);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_away_for_long_is_waited_for() {
    let server = KubeApiServer::start().unwrap();
    apply(&server, &crd::manifests(Group::V3));
    let established = ["wait", "crd", "--all", "--for=condition=Established"];
    kubectl(&server, &established);
    let (direct, config) = store(&server).await;
    direct.create(set("first", "192.0.2.0/24")).await.unwrap();
    let api = RefusingApi::start(config.cluster.unwrap()).await;
    let through = KubernetesConfig {
        api_endpoint: Some(format!("http://{}", api.address)),
        api_group: Some(Group::V3),
        ..KubernetesConfig::default()
    };
    let store: Arc<dyn Store> = Arc::new(KubernetesStore::connect(&through).await.unwrap());
    let mut config = config_for(&config.kinds);
    config.pace.contact_lost = Duration::from_millis(100);
    let mut consumer = Consumer::start(&store, &config);
    consumer.until_in_sync().await;
    let before = consumer.world.clone();
    api.lie(Some(Lie {
        part: "/",
        status: 503,
    }));
    let is_waiting = |this: &Consumer| this.status == Status::WaitForDatastore;
    consumer.until("contact is lost", is_waiting).await;
    assert_eq!(consumer.refusals, [""; 0]);
    consumer.world.assert_is(&before, "without contact");
    direct
        .create(set("second", "198.51.100.0/24"))
        .await
        .unwrap();
    api.lie(None);
    consumer.until_in_sync().await;
    consumer.until_like(&*direct, &config.kinds).await;
}

fn config_for(kinds: &[Kind]) -> Config {
    Config {
        kinds: kinds.to_vec(),
        pace: quick(),
        ..Config::for_agent(None)
    }
}

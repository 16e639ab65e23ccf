//! The move from the older group of custom resources to the newer one, on a real API server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tortie_api::crd::{self, Group};
use tortie_api::{Kind, Resource};
use tortie_ipam::{AutoAssign, Ipam};
use tortie_migrate::datastore_migration::{self, Settings};
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_store::{Key, Query, Store};
use tortie_testkit::KubeApiServer;

struct Site {
    server: KubeApiServer,
    client: kube::Client,
    v1: Arc<dyn Store>,
    v3: Arc<dyn Store>,
}

impl Site {
    /// A cluster with both groups. The newer one is served by an aggregated API server that does not answer.
    async fn start() -> Self {
        let server = KubeApiServer::start().unwrap();
        let connect = async |group| {
            let config = KubernetesConfig {
                kubeconfig: vec![server.kubeconfig().into()],
                api_group: Some(group),
                ..KubernetesConfig::default()
            };
            KubernetesStore::connect(&config).await.unwrap()
        };
        let v1 = connect(Group::V1).await;
        let v3 = connect(Group::V3).await;
        let site = Self {
            client: v1.client().clone(),
            v1: Arc::new(v1),
            v3: Arc::new(v3),
            server,
        };
        site.apply(&crd::manifests(Group::V1));
        site.apply(&[datastore_migration::definition().unwrap(), aggregated()]);
        site.apply(&crd::manifests(Group::V3));
        site.kubectl("wait crd --all --for=condition=Established --timeout=60s");
        site.kubectl("create namespace shop");
        site.fill().await;
        site
    }

    async fn fill(&self) {
        let fixture = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../cli/tests/it/cli/all-kinds.yaml"
        );
        let text = std::fs::read_to_string(fixture).unwrap();
        let client = tortie_client::Client::new(Arc::clone(&self.v1));
        client.ensure_initialized("v3.30", "k8s").await.unwrap();
        for document in text.split("---\n") {
            let value: Value = serde_saphyr::from_str(document).unwrap();
            let resource = Resource::decode_strict(&value).unwrap();
            client.create(resource).await.unwrap();
        }
        self.apply(&[
            json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node" } }),
        ]);
        let ipam = Ipam::new(Arc::clone(&self.v1));
        for number in 0..20 {
            let request = AutoAssign {
                num4: 1,
                handle: Some(format!("net.{number}")),
                pools4: vec!["10.65.0.0/16".parse().unwrap()],
                ..AutoAssign::on("node")
            };
            ipam.auto_assign(&request).await.unwrap();
        }
    }

    fn apply(&self, objects: &[Value]) {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string();
        let applied = self
            .server
            .kubectl_stdin(&["apply", "--validate=false", "-f", "-"], &list);
        applied.unwrap().into_stdout().unwrap();
    }

    fn kubectl(&self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        self.server.kubectl(&words).unwrap().into_stdout().unwrap()
    }

    fn migrate(&self) -> JoinHandle<()> {
        let mut settings = Settings::new(Arc::clone(&self.v1), Arc::clone(&self.v3), "default");
        settings.poll = Duration::from_millis(300);
        settings.drain = Duration::from_secs(1);
        let mut registry = prometheus_client::registry::Registry::default();
        tokio::spawn(datastore_migration::run(
            self.client.clone(),
            settings,
            &mut registry,
        ))
    }

    fn ask(&self) {
        self.apply(&[json!({
            "apiVersion": "migration.projectcalico.org/v1", "kind": "DatastoreMigration",
            "metadata": { "name": "v1-to-v3" }, "spec": { "type": "APIServerToCRDs" },
        })]);
    }

    async fn wait_for(&self, phase: &str) -> Value {
        let mut found = Value::Null;
        for _ in 0..200 {
            let text = self.kubectl("get datastoremigrations v1-to-v3 -o json");
            found = serde_json::from_str(&text).unwrap();
            if found["status"]["phase"] == phase {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        panic!("not {phase}: {}", found["status"]);
    }

    async fn is_ready(&self, store: &Arc<dyn Store>) -> Option<bool> {
        let key = Key::global(Kind::ClusterInformation, "default");
        match store.get(&key).await.unwrap() {
            Resource::ClusterInformation(information) => information.spec.datastore_ready,
            _ => None,
        }
    }

    fn api_service(&self) -> Value {
        let text = self.kubectl("get apiservices v3.projectcalico.org -o json");
        serde_json::from_str(&text).unwrap()
    }
}

/// What all resources ask for.
async fn specs(store: &Arc<dyn Store>) -> BTreeMap<Key, Value> {
    let mut specs = BTreeMap::new();
    for kind in Kind::ALL
        .iter()
        .filter(|kind| kind.has_crd() && **kind != Kind::ClusterInformation)
    {
        for mut resource in store.list(&Query::all(*kind)).await.unwrap().items {
            let key = Key::of(&resource);
            resource.set_read_defaults();
            let value = serde_json::to_value(&resource).unwrap();
            let labels = value["metadata"]["labels"].clone();
            specs.insert(key, json!([value["spec"], labels]));
        }
    }
    specs
}

fn aggregated() -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": "v3.projectcalico.org", "labels": { "made-by": "hand" } },
        "spec": { "group": "projectcalico.org", "version": "v3", "groupPriorityMinimum": 1500,
            "versionPriority": 200, "insecureSkipTLSVerify": true,
            "service": { "name": "calico-api", "namespace": "default" } },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_comes_to_the_newer_group_and_the_older_one_goes() {
    let site = Site::start().await;
    let before = specs(&site.v1).await;
    assert!(before.len() > 40, "{}", before.len());
    site.ask();
    let controller = site.migrate();
    let migration = site.wait_for("Converged").await;
    assert_eq!(migration["status"]["progress"]["typeProgress"], "21 / 21");
    assert_eq!(
        migration["status"]["progress"]["migrated"],
        json!(before.len())
    );
    assert_eq!(specs(&site.v3).await, before);
    assert_eq!(
        site.is_ready(&site.v1).await,
        Some(false),
        "nobody writes there any more"
    );
    assert_eq!(site.is_ready(&site.v3).await, Some(true));
    let service = site.api_service();
    assert!(
        service["metadata"]["labels"].get("made-by").is_none(),
        "{service}"
    );

    // There is no way back from here: it waits for the components.
    let container = json!({ "name": "c", "image": "x",
        "env": [{ "name": "CALICO_API_GROUP", "value": "projectcalico.org/v3" }] });
    site.apply(&[json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "calico-node", "namespace": "default" },
        "spec": { "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [container] } } } })]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!controller.is_finished());
    let daemon_sets: kube::Api<k8s_openapi::api::apps::v1::DaemonSet> =
        kube::Api::default_namespaced(site.client.clone());
    let status = json!({ "status": { "observedGeneration": 1, "desiredNumberScheduled": 2,
        "updatedNumberScheduled": 2, "currentNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 2 } });
    let patch = kube::api::Patch::Merge(&status);
    let parameters = kube::api::PatchParams::default();
    daemon_sets
        .patch_status("calico-node", &parameters, &patch)
        .await
        .unwrap();
    site.wait_for("Complete").await;
    // It ends, to start anew with the newer group; and once the request is deleted, the older definitions go.
    tokio::time::timeout(Duration::from_mins(1), controller)
        .await
        .unwrap()
        .unwrap();
    let _controller = site.migrate();
    site.kubectl("delete datastoremigrations v1-to-v3 --timeout=60s");
    let mut left = String::new();
    for _ in 0..300 {
        left = site.kubectl("get crd -o name");
        if !left.contains("crd.projectcalico.org") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(!left.contains("crd.projectcalico.org"), "{left}");
    assert_eq!(specs(&site.v3).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_are_told_and_an_abort_restores_everything() {
    let site = Site::start().await;
    let before = specs(&site.v1).await;
    site.ask();
    let controller = site.migrate();
    // As soon as the newer group is served, somebody writes something else there.
    let conflict = json!({ "apiVersion": "projectcalico.org/v3", "kind": "Tier",
        "metadata": { "name": "security" }, "spec": { "order": 7.0 } });
    let conflict = Resource::decode_strict(&conflict).unwrap();
    let mut is_first = false;
    for _ in 0..500 {
        match site.v3.create(conflict.clone()).await {
            Ok(_) => {
                is_first = true;
                break;
            }
            Err(tortie_store::Error::AlreadyExists(_)) => break,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    if is_first {
        let migration = site.wait_for("WaitingForConflictResolution").await;
        let message = "Tier/security: v3 resource exists with different spec";
        assert_eq!(migration["status"]["conditions"][0]["message"], message);
        assert_eq!(site.is_ready(&site.v1).await, Some(false));
    }
    // Stopped anywhere, and undone by another.
    controller.abort();
    let _controller = site.migrate();
    site.kubectl("delete datastoremigrations v1-to-v3 --timeout=60s");
    assert_eq!(site.is_ready(&site.v1).await, Some(true));
    assert_eq!(specs(&site.v1).await, before);
    let service = site.api_service();
    assert_eq!(service["metadata"]["labels"]["made-by"], "hand");
    assert_eq!(service["spec"]["service"]["name"], "calico-api");
    // Without the aggregated server, the newer group shows what is left: what somebody else wrote.
    site.kubectl("delete apiservices v3.projectcalico.org");
    let mut left = None;
    for _ in 0..200 {
        if let Ok(list) = site.v3.list(&Query::all(Kind::Tier)).await {
            left = Some(list.items.len());
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(left, Some(usize::from(is_first)));
    assert!(specs(&site.v3).await.len() <= 1);
}

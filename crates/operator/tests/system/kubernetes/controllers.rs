//! Controllers: what the builder follows, and what workers do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, PodTemplate, Secret};
use kube::Resource as _;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::oneshot;
use tortie_operator::{
    Action, Backoff, CacheOptions, Controller, Failure, Manager, ObjectKey, Reconciler,
    labels_changed,
};
use tortie_testkit::KubeApiServer;

use crate::kubernetes::support::{client, config_map, eventually, namespace};

/// Counts how often each key came, and answers as it is told.
#[derive(Clone, Default)]
struct Counter {
    counts: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Counter {
    fn of(&self, name: &str) -> usize {
        self.counts
            .lock()
            .unwrap()
            .get(name)
            .copied()
            .unwrap_or_default()
    }
}

impl Reconciler for Counter {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        let count = {
            let mut counts = self.counts.lock().unwrap();
            let count = counts.entry(key.name.to_string()).or_default();
            *count += 1;
            *count
        };
        match key.name.as_ref() {
            "fails-twice" if count <= 2 => Err(Failure::retry("not yet")),
            "fails-for-good" => Err(Failure::never("never")),
            "always-fails" => Err(Failure::retry("still not")),
            "panics-once" if count == 1 => panic!("as expected"),
            "again" if count < 3 => Ok(Action::After(Duration::from_millis(10))),
            _ => Ok(Action::Done),
        }
    }
}

fn only<K>(namespace: &str) -> CacheOptions<K> {
    CacheOptions {
        namespace: Some(namespace.to_owned()),
        ..CacheOptions::default()
    }
}

/// Runs a manager until the sender is used or dropped.
fn start(
    manager: Manager,
) -> (
    oneshot::Sender<()>,
    tokio::task::JoinHandle<tortie_operator::Result<()>>,
) {
    let (stop, stopped) = oneshot::channel::<()>();
    let run = manager.run(async {
        let _ = stopped.await;
    });
    (stop, tokio::spawn(run))
}

#[tokio::test]
async fn changes_of_the_object_of_what_it_owns_and_of_what_is_mapped_reach_the_reconciler() {
    let client = client(KubeApiServer::shared()).await;
    let ns = namespace(&client, "controller-builder").await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &ns);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &ns);
    let templates: Api<PodTemplate> = Api::namespaced(client.clone(), &ns);
    let owner = maps
        .create(&PostParams::default(), &config_map(&ns, "owner", "1"))
        .await
        .unwrap();

    let manager = Manager::builder(client).build();
    let counter = Counter::default();
    let (extra, extras) = futures::channel::mpsc::unbounded();
    let controller = Controller::builder("builder", &manager)
        .for_with::<ConfigMap>(only(&ns))
        .when(labels_changed())
        .owns_with::<Secret>(only(&ns))
        .watches_with::<PodTemplate>(only(&ns), |template| {
            let target = template
                .metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get("target"));
            target
                .map(|target| ObjectKey::cluster(target.as_str()))
                .into_iter()
                .collect()
        })
        .source(extras)
        .workers(3)
        .reconciler(counter.clone());
    manager.add(controller);
    let (stop, running) = start(manager);
    eventually(1, || counter.of("owner")).await;

    // The predicate: data do not count, labels do.
    let patch = |value| Patch::Merge(value);
    let params = PatchParams::default();
    maps.patch("owner", &params, &patch(json!({"data": {"value": "2"}})))
        .await
        .unwrap();
    maps.patch(
        "owner",
        &params,
        &patch(json!({"metadata": {"labels": {"a": "b"}}})),
    )
    .await
    .unwrap();
    eventually(2, || counter.of("owner")).await;

    // What it owns, and what another owns.
    let mut secret = Secret::default();
    secret.metadata.name = Some("owned".to_owned());
    secret.metadata.owner_references = Some(vec![owner.controller_owner_ref(&()).unwrap()]);
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    eventually(3, || counter.of("owner")).await;
    let mut foreign = secret.clone();
    foreign.metadata.name = Some("foreign".to_owned());
    foreign.metadata.owner_references.as_mut().unwrap()[0].kind = "Secret".to_owned();
    secrets
        .create(&PostParams::default(), &foreign)
        .await
        .unwrap();
    // The owner of before is told as well as that of now.
    secrets
        .patch(
            "owned",
            &params,
            &patch(json!({"metadata": {"ownerReferences": null}})),
        )
        .await
        .unwrap();
    eventually(4, || counter.of("owner")).await;

    // What is mapped, and keys from elsewhere.
    let mut template = PodTemplate::default();
    template.metadata.name = Some("template".to_owned());
    template.metadata.labels = Some([("target".to_owned(), "mapped".to_owned())].into());
    template.template = Some(
        serde_json::from_value(json!({
            "spec": {"containers": [{"name": "a", "image": "b"}]}
        }))
        .unwrap(),
    );
    templates
        .create(&PostParams::default(), &template)
        .await
        .unwrap();
    eventually(1, || counter.of("mapped")).await;
    extra
        .unbounded_send(ObjectKey::cluster("from-elsewhere"))
        .unwrap();
    eventually(1, || counter.of("from-elsewhere")).await;

    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(counter.of("owner"), 4, "nothing else led to it");
    drop(stop);
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn failures_are_tried_again_as_they_say() {
    let client = client(KubeApiServer::shared()).await;
    let ns = namespace(&client, "controller-failures").await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &ns);
    for name in [
        "fine",
        "fails-twice",
        "fails-for-good",
        "always-fails",
        "panics-once",
        "again",
    ] {
        maps.create(&PostParams::default(), &config_map(&ns, name, "1"))
            .await
            .unwrap();
    }
    let manager = Manager::builder(client).build();
    let counter = Counter::default();
    let controller = Controller::builder("failures", &manager)
        .for_with::<ConfigMap>(only(&ns))
        .backoff(Backoff {
            first: Duration::from_millis(1),
            most: Duration::from_millis(20),
            jitter: 0.1,
        })
        .max_retries(4)
        .reconciler(counter.clone());
    manager.add(controller);
    let (stop, running) = start(manager);
    for (name, count) in [
        ("fine", 1),
        ("fails-twice", 3),
        ("fails-for-good", 1),
        ("always-fails", 5),
        ("panics-once", 2),
        ("again", 3),
    ] {
        eventually(count, || counter.of(name)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(counter.of("always-fails"), 5, "given up after four retries");
    assert_eq!(counter.of("fails-for-good"), 1);
    drop(stop);
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_resync_brings_every_key_again() {
    let client = client(KubeApiServer::shared()).await;
    let ns = namespace(&client, "controller-resync").await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &ns);
    maps.create(&PostParams::default(), &config_map(&ns, "a", "1"))
        .await
        .unwrap();
    let manager = Manager::builder(client).build();
    let counter = Counter::default();
    let controller = Controller::builder("resync", &manager)
        .for_with::<ConfigMap>(only(&ns))
        .resync(Duration::from_millis(100))
        .reconciler(counter.clone());
    manager.add(controller);
    let (_stop, _running) = start(manager);
    eventually(true, || counter.of("a") >= 4).await;
}

#[tokio::test]
async fn to_own_without_being_for_a_kind_is_an_error() {
    let manager = Manager::builder(client(KubeApiServer::shared()).await).build();
    let controller = Controller::builder("orphan", &manager)
        .owns::<Secret>()
        .reconciler(Counter::default());
    manager.add(controller);
    let error = manager.run(std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("`orphan`"), "{error}");
}

/// Watches of a kind that the API server has, as it counts them itself.
fn watches(cluster: &KubeApiServer, resource: &str) -> usize {
    let metrics = cluster
        .kubectl(&["get", "--raw=/metrics"])
        .unwrap()
        .into_stdout()
        .unwrap();
    let resource = format!("resource=\"{resource}\"");
    metrics
        .lines()
        .filter(|line| line.starts_with("apiserver_longrunning_gauge{"))
        .filter(|line| line.contains(&resource) && line.contains("verb=\"WATCH\""))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
        .sum()
}

/// Adds up what ten controllers see.
struct Seen(Arc<AtomicUsize>);

impl Reconciler for Seen {
    type Key = ObjectKey;

    async fn reconcile(&self, _: &ObjectKey) -> Result<Action, Failure> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Action::Done)
    }
}

#[tokio::test]
async fn ten_controllers_of_a_kind_cost_one_watch() {
    let cluster = KubeApiServer::start().unwrap();
    let client = client(&cluster).await;
    let maps: Api<PodTemplate> = Api::namespaced(client.clone(), "default");
    let before = watches(&cluster, "podtemplates");
    let manager = Manager::builder(client).build();
    let seen = Arc::new(AtomicUsize::new(0));
    for number in 0..10 {
        let controller = Controller::builder(format!("number-{number}"), &manager)
            .for_::<PodTemplate>()
            .reconciler(Seen(Arc::clone(&seen)));
        manager.add(controller);
    }
    let (stop, running) = start(manager);
    let template = json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "a"},
        "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}},
    });
    let template: PodTemplate = serde_json::from_value(template).unwrap();
    maps.create(&PostParams::default(), &template)
        .await
        .unwrap();
    eventually(10, || seen.load(Ordering::Relaxed)).await;
    assert_eq!(watches(&cluster, "podtemplates") - before, 1);
    drop(stop);
    running.await.unwrap().unwrap();
    eventually(before, || watches(&cluster, "podtemplates")).await;
}

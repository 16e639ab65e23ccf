//! Objects of a real kube-apiserver, some of which cannot be read, and a list that takes too long.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::sync::mpsc;
use tortie_sync::kubernetes::{Endpoint, KubernetesSource, Selection, item};
use tortie_sync::{Change, Counters, Follower, Keeper, Name, Pace, State, Status};
use tortie_testkit::KubeApiServer;

/// Far beyond what anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

const NAMESPACE: &str = "followed";

/// What is told of each object: its number, or that it has none.
type World = BTreeMap<String, Result<u32, ()>>;

/// Adds up what it is told, and tells that after each list and change.
struct Adder {
    world: World,
    unseen: Vec<String>,
    worlds: mpsc::UnboundedSender<World>,
    /// Is done once, before the first part of a list is taken.
    at_first_part: Option<Box<dyn FnOnce() + Send>>,
}

#[async_trait]
impl Keeper<u32> for Adder {
    fn is_empty(&self) -> bool {
        self.world.is_empty()
    }

    fn has(&self, name: &Name) -> bool {
        self.world.contains_key(name.name())
    }

    async fn take(&mut self, changes: Vec<Change<u32>>, status: Status) -> usize {
        if let Some(what) = self.at_first_part.take() {
            tokio::task::spawn_blocking(what).await.unwrap();
        }
        let count = changes.len();
        for change in changes {
            let (name, state) = match change {
                Change::Set(item) => (item.name, item.state),
                Change::Remove(name) => (name, State::Absent),
            };
            assert_eq!(name.namespace(), NAMESPACE);
            let name = name.name().to_owned();
            self.unseen.retain(|unseen| *unseen != name);
            match state {
                State::Present(number) => self.world.insert(name, Ok(number)),
                State::Unreadable(..) => self.world.insert(name, Err(())),
                State::Absent => self.world.remove(&name),
            };
        }
        if status == Status::InSync {
            let _ = self.worlds.send(self.world.clone());
        }
        count
    }

    fn begin_list(&mut self) {
        self.unseen = self.world.keys().cloned().collect();
    }

    async fn end_list(&mut self) -> usize {
        for unseen in &self.unseen {
            self.world.remove(unseen);
        }
        let _ = self.worlds.send(self.world.clone());
        self.unseen.len()
    }
}

struct Cluster {
    server: Arc<KubeApiServer>,
    client: kube::Client,
}

impl Cluster {
    async fn start() -> Self {
        let server = KubeApiServer::start().unwrap();
        let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let client = kube::Client::try_from(config.unwrap()).unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(NAMESPACE.to_owned());
        let namespaces = Api::all(client.clone());
        let made = namespaces.create(&PostParams::default(), &namespace).await;
        made.unwrap();
        Self {
            server: Arc::new(server),
            client,
        }
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    async fn write(&self, name: &str, number: &str) {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"followed": "yes"}},
            "data": {"number": number},
        });
        let params = PatchParams::apply("test").force();
        self.maps()
            .patch(name, &params, &Patch::Apply(&map))
            .await
            .unwrap();
    }

    /// The numbers in maps, two maps at a time, of the first of these versions that is served.
    fn numbers(&self, versions: &[&'static str]) -> KubernetesSource<u32> {
        let endpoint = |base: &&str| Endpoint::new(*base, "configmaps", true);
        let endpoints = versions.iter().map(endpoint).collect();
        let selection = Selection {
            namespace: NAMESPACE.to_owned(),
            labels: "followed=yes".to_owned(),
            ..Selection::default()
        };
        KubernetesSource::new(self.client.clone(), endpoints, |object| {
            let map: ConfigMap = serde_json::from_str(object)?;
            let number = map.data.unwrap_or_default().remove("number");
            let number = serde_json::from_str(&number.unwrap_or_default())?;
            Ok(item(&map.metadata, number))
        })
        .selecting(selection)
        .in_pages_of(2)
    }
}

fn follow(
    source: KubernetesSource<u32>,
    at_first_part: Option<Box<dyn FnOnce() + Send>>,
) -> (mpsc::UnboundedReceiver<World>, Arc<Counters>) {
    let (worlds, told) = mpsc::unbounded_channel();
    let adder = Adder {
        world: World::new(),
        unseen: Vec::new(),
        worlds,
        at_first_part,
    };
    let counters = Arc::<Counters>::default();
    let follower = Follower::new("maps".to_owned(), Arc::new(source), adder, Pace::default());
    tokio::spawn(follower.counting(Arc::clone(&counters)).run());
    (told, counters)
}

async fn next(told: &mut mpsc::UnboundedReceiver<World>) -> World {
    let world = tokio::time::timeout(PATIENCE, told.recv()).await;
    world.unwrap().unwrap()
}

fn world<const N: usize>(numbers: [(&str, Result<u32, ()>); N]) -> World {
    let numbers = numbers.into_iter();
    numbers
        .map(|(name, number)| (name.to_owned(), number))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_told_beside_the_others() {
    let cluster = Cluster::start().await;
    for (name, number) in [("a", "1"), ("b", "none"), ("c", "3")] {
        cluster.write(name, number).await;
    }
    // The better version is one that this server does not know.
    let source = cluster.numbers(&["/apis/core.example.org/v2", "/api/v1"]);
    let (mut told, counters) = follow(source, None);
    let listed = world([("a", Ok(1)), ("b", Err(())), ("c", Ok(3))]);
    assert_eq!(next(&mut told).await, listed);
    for (name, number, expected) in [("c", "none", Err(())), ("d", "4", Ok(4)), ("b", "2", Ok(2))] {
        cluster.write(name, number).await;
        assert_eq!(next(&mut told).await[name], expected);
    }
    let gone = DeleteParams::default();
    cluster.maps().delete("c", &gone).await.unwrap();
    let left = world([("a", Ok(1)), ("b", Ok(2)), ("d", Ok(4))]);
    assert_eq!(next(&mut told).await, left);
    // What ceases to be selected is gone as well.
    let label = Patch::Merge(json!({"metadata": {"labels": {"followed": "no"}}}));
    let params = PatchParams::default();
    cluster.maps().patch("d", &params, &label).await.unwrap();
    let left = world([("a", Ok(1)), ("b", Ok(2))]);
    assert_eq!(next(&mut told).await, left);
    assert_eq!((counters.resyncs(), counters.errors()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_whose_revision_is_forgotten_before_its_last_page_is_read_at_once() {
    let cluster = Cluster::start().await;
    for name in ["a", "b", "c", "d", "e"] {
        cluster.write(name, "1").await;
    }
    let server = Arc::clone(&cluster.server);
    let forget = move || {
        let etcd = server.etcd();
        etcd.etcdctl(&["put", "/anything", "new"]).unwrap();
        let newest = etcd.etcdctl(&["get", "/anything", "-w", "json"]).unwrap();
        let newest: serde_json::Value = serde_json::from_str(&newest).unwrap();
        let revision = newest["header"]["revision"].as_i64().unwrap();
        etcd.compact(revision).unwrap();
    };
    let (mut told, counters) = follow(cluster.numbers(&["/api/v1"]), Some(Box::new(forget)));
    let all = ["a", "b", "c", "d", "e"].map(|name| (name, Ok(1)));
    assert_eq!(next(&mut told).await, world(all));
    assert_eq!((counters.resyncs(), counters.errors()), (2, 0));
    cluster.write("e", "2").await;
    assert_eq!(next(&mut told).await["e"], Ok(2));
}

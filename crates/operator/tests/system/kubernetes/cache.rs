//! Caches: what they hold, across lost watches, and what they tell.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tortie_operator::{Cache, CacheOptions, Change, Custom, CustomKind, ObjectKey, trimmed};
use tortie_testkit::KubeApiServer;

use crate::kubernetes::support::{client, config_map, eventually, namespace, value_of};

trimmed! {
    /// The data of a config map.
    struct Data: ConfigMap {
        data: std::collections::BTreeMap<Box<str>, Box<str>>,
    }
}

fn options<K>(namespace: &str) -> CacheOptions<K> {
    CacheOptions {
        namespace: Some(namespace.to_owned()),
        page_size: 2,
        ..CacheOptions::default()
    }
}

#[tokio::test]
async fn a_cache_follows_what_is_made_changed_and_deleted() {
    let client = client(KubeApiServer::shared()).await;
    let ns = namespace(&client, "cache-follows").await;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &ns);
    for name in ["a", "b", "c", "d", "e"] {
        api.create(&PostParams::default(), &config_map(&ns, name, "1"))
            .await
            .unwrap();
    }
    let cache = Cache::<ConfigMap>::start(client.clone(), options(&ns));
    cache.wait_synced().await;
    assert_eq!(cache.len(), 5, "all pages of two are there");
    let first = cache.get(&ObjectKey::new(ns.as_str(), "a")).unwrap();
    assert_eq!(
        first.metadata.managed_fields, None,
        "what nobody needs is trimmed"
    );

    let mut told = cache.subscribe();
    for name in ["a", "b", "c", "d", "e"] {
        let event = told.next().await.unwrap();
        assert_eq!(event.key.name.as_ref(), name);
        assert!(event.before.is_none());
    }
    let patch = Patch::Merge(json!({"data": {"value": "2"}}));
    api.patch("b", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let event = told.next().await.unwrap();
    assert_eq!(value_of(event.before.as_ref().unwrap()), "1");
    assert_eq!(value_of(event.after().unwrap()), "2");
    let cached = cache.get(&event.key).map(|map| value_of(&map));
    assert_eq!(
        cached.as_deref(),
        Some("2"),
        "who was told finds it in the cache"
    );

    api.delete("b", &DeleteParams::default()).await.unwrap();
    let event = told.next().await.unwrap();
    assert!(matches!(event.change, Change::Deleted(last) if value_of(&last) == "2"));
    assert_eq!(cache.get(&event.key), None);
}

#[tokio::test]
async fn a_trimmed_type_holds_its_fields_and_its_owner() {
    let client = client(KubeApiServer::shared()).await;
    let ns = namespace(&client, "cache-trimmed").await;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &ns);
    let mut map = config_map(&ns, "a", "1");
    map.metadata.labels = Some(
        [
            ("z".to_owned(), "1".to_owned()),
            ("a".to_owned(), "2".to_owned()),
        ]
        .into(),
    );
    map.metadata.owner_references = Some(serde_json::from_value(json!([
        {"apiVersion": "v1", "kind": "Secret", "name": "no", "uid": "1"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "yes", "uid": "2", "controller": true},
    ])).unwrap());
    api.create(&PostParams::default(), &map).await.unwrap();
    let cache = Cache::<Data>::start(client, options(&ns));
    cache.wait_synced().await;
    let kept = cache.get(&ObjectKey::new(ns.as_str(), "a")).unwrap();
    assert_eq!(kept.data.get("value").map(AsRef::as_ref), Some("1"));
    assert_eq!(kept.metadata.labels.get("a"), Some("2"));
    assert_eq!(kept.metadata.labels.get("z"), Some("1"));
    assert_eq!(kept.metadata.labels.get("b"), None);
    let owner = kept.metadata.controller.as_ref().unwrap().as_owner();
    assert_eq!(
        (owner.api_version, owner.kind, owner.name),
        ("apps/v1", "Deployment", "yes")
    );
}

/// A type that understands only some of the objects that are there.
#[derive(Clone, Debug, serde::Deserialize)]
struct Numbers {
    metadata: tortie_operator::Meta,
    data: NumbersData,
}

#[derive(Clone, Debug, serde::Deserialize)]
struct NumbersData {
    value: Number,
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(try_from = "String")]
struct Number(u32);

impl TryFrom<String> for Number {
    type Error = std::num::ParseIntError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

impl tortie_operator::Object for Numbers {
    type Kind = ConfigMap;
    fn name(&self) -> &str {
        &self.metadata.name
    }
    fn namespace(&self) -> Option<&str> {
        self.metadata.namespace.as_deref()
    }
    fn version(&self) -> &str {
        &self.metadata.resource_version
    }
    fn generation(&self) -> Option<i64> {
        None
    }
    fn is_deleting(&self) -> bool {
        false
    }
    fn has_labels_of(&self, _: &Self) -> bool {
        true
    }
    fn has_annotations_of(&self, _: &Self) -> bool {
        true
    }
    fn controller(&self) -> Option<tortie_operator::Owner<'_>> {
        None
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_decoded_counts_as_absent_and_holds_up_nobody() {
    let client = client(KubeApiServer::shared()).await;
    let ns = namespace(&client, "cache-broken").await;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &ns);
    let write = async |name: &str, value: &str| {
        let map = config_map(&ns, name, value);
        let params = PatchParams::apply("test").force();
        api.patch(name, &params, &Patch::Apply(&map)).await.unwrap();
    };
    write("good", "1").await;
    let cache = Cache::<Numbers>::start(client, options(&ns));
    let seen = || {
        cache
            .list()
            .iter()
            .map(|n| (n.metadata.name.to_string(), n.data.value.0))
            .collect::<Vec<_>>()
    };
    let pair = |name: &str, value| (name.to_owned(), value);
    eventually(vec![pair("good", 1)], seen).await;
    // First in a watch, then in a list.
    write("bad", "none").await;
    write("later", "2").await;
    eventually(vec![pair("good", 1), pair("later", 2)], seen).await;
    write("good", "none").await;
    write("bad", "3").await;
    eventually(vec![pair("bad", 3), pair("later", 2)], seen).await;
}

/// What a gate should be, and is.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct GateSpec {
    open: bool,
}

impl CustomKind for GateSpec {
    const GROUP: &'static str = "late.example.org";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Gate";
    const PLURAL: &'static str = "gates";
    type Scope = k8s_openapi::ClusterResourceScope;
    type Status = GateSpec;
}

#[tokio::test]
async fn a_kind_that_is_not_served_yet_is_waited_for_and_never_taken_for_empty() {
    let client = client(KubeApiServer::shared()).await;
    let cache = Cache::<Custom<GateSpec>>::start(client.clone(), CacheOptions::default());
    let synced = tokio::time::timeout(Duration::from_millis(500), cache.wait_synced());
    assert!(synced.await.is_err());

    let definitions = Api::all(client.clone());
    let definition = Custom::<GateSpec>::definition().unwrap();
    let params = PostParams::default();
    definitions.create(&params, &definition).await.unwrap();
    cache.wait_synced().await;
    let gate = Custom::new("front", GateSpec { open: true });
    Api::all(client).create(&params, &gate).await.unwrap();
    let is_open = || {
        let gate = cache.get(&ObjectKey::cluster("front"));
        gate.map(|gate| gate.spec.open)
    };
    eventually(Some(true), is_open).await;
}

/// The API server is away, and when it is back it has forgotten where the watch was.
#[tokio::test]
async fn what_was_missed_while_the_server_was_away_is_told_once() {
    let cluster = KubeApiServer::start().unwrap();
    let client = client(&cluster).await;
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let account = |name: &str| {
        let mut account = ServiceAccount::default();
        account.metadata.name = Some(name.to_owned());
        account
    };
    for name in ["stays", "changes", "goes"] {
        api.create(&PostParams::default(), &account(name))
            .await
            .unwrap();
    }
    let cache = Cache::<ServiceAccount>::start(client.clone(), options("default"));
    cache.wait_synced().await;
    let mut told = cache.subscribe();
    for _ in 0..3 {
        told.next().await.unwrap();
    }

    // A second server on the same etcd would see the changes as well; killing it and changing etcd is what is at hand.
    cluster.kill().unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(cache.len(), 3, "a cache without a server keeps what it has");
    let etcd = cluster.etcd();
    etcd.etcdctl(&["del", "/registry/serviceaccounts/default/goes"])
        .unwrap();
    let revision = etcd
        .etcdctl(&[
            "get",
            "/registry/serviceaccounts/default/stays",
            "-w",
            "json",
        ])
        .unwrap();
    let revision: serde_json::Value = serde_json::from_str(&revision).unwrap();
    etcd.compact(revision["header"]["revision"].as_i64().unwrap())
        .unwrap();
    cluster.start_again().unwrap();

    let patch = Patch::Merge(json!({"metadata": {"labels": {"new": "yes"}}}));
    api.patch("changes", &PatchParams::default(), &patch)
        .await
        .unwrap();
    api.create(&PostParams::default(), &account("comes"))
        .await
        .unwrap();
    let mut changes = Vec::new();
    for _ in 0..3 {
        let event = tokio::time::timeout(Duration::from_secs(40), told.next())
            .await
            .unwrap()
            .unwrap();
        let what = if event.after().is_some() {
            "is there"
        } else {
            "is gone"
        };
        changes.push(format!("{} {what}", event.key.name));
    }
    changes.sort();
    assert_eq!(
        changes,
        ["changes is there", "comes is there", "goes is gone"]
    );
    assert_eq!(cache.len(), 3);

    // The watch works again, without another list: nothing else is told.
    api.delete("comes", &DeleteParams::default()).await.unwrap();
    let event = tokio::time::timeout(Duration::from_secs(40), told.next())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(event.key.name.as_ref(), "comes");
    assert!(told.try_next().is_none());
}

#[tokio::test]
async fn a_slow_subscriber_gets_the_newest_state_only() {
    let client = client(KubeApiServer::shared()).await;
    let ns = namespace(&client, "cache-slow").await;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &ns);
    let cache = Cache::<ConfigMap>::start(client, options(&ns));
    cache.wait_synced().await;
    let mut slow = cache.subscribe();
    api.create(&PostParams::default(), &config_map(&ns, "a", "0"))
        .await
        .unwrap();
    for round in 1..=50 {
        let patch = Patch::Merge(json!({"data": {"value": round.to_string()}}));
        api.patch("a", &PatchParams::default(), &patch)
            .await
            .unwrap();
        let passing = format!("passing-{round}");
        api.create(&PostParams::default(), &config_map(&ns, &passing, ""))
            .await
            .unwrap();
        api.delete(&passing, &DeleteParams::default())
            .await
            .unwrap();
    }
    let key = ObjectKey::new(ns.as_str(), "a");
    eventually(Some("50".to_owned()), || {
        cache.get(&key).map(|map| value_of(&map))
    })
    .await;
    eventually(1, || cache.len()).await;
    let event = slow.next().await.unwrap();
    assert_eq!(
        (event.key.name.as_ref(), value_of(event.after().unwrap())),
        ("a", "50".to_owned())
    );
    assert!(
        slow.try_next().is_none(),
        "one event for fifty changes, none for what came and went"
    );
}

//! The etcd driver on a real etcd: the contract, that keys and values are Calico's, and connections.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch::{self, Sender};
use tortie_store::etcd::{EtcdConfig, EtcdStore, Pem};
use tortie_store::{
    Change, Error, Key, Kind, Precondition, Query, Resource, Revision, Store, Watch,
};
use tortie_store_contract::Subject;
use tortie_testkit::{Etcd, EtcdConfig as ServerConfig, Tls};

const PATIENCE: Duration = Duration::from_secs(30);

const V3: &str = "/calico/resources/v3/projectcalico.org";

async fn setup(case: &str) -> (Subject, ()) {
    let bare = &[
        Kind::IpamBlock,
        Kind::BlockAffinity,
        Kind::IpamHandle,
        Kind::IpamConfiguration,
    ];
    (
        Subject {
            bare,
            ..Subject::new(shared().await, case)
        },
        (),
    )
}

mod contract {
    tortie_store_contract::store_contract!(super::setup);
}

async fn shared() -> EtcdStore {
    EtcdStore::connect(&EtcdConfig::new([Etcd::shared().endpoint()]))
        .await
        .unwrap()
}

fn resource(kind: Kind, metadata: &Value, spec: &Value) -> Resource {
    let value = json!({ "metadata": metadata, "spec": spec });
    Resource::decode_stored(kind, &value).unwrap()
}

fn put(path: &str, value: &str) {
    Etcd::shared().etcdctl(&["put", path, value]).unwrap();
}

/// The value of a path, as `etcdctl` sees it.
fn stored(path: &str) -> Value {
    let text = Etcd::shared()
        .etcdctl(&["get", "--print-value-only", path])
        .unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {text:?}: {error}"))
}

async fn next(watch: &mut Watch) -> Change {
    loop {
        let event = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
        match event.unwrap().unwrap().change {
            Change::Bookmark => {}
            change => return change,
        }
    }
}

async fn next_name(watch: &mut Watch) -> String {
    match next(watch).await {
        Change::Put(resource) => resource.metadata().name.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn keys_and_values_are_those_of_calico() {
    let store = shared().await;
    let check = async |resource: Resource, path: &str, expected: Value| {
        store.create(resource).await.unwrap();
        assert_eq!(stored(path), expected);
    };
    let metadata = json!({ "name": "calico-p", "namespace": "ns", "labels": { "a": "b" }, "resourceVersion": "7" });
    check(
        resource(
            Kind::NetworkPolicy,
            &metadata,
            &json!({ "selector": "all()" }),
        ),
        &format!("{V3}/networkpolicies/ns/calico-p"),
        json!({
            "apiVersion": "projectcalico.org/v3",
            "kind": "NetworkPolicy",
            "metadata": {
                "name": "calico-p", "namespace": "ns", "labels": { "a": "b" },
                "annotations": { "projectcalico.org/metadata": "{\"name\":\"calico-p\"}" },
            },
            "spec": { "selector": "all()" },
        }),
    )
    .await;
    check(
        resource(
            Kind::Tier,
            &json!({ "name": "calico-t" }),
            &json!({ "order": 5 }),
        ),
        &format!("{V3}/tiers/calico-t"),
        json!({
            "apiVersion": "projectcalico.org/v3", "kind": "Tier",
            "metadata": { "name": "calico-t" }, "spec": { "order": 5 },
        }),
    )
    .await;
    let block = json!({ "cidr": "10.9.0.0/31", "allocations": [null, null], "unallocated": [0, 1], "sequenceNumber": 3 });
    check(
        resource(Kind::IpamBlock, &json!({ "name": "10-9-0-0-31" }), &block),
        "/calico/ipam/v2/assignment/ipv4/block/10.9.0.0-31",
        json!({
            "cidr": "10.9.0.0/31", "affinity": null, "allocations": [null, null], "unallocated": [0, 1],
            "attributes": [], "sequenceNumber": 3, "sequenceNumberForAllocation": {}, "deleted": false,
        }),
    )
    .await;
    let affinity = json!({ "state": "pending", "node": "n-1", "type": "virtual", "cidr": "fd09::/126", "deleted": false });
    check(
        resource(
            Kind::BlockAffinity,
            &json!({ "name": "n-1-fd09---126" }),
            &affinity,
        ),
        "/calico/ipam/v2/virtual/n-1/ipv6/block/fd09::-126",
        json!({ "state": "pending", "deleted": false }),
    )
    .await;
    let handle = json!({ "handleID": "net.Abc", "block": { "10.9.0.0/31": 1 }, "deleted": false });
    check(
        resource(Kind::IpamHandle, &json!({ "name": "net.Abc" }), &handle),
        "/calico/ipam/v2/handle/net.Abc",
        json!({ "block": { "10.9.0.0/31": 1 }, "deleted": false }),
    )
    .await;
}

#[tokio::test]
async fn ipam_objects_are_found_by_their_names() {
    let store = shared().await;
    let long = "n".repeat(250);
    put(
        "/calico/ipam/v2/handle/vxlan-tunnel-addr-Node-A",
        r#"{"block":{},"deleted":false}"#,
    );
    put(
        "/calico/ipam/v2/virtual/some-node/ipv6/block/fd08::40-122",
        r#"{"state":"confirmed"}"#,
    );
    put(
        &format!("/calico/ipam/v2/host/{long}/ipv4/block/10.8.0.0-26"),
        "",
    );
    let all = store
        .list(&Query::all(Kind::BlockAffinity))
        .await
        .unwrap()
        .items;
    let long = all
        .iter()
        .map(|item| &item.metadata().name)
        .find(|name| name.len() == 252)
        .unwrap();
    for (kind, name) in [
        (Kind::IpamHandle, "vxlan-tunnel-addr-Node-A"),
        (Kind::BlockAffinity, "some-node-fd08--40-122"),
        (Kind::BlockAffinity, long),
    ] {
        let key = Key::global(kind, name);
        let found = store.get(&key).await.unwrap();
        let updated = store.update(found.clone()).await.unwrap();
        assert_eq!(updated.metadata().uid, found.metadata().uid);
        let by_name = store.list(&Query::from(&key)).await.unwrap().items;
        assert_eq!(by_name, std::slice::from_ref(&updated));
        let uid = Some(found.metadata().uid.clone());
        let stale = Precondition {
            revision: Some(Revision("1".to_owned())),
            uid: uid.clone(),
        };
        assert!(matches!(
            store.delete(&key, &stale).await,
            Err(Error::Conflict(_))
        ));
        let current = Precondition {
            revision: None,
            uid,
        };
        assert_eq!(store.delete(&key, &current).await.unwrap(), updated);
        assert!(matches!(store.get(&key).await, Err(Error::NotFound(_))));
    }
}

#[tokio::test]
async fn policies_of_older_versions_are_found_until_they_are_renamed() {
    let store = shared().await;
    let older = format!("{V3}/networkpolicies/older/default.p");
    let newer = format!("{V3}/networkpolicies/older/p");
    let query = Query::in_namespace(Kind::NetworkPolicy, "older");
    let key = Key::namespaced(Kind::NetworkPolicy, "older", "p");
    let from = store.list(&query).await.unwrap().revision;
    put(
        &older,
        r#"{"metadata":{"name":"default.p","namespace":"older"},"spec":{"order":1}}"#,
    );

    let found = store.get(&key).await.unwrap();
    assert_eq!(found.metadata().name, "p");
    let updated = store.update(found.clone()).await.unwrap();
    assert!(matches!(store.update(found).await, Err(Error::Conflict(_))));
    assert_eq!(store.list(&query).await.unwrap().items, [updated]);

    let mut watch = store.watch(&query, &from).await.unwrap();
    assert_eq!(
        [next_name(&mut watch).await, next_name(&mut watch).await],
        ["p", "p"]
    );
    let moved = stored(&older).to_string();
    put(&newer, &moved);
    assert_eq!(next_name(&mut watch).await, "p");
    assert_eq!(store.list(&query).await.unwrap().items.len(), 1);
    // The older one goes; the policy stays.
    Etcd::shared().etcdctl(&["del", &older]).unwrap();
    store.delete(&key, &Precondition::default()).await.unwrap();
    assert_eq!(next(&mut watch).await, Change::Delete(key.clone()));
    // Nothing is under the newer path now: this one is a real delete.
    put(&older, &moved);
    assert_eq!(next_name(&mut watch).await, "p");
    store.delete(&key, &Precondition::default()).await.unwrap();
    assert_eq!(next(&mut watch).await, Change::Delete(key));
}

#[tokio::test]
async fn values_that_cannot_be_read_are_reported_beside_the_others() {
    let store = shared().await;
    let query = Query::in_namespace(Kind::NetworkSet, "unreadable");
    let from = store.list(&query).await.unwrap().revision;
    put(&format!("{V3}/networksets/unreadable/bad"), "nonsense");
    put(
        &format!("{V3}/networksets/unreadable/good"),
        r#"{"metadata":{"creationTimestamp":null},"spec":null}"#,
    );
    put(
        &format!("{V3}/networksets/unreadable/not/an/object"),
        "nonsense",
    );
    let list = store.list(&query).await.unwrap();
    assert_eq!(list.items.len(), 1);
    assert_eq!(list.items[0].metadata().name, "good");
    let bad = Key::namespaced(Kind::NetworkSet, "unreadable", "bad");
    assert_eq!(
        list.invalid
            .iter()
            .map(|invalid| &invalid.key)
            .collect::<Vec<_>>(),
        [&bad]
    );
    let mut watch = store.watch(&query, &from).await.unwrap();
    assert!(matches!(next(&mut watch).await, Change::Invalid(invalid) if invalid.key == bad));
    assert_eq!(next_name(&mut watch).await, "good");
    let error = store.get(&bad).await.unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("NetworkSet(unreadable/bad) cannot be read"),
        "{message}"
    );
    // Who is sure to replace just that can.
    let Error::Unreadable { revision, .. } = error else {
        panic!("{error:?}");
    };
    let mut good = list.items[0].clone();
    good.metadata_mut().name = "bad".to_owned();
    good.metadata_mut().resource_version = revision.0;
    store.update(good.clone()).await.unwrap();
    let late = store.update(good).await;
    assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_longer_than_a_page_are_whole() {
    let store = shared().await;
    let creates = (0..1203).map(|index| {
        let metadata = json!({ "name": format!("s{index:04}"), "namespace": "pages" });
        store.create(resource(Kind::NetworkSet, &metadata, &json!({})))
    });
    let results: Vec<_> = futures::stream::iter(creates)
        .buffer_unordered(32)
        .collect()
        .await;
    assert!(results.iter().all(Result::is_ok));
    let query = Query::in_namespace(Kind::NetworkSet, "pages");
    let list = store.list(&query).await.unwrap();
    assert_eq!(list.items.len(), 1203);
    let parts: Vec<_> = store.list_in_parts(&query).collect().await;
    assert!(parts.len() > 2);
    let parts = parts.into_iter().flat_map(|part| part.unwrap().items);
    assert_eq!(parts.collect::<Vec<_>>(), list.items);
    assert!(
        list.items
            .is_sorted_by_key(|item| item.metadata().name.clone())
    );
}

#[tokio::test]
async fn a_compacted_revision_is_gone() {
    let etcd = Etcd::start().unwrap();
    let store = EtcdStore::connect(&EtcdConfig::new([etcd.endpoint()]))
        .await
        .unwrap();
    let query = Query::all(Kind::Tier);
    let from = store.list(&query).await.unwrap().revision;
    for name in ["a", "b", "c"] {
        store
            .create(resource(Kind::Tier, &json!({ "name": name }), &json!({})))
            .await
            .unwrap();
    }
    let now = store.list(&query).await.unwrap().revision;
    etcd.compact(now.0.parse().unwrap()).unwrap();
    let mut watch = store.watch(&query, &from).await.unwrap();
    let event = watch.next().await.unwrap();
    assert!(
        matches!(&event, Err(Error::Gone(at)) if *at == from.0),
        "{event:?}"
    );
    assert!(watch.next().await.is_none());
    drop(store.watch(&query, &now).await.unwrap());
}

#[tokio::test]
async fn tls_is_verified_in_both_directions() {
    let etcd = Etcd::start_with(&ServerConfig {
        tls: Tls::Mutual,
        ..Default::default()
    })
    .unwrap();
    let file = |path: Option<&std::path::Path>| Some(Pem::File(path.unwrap().to_owned()));
    let config = EtcdConfig {
        ca: file(etcd.ca()),
        cert: file(etcd.cert()),
        key: file(etcd.key()),
        ..EtcdConfig::new([etcd.endpoint()])
    };
    let store = EtcdStore::connect(&config).await.unwrap();
    store.list(&Query::all(Kind::Tier)).await.unwrap();
    let inline = |path: Option<&std::path::Path>| {
        Some(Pem::Inline(std::fs::read_to_string(path.unwrap()).unwrap()))
    };
    let by_text = EtcdConfig {
        ca: inline(etcd.ca()),
        cert: inline(etcd.cert()),
        key: inline(etcd.key()),
        ..config.clone()
    };
    EtcdStore::connect(&by_text).await.unwrap();

    let without_cert = EtcdConfig {
        cert: None,
        key: None,
        ..config.clone()
    };
    let without_ca = EtcdConfig { ca: None, ..config };
    for refused in [without_cert, without_ca] {
        let result = EtcdStore::connect(&refused).await;
        assert!(
            matches!(result, Err(Error::Unavailable { .. })),
            "{result:?}"
        );
    }
}

#[tokio::test]
async fn users_are_authenticated_again_when_their_token_is_no_longer_good() {
    let password = Some("secret-word".to_owned());
    let etcd = Etcd::start_with(&ServerConfig {
        password,
        ..Default::default()
    })
    .unwrap();
    let with = |password: &str| EtcdConfig {
        username: "root".to_owned(),
        password: password.to_owned(),
        ..EtcdConfig::new([etcd.endpoint()])
    };
    for refused in [EtcdConfig::new([etcd.endpoint()]), with(""), with("wrong")] {
        let result = EtcdStore::connect(&refused).await;
        assert!(matches!(result, Err(Error::Unauthorized(_))), "{result:?}");
    }
    let store = EtcdStore::connect(&with("secret-word")).await.unwrap();
    assert!(!format!("{store:?}").contains("secret-word"));
    let query = Query::all(Kind::Tier);
    let from = store.list(&query).await.unwrap().revision;
    // A change of users makes etcd refuse the tokens from before.
    etcd.etcdctl(&["user", "add", "other:x"]).unwrap();
    store
        .create(resource(Kind::Tier, &json!({ "name": "a" }), &json!({})))
        .await
        .unwrap();
    etcd.etcdctl(&["user", "add", "another:x"]).unwrap();
    let mut watch = store.watch(&query, &from).await.unwrap();
    assert_eq!(next_name(&mut watch).await, "a");
}

#[tokio::test]
async fn a_member_that_does_not_answer_is_left_for_the_next() {
    let dead = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let endpoints = [
        format!("http://{dead}"),
        Etcd::shared().endpoint().to_owned(),
    ];
    let store = EtcdStore::connect(&EtcdConfig::new(endpoints))
        .await
        .unwrap();
    let tier = resource(Kind::Tier, &json!({ "name": "failover" }), &json!({}));
    store.create(tier).await.unwrap();
    let alone = EtcdStore::connect(&EtcdConfig::new([format!("http://{dead}")])).await;
    assert!(matches!(alone, Err(Error::Unavailable { .. })), "{alone:?}");
}

/// Passes connections on to etcd, until told to cut them all.
async fn proxy() -> (SocketAddr, Sender<()>) {
    let upstream = Etcd::shared()
        .endpoint()
        .trim_start_matches("http://")
        .to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (cut, cuts) = watch::channel(());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (upstream, mut cuts) = (upstream.clone(), cuts.clone());
            cuts.mark_unchanged();
            tokio::spawn(async move {
                let mut server = TcpStream::connect(upstream).await.unwrap();
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut server) => {}
                    _ = cuts.changed() => {}
                }
            });
        }
    });
    (address, cut)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_with_its_connection_and_the_next_one_goes_on() {
    let (address, cut) = proxy().await;
    let store = EtcdStore::connect(&EtcdConfig::new([format!("http://{address}")]))
        .await
        .unwrap();
    let direct = shared().await;
    let query = Query::in_namespace(Kind::NetworkSet, "cut");
    let mut from = store.list(&query).await.unwrap().revision;
    for round in 0..3 {
        let mut watch = store.watch(&query, &from).await.unwrap();
        for index in 0..5 {
            let metadata = json!({ "name": format!("s{round}{index}"), "namespace": "cut" });
            direct
                .create(resource(Kind::NetworkSet, &metadata, &json!({})))
                .await
                .unwrap();
            if index == 2 {
                cut.send(()).unwrap();
            }
        }
        let mut names = Vec::new();
        let ended = loop {
            let event = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
            match event.unwrap() {
                Ok(event) => {
                    from = event.revision;
                    if let Change::Put(resource) = event.change {
                        names.push(resource.metadata().name.clone());
                    }
                }
                Err(error) => break error,
            }
        };
        assert!(ended.is_retryable(), "{ended:?}");
        assert!(watch.next().await.is_none());
        let mut watch = store.watch(&query, &from).await.unwrap();
        while names.len() < 5 {
            names.push(next_name(&mut watch).await);
        }
        let expected: Vec<_> = (0..5).map(|index| format!("s{round}{index}")).collect();
        assert_eq!(names, expected);
        from = store.list(&query).await.unwrap().revision;
    }
    // Other calls find their way again, too.
    cut.send(()).unwrap();
    assert_eq!(store.list(&query).await.unwrap().items.len(), 15);
}

use std::sync::Arc;

use futures::StreamExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tortie_api::network_policy::NetworkPolicySpec;
use tortie_api::{Kind, NetworkPolicy, Resource};

use super::super::{DocumentKey, EmbeddedStore, Most};
use crate::error::Error;
use crate::key::{Key, Query, Revision};
use crate::store::{Change, Precondition, Store as _};

const POLICIES: &str = "networkpolicies.networking.k8s.io";

fn open() -> (EmbeddedStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path().join("store")).unwrap();
    (store, folder)
}

/// A Kubernetes object with this spec.
async fn add(store: &EmbeddedStore, collection: &str, namespace: &str, name: &str, spec: Value) {
    let uid = "30316465-6365-4463-ad63-3564622d3638";
    let metadata = json!({"namespace": namespace, "name": name, "uid": uid});
    let object = json!({"metadata": metadata, "spec": spec});
    let key = DocumentKey::new(collection, namespace, name);
    let json: Arc<[u8]> = object.to_string().into_bytes().into();
    store.documents().create(key, json).await.unwrap();
}

async fn add_policy(store: &EmbeddedStore, namespace: &str, name: &str) {
    let spec = json!({"podSelector": {}, "policyTypes": ["Ingress"]});
    add(store, POLICIES, namespace, name, spec).await;
}

fn own_policy(namespace: &str, name: &str) -> Resource {
    NetworkPolicy::new(namespace, name, NetworkPolicySpec::default()).into()
}

fn names(items: &[Resource]) -> Vec<String> {
    let name = |item: &Resource| {
        let metadata = item.metadata();
        format!("{}/{}", metadata.namespace, metadata.name)
    };
    items.iter().map(name).collect()
}

/// The names that pages of so many objects show.
fn pages(store: &EmbeddedStore, query: &Query, objects: usize) -> Vec<String> {
    let snapshot = store.snapshot().unwrap().unwrap();
    let most = Most {
        objects,
        bytes: usize::MAX,
    };
    let (mut names, mut after) = (Vec::new(), None::<(String, String)>);
    loop {
        let from = after
            .as_ref()
            .map(|(namespace, name)| (&**namespace, &**name));
        let page = snapshot.objects(query, from, most).unwrap();
        assert!(page.len() <= objects);
        let Some(last) = page.last() else {
            return names;
        };
        after = Some((last.namespace.clone(), last.name.clone()));
        names.extend(
            page.iter()
                .map(|stored| format!("{}/{}", stored.namespace, stored.name)),
        );
    }
}

#[tokio::test]
async fn documents_are_listed_among_resources_in_order_in_one_list_and_in_pages() {
    let (store, _folder) = open();
    for (namespace, name) in [("b", "x"), ("a", "x"), ("a", "y")] {
        add_policy(&store, namespace, name).await;
    }
    for (namespace, name) in [("a", "aa"), ("a", "zz"), ("b", "zz"), ("c", "c")] {
        store.create(own_policy(namespace, name)).await.unwrap();
    }
    let all = [
        "a/aa",
        "a/knp.default.x",
        "a/knp.default.y",
        "a/zz",
        "b/knp.default.x",
        "b/zz",
        "c/c",
    ];
    let query = Query::all(Kind::NetworkPolicy);
    assert_eq!(names(&store.list(&query).await.unwrap().items), all);
    for objects in 1..=8 {
        assert_eq!(pages(&store, &query, objects), all, "{objects}");
    }
    let query = Query::in_namespace(Kind::NetworkPolicy, "b");
    let in_b = ["b/knp.default.x", "b/zz"];
    assert_eq!(names(&store.list(&query).await.unwrap().items), in_b);
    assert_eq!(pages(&store, &query, 1), in_b);
}

#[tokio::test]
async fn namespaces_and_service_accounts_are_profiles() {
    let (store, _folder) = open();
    for namespace in ["a", "a-b"] {
        add(&store, "namespaces", "", namespace, json!({})).await;
        add(&store, "serviceaccounts", namespace, "x", json!({})).await;
    }
    let all = [
        "/kns.a",
        "/kns.a-b",
        "/ksa.a-b.x",
        "/ksa.a.x",
        "/projectcalico-default-allow",
    ];
    let query = Query::all(Kind::Profile);
    assert_eq!(names(&store.list(&query).await.unwrap().items), all);
    for objects in 1..=6 {
        assert_eq!(pages(&store, &query, objects), all, "{objects}");
    }
}

#[tokio::test]
async fn a_watch_tells_of_documents_from_the_log_and_as_they_change() {
    let (store, _folder) = open();
    let before = Revision(store.revision().unwrap().to_string());
    add_policy(&store, "shop", "early").await;
    let query = Query::all(Kind::NetworkPolicy);
    let mut watch = store.watch(&query, &before).await.unwrap();
    let mut next = async || watch.next().await.unwrap().unwrap().change;
    let key = |name: &str| Key::namespaced(Kind::NetworkPolicy, "shop", name);

    let early = key("knp.default.early");
    assert!(matches!(next().await, Change::Put(put) if Key::of(&put) == early));
    add_policy(&store, "shop", "late").await;
    add(&store, POLICIES, "shop", "broken", json!(1)).await;
    store.create(own_policy("shop", "own")).await.unwrap();
    let documents = store.documents();
    let late = DocumentKey::new(POLICIES, "shop", "late");
    documents.delete(late, None).await.unwrap();

    let Change::Put(put) = next().await else {
        panic!("it is a policy");
    };
    assert_eq!(Key::of(&put), key("knp.default.late"));
    assert_eq!(store.get(&early).await.unwrap().kind(), Kind::NetworkPolicy);
    assert!(matches!(next().await, Change::Invalid(it) if it.key == key("knp.default.broken")));
    assert!(matches!(next().await, Change::Put(put) if Key::of(&put) == key("own")));
    assert_eq!(next().await, Change::Delete(key("knp.default.late")));
}

#[tokio::test]
async fn what_comes_from_a_document_is_changed_there_only() {
    let (store, _folder) = open();
    add_policy(&store, "shop", "web").await;
    let key = Key::namespaced(Kind::NetworkPolicy, "shop", "knp.default.web");
    let policy = store.get(&key).await.unwrap();
    for result in [
        store.create(policy.clone()).await,
        store.update(policy).await,
        store.delete(&key, &Precondition::default()).await,
    ] {
        assert!(
            matches!(result, Err(Error::Unsupported { .. })),
            "{result:?}"
        );
    }
}

#[tokio::test]
async fn copies_that_controllers_made_are_hidden_and_then_removed() {
    let (store, _folder) = open();
    let key = Key::namespaced(Kind::NetworkPolicy, "shop", "knp.default.web");
    for name in ["knp.default.web", "knp.default.gone", "own"] {
        store.create(own_policy("shop", name)).await.unwrap();
    }
    add_policy(&store, "shop", "web").await;
    let Resource::NetworkPolicy(policy) = store.get(&key).await.unwrap() else {
        panic!("it is a policy");
    };
    assert!(!policy.spec.types.is_empty(), "it is that of the document");
    let query = Query::all(Kind::NetworkPolicy);
    let all = ["shop/knp.default.gone", "shop/knp.default.web", "shop/own"];
    assert_eq!(names(&store.list(&query).await.unwrap().items), all);
    assert_eq!(pages(&store, &query, 2), all);

    assert_eq!(store.remove_copies().await.unwrap(), 2);
    let all = ["shop/knp.default.web", "shop/own"];
    assert_eq!(names(&store.list(&query).await.unwrap().items), all);
    assert_eq!(store.remove_copies().await.unwrap(), 0);
}

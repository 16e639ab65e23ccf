//! How resources are stored as custom resources.

use futures::StreamExt;
use serde_json::{Value, json};
use tortie_api::crd::Group;
use tortie_store::{Error, Key, Kind, Precondition, Query, Resource, Store};

use crate::kubernetes::cluster::{apply, create_namespaces, kubectl_json, resource, server, store};

#[tokio::test]
async fn the_older_group_keeps_metadata_in_an_annotation() {
    let store = store(Group::V1).await;
    let mut tier = resource(Kind::Tier, "", "annotated", &json!({"order": 5}));
    tier.metadata_mut().labels.insert("team".into(), "a".into());
    let created = store.create(tier).await.unwrap();
    let object = kubectl_json(&["get", "tiers.crd.projectcalico.org", "annotated"]);
    assert_eq!(object["metadata"]["labels"], Value::Null);
    let annotation = object["metadata"]["annotations"]["projectcalico.org/metadata"]
        .as_str()
        .unwrap();
    let kept: Value = serde_json::from_str(annotation).unwrap();
    assert_eq!(kept, json!({"labels": {"team": "a"}}));
    let uid = object["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        tortie_api::k8s::convert_uid(uid).as_deref(),
        Some(created.metadata().uid.as_str())
    );
    let precondition = Precondition {
        uid: Some(created.metadata().uid.clone()),
        revision: None,
    };
    store
        .delete(&Key::of(&created), &precondition)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_policy_that_is_not_migrated_is_called_as_it_is_stored() {
    let store = store(Group::V1).await;
    apply(&[json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "GlobalNetworkPolicy",
        "metadata": {
            "name": "default.unmigrated",
            "annotations": {"projectcalico.org/metadata": r#"{"name":"unmigrated","labels":{"a":"b"}}"#},
        },
        "spec": {"tier": "default", "types": ["Ingress"]},
    })]);
    let policy = store
        .get(&Key::global(
            Kind::GlobalNetworkPolicy,
            "default.unmigrated",
        ))
        .await
        .unwrap();
    assert_eq!(
        policy.metadata().labels.get("a").map(String::as_str),
        Some("b")
    );
    let new = resource(
        Kind::GlobalNetworkPolicy,
        "",
        "unmigrated",
        &json!({"tier": "default", "types": ["Ingress"]}),
    );
    store
        .create(new)
        .await
        .expect("both exist during a migration");
    store
        .delete(&Key::of(&policy), &Precondition::default())
        .await
        .unwrap();
    store
        .get(&Key::global(Kind::GlobalNetworkPolicy, "unmigrated"))
        .await
        .unwrap();
}

#[tokio::test]
async fn the_status_is_written_apart_from_the_rest() {
    for group in [Group::V1, Group::V3] {
        let store = store(group).await;
        let tier = store
            .create(resource(Kind::Tier, "", "observed", &json!({"order": 5})))
            .await
            .unwrap();
        let mut changed = tier.to_value();
        changed["spec"]["order"] = json!(6);
        changed["status"] = json!({"conditions": [{
            "type": "Ready", "status": "True", "reason": "Fine", "message": "",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }]});
        let changed = Resource::decode_stored(Kind::Tier, &changed).unwrap();
        let updated = store.update_status(changed).await.unwrap().to_value();
        assert_eq!(
            updated["status"]["conditions"][0]["reason"], "Fine",
            "{group:?}"
        );
        assert_eq!(updated["spec"]["order"], 5, "{group:?}");
    }
}

#[tokio::test]
async fn a_deletion_that_was_only_begun_is_completed_by_readers() {
    for group in [Group::V1, Group::V3] {
        let store = store(group).await;
        let deleted = if group == Group::V1 {
            json!("true")
        } else {
            json!(true)
        };
        for name in ["half-got", "half-listed", "half-created"] {
            apply(&[json!({
                "apiVersion": format!("{}/{}", group.name(), group.version()), "kind": "BlockAffinity",
                "metadata": {"name": name},
                "spec": {"state": "confirmed", "node": "n", "type": "host", "cidr": "10.0.0.0/26", "deleted": deleted},
            })]);
        }
        let is_there = |name: &str| {
            let plural = format!("blockaffinities.{}", group.name());
            server().kubectl(&["get", &plural, name]).unwrap().success()
        };
        let got = store
            .get(&Key::global(Kind::BlockAffinity, "half-got"))
            .await;
        assert!(matches!(got, Err(Error::NotFound(_))), "{got:?}");
        assert!(!is_there("half-got"));
        let spec = json!({"state": "pending", "node": "n", "type": "host", "cidr": "10.0.0.0/26", "deleted": false});
        let again = resource(Kind::BlockAffinity, "", "half-created", &spec);
        store.create(again).await.unwrap();
        let list = store.list(&Query::all(Kind::BlockAffinity)).await.unwrap();
        assert!(
            list.items
                .iter()
                .all(|item| item.metadata().name != "half-listed")
        );
        assert!(!is_there("half-listed"));
        assert!(is_there("half-created"));
    }
}

#[tokio::test]
async fn objects_that_cannot_be_read_are_reported_and_can_be_deleted() {
    let store = store(Group::V1).await;
    apply(&[json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "BlockAffinity", "metadata": {"name": "broken"},
        "spec": {"state": "confirmed", "node": "n", "cidr": "10.0.0.0/26", "deleted": "maybe"},
    })]);
    let key = Key::global(Kind::BlockAffinity, "broken");
    let list = store.list(&Query::all(Kind::BlockAffinity)).await.unwrap();
    assert!(
        list.invalid
            .iter()
            .any(|invalid| invalid.key == key && invalid.reason.contains("maybe"))
    );
    assert!(
        store
            .get(&key)
            .await
            .unwrap_err()
            .to_string()
            .contains("maybe")
    );
    store.delete(&key, &Precondition::default()).await.unwrap();
    assert!(matches!(store.get(&key).await, Err(Error::NotFound(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_longer_than_a_page_is_complete() {
    const COUNT: usize = 1001;
    let store = store(Group::V3).await;
    create_namespaces(&["pages".to_owned()]);
    let creates = (0..COUNT).map(|index| {
        let set = resource(
            Kind::NetworkSet,
            "pages",
            &format!("set-{index}"),
            &json!({}),
        );
        let store = store.clone();
        async move { store.create(set).await.map(drop) }
    });
    let results: Vec<_> = futures::stream::iter(creates)
        .buffer_unordered(16)
        .collect()
        .await;
    results.into_iter().collect::<Result<(), Error>>().unwrap();
    let list = store
        .list(&Query::in_namespace(Kind::NetworkSet, "pages"))
        .await
        .unwrap();
    assert_eq!(list.items.len(), COUNT);
}

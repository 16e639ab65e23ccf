//! Watches where connections, revisions or kinds come and go.

use futures::StreamExt;
use serde_json::json;
use tortie_api::crd::Group;
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};
use tortie_store::{
    Change, Error, Key, Kind, Precondition, Query, Resource, Revision, Store, Watch,
};
use tortie_testkit::KubeApiServer;

use crate::kubernetes::cluster::{
    PATIENCE, follow, install_crds, next, next_delete, next_put, resource, server, store,
};
use crate::kubernetes::proxy::Proxy;

#[tokio::test]
async fn a_marked_deletion_is_one_delete_in_a_watch() {
    let store = store(Group::V3).await;
    let handle = resource(
        Kind::IpamHandle,
        "",
        "net.WATCHED",
        &json!({"handleID": "net.WATCHED", "block": {}}),
    );
    let handle = store.create(handle).await.unwrap();
    let key = Key::of(&handle);
    let from = Revision(handle.metadata().resource_version.clone());
    let mut watch = follow(&store, &Query::from(&key), &from).await;
    store.delete(&key, &Precondition::default()).await.unwrap();
    assert_eq!(next_delete(&mut watch).await, key);
    store
        .create(resource(
            Kind::IpamHandle,
            "",
            "net.WATCHED",
            &json!({"handleID": "net.WATCHED", "block": {}}),
        ))
        .await
        .unwrap();
    next_put(&mut watch, "net.WATCHED").await;
}

#[tokio::test]
async fn a_revision_that_is_no_longer_kept_is_gone() {
    let store = store(Group::V3).await;
    let mut watch = match store
        .watch(&Query::all(Kind::Tier), &Revision("1".into()))
        .await
    {
        Ok(watch) => watch,
        Err(error) => return assert!(matches!(error, Error::Gone(_)), "{error:?}"),
    };
    let first = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
    assert!(matches!(first, Some(Err(Error::Gone(_)))), "{first:?}");
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_watch_ends_with_its_connection_and_the_next_one_goes_on() {
    let (server, direct) = (server(), store(Group::V3).await);
    let proxy = Proxy::start(server.url()).await;
    let config = KubernetesConfig {
        kubeconfig: vec![server.kubeconfig().into()],
        api_endpoint: Some(format!("https://{}", proxy.address)),
        api_group: Some(Group::V3),
        ..KubernetesConfig::default()
    };
    let store = KubernetesStore::connect(&config).await.unwrap();
    let query = Query::all(Kind::GlobalNetworkSet);
    let mut from = store.list(&query).await.unwrap().revision;
    for name in ["resumed-1", "resumed-2", "resumed-3"] {
        let mut watch = store.watch(&query, &from).await.unwrap();
        proxy.cut();
        let ended = loop {
            match tokio::time::timeout(PATIENCE, watch.next()).await.unwrap() {
                Some(Ok(event)) => from = event.revision,
                ended => break ended,
            }
        };
        // A connection that is cut off may look like one that the server ended.
        if let Some(Err(error)) = ended {
            assert!(error.is_retryable(), "{error:?}");
            assert!(watch.next().await.is_none());
        }
        direct
            .create(resource(Kind::GlobalNetworkSet, "", name, &json!({})))
            .await
            .unwrap();
        let mut watch = open(&store, &query, &from).await;
        let event = next(&mut watch, |change| *change != Change::Bookmark).await;
        from = event.revision.clone();
        assert!(
            matches!(&event.change, Change::Put(resource) if resource.metadata().name == name),
            "{event:?}"
        );
    }
}

/// Watches, perhaps at a second try: that a connection was cut may not have got round yet.
async fn open(store: &KubernetesStore, query: &Query, from: &Revision) -> Watch {
    match store.watch(query, from).await {
        Err(error) if error.is_retryable() => store.watch(query, from).await.unwrap(),
        opened => opened.unwrap(),
    }
}

#[tokio::test]
async fn a_missing_crd_has_no_objects_only_where_a_cluster_may_do_without_it() {
    let server = KubeApiServer::start().unwrap();
    let config = KubernetesConfig {
        kubeconfig: vec![server.kubeconfig().into()],
        ..KubernetesConfig::default()
    };
    let store = KubernetesStore::connect(&config).await.unwrap();
    assert_eq!(store.group(), Group::V1);
    for kind in Kind::ALL {
        match store.list(&Query::all(*kind)).await {
            Ok(list) => {
                let of_kubernetes = |item: &Resource| item.kind() == Kind::Profile;
                assert!(list.items.iter().all(of_kubernetes), "{kind}");
            }
            Err(error) => {
                let text = error.to_string();
                assert!(
                    text.contains("404") && text.contains("tortie crds"),
                    "{text}"
                );
            }
        }
    }
    for kind in [Kind::GlobalNetworkPolicy, Kind::NetworkPolicy, Kind::Tier] {
        let listed = store.list(&Query::all(kind)).await;
        assert!(listed.is_err(), "{kind} decides about packets");
    }
    let created = store
        .create(resource(Kind::Tier, "", "t", &json!({})))
        .await
        .unwrap_err();
    assert!(created.to_string().contains("CRDs"), "{created}");

    let peers = Query::all(Kind::BgpPeer);
    let first = store;
    let from = first.list(&peers).await.unwrap().revision;
    let mut watch = follow(&first, &peers, &from).await;
    install_crds(&server, Group::V3);
    let store = KubernetesStore::connect(&config).await.unwrap();
    assert_eq!(store.group(), Group::V3);
    install_crds(&server, Group::V1);
    let store = KubernetesStore::connect(&config).await.unwrap();
    assert_eq!(store.group(), Group::V1);
    let peer = json!({"peerIP": "192.0.2.1", "asNumber": 64512});
    for name in ["late", "later"] {
        let peer = resource(Kind::BgpPeer, "", name, &peer);
        store.create(peer).await.unwrap();
        next_put(&mut watch, name).await;
    }

    // There were some, so that the kind is missing for good only once they were deleted.
    let forget = ["delete", "crd", "bgppeers.crd.projectcalico.org"];
    server.kubectl(&forget).unwrap().into_stdout().unwrap();
    for _ in ["late", "later"] {
        next_delete(&mut watch).await;
    }
    assert!(first.list(&peers).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn parts_of_a_list_are_the_list() {
    let store = store(Group::V3).await;
    for kind in [Kind::NetworkPolicy, Kind::Profile, Kind::LiveMigration] {
        let query = Query::all(kind);
        let parts: Vec<_> = store.list_in_parts(&query).collect().await;
        assert!(!parts.is_empty(), "{kind}");
        let parts: Vec<_> = parts.into_iter().map(Result::unwrap).collect();
        let revision = &parts[0].revision;
        assert!(parts.iter().all(|part| part.revision == *revision));
        let whole = store.list(&query).await.unwrap();
        let names = |items: Vec<Resource>| {
            let mut names: Vec<Key> = items.iter().map(Key::of).collect();
            names.sort();
            names
        };
        let parts = parts.into_iter().flat_map(|part| part.items).collect();
        let (parts, whole) = (names(parts), names(whole.items));
        // Other tests write meanwhile.
        let of_all = |key: &&Key| {
            key.name.starts_with("kns.default") || key.name.starts_with("projectcalico")
        };
        assert_eq!(
            parts.iter().filter(of_all).collect::<Vec<_>>(),
            whole.iter().filter(of_all).collect::<Vec<_>>()
        );
    }
}

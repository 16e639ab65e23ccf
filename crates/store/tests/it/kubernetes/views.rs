//! How objects of Kubernetes appear as resources.

use serde_json::{Value, json};
use tortie_api::crd::Group;
use tortie_store::{Change, Error, Key, Kind, Precondition, Query, Resource, Revision, Store};

use crate::kubernetes::cluster::{
    apply, create_namespaces, create_raw, follow, kubectl, kubectl_json, next, next_delete,
    next_put, pod, resource, store,
};

#[tokio::test]
async fn pods_namespaces_and_accounts_are_endpoints_and_profiles() {
    let store = store(Group::V3).await;
    let namespace = "views";
    apply(&[
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {"team": "a"}}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": namespace}}),
        pod(
            namespace,
            "web-1",
            json!({"nodeName": "node-1", "serviceAccountName": "sa"}),
        ),
        pod(
            namespace,
            "host",
            json!({"nodeName": "node-1", "hostNetwork": true}),
        ),
        pod(namespace, "waiting", json!({})),
    ]);

    let list = store
        .list(&Query::in_namespace(Kind::WorkloadEndpoint, namespace))
        .await
        .unwrap();
    let names: Vec<_> = list
        .items
        .iter()
        .map(|item| item.metadata().name.as_str())
        .collect();
    assert_eq!(names, ["node--1-k8s-web--1-eth0"]);
    let key = Key::of(&list.items[0]);
    let endpoint = store.get(&key).await.unwrap();
    assert_eq!(endpoint, list.items[0]);
    let spec = &endpoint.to_value()["spec"];
    assert_eq!(spec["profiles"], json!(["kns.views", "ksa.views.sa"]));
    assert_eq!(
        store.list(&Query::from(&key)).await.unwrap().items,
        [endpoint]
    );

    let profile = store
        .get(&Key::global(Kind::Profile, "kns.views"))
        .await
        .unwrap();
    let labels = &profile.to_value()["spec"]["labelsToApply"];
    assert_eq!(
        (&labels["pcns.team"], &labels["pcns.projectcalico.org/name"]),
        (&json!("a"), &json!("views"))
    );
    assert!(profile.metadata().resource_version.ends_with('/'));
    let account = store
        .get(&Key::global(Kind::Profile, "ksa.views.sa"))
        .await
        .unwrap();
    assert!(account.metadata().resource_version.starts_with('/'));

    for result in [
        store.delete(&key, &Precondition::default()).await,
        store.update(profile.clone()).await,
        store.create(profile).await,
    ] {
        assert!(
            matches!(result, Err(Error::Unsupported { .. })),
            "{result:?}"
        );
    }
}

#[tokio::test]
async fn profiles_of_both_sources_are_in_one_watch_that_can_be_resumed() {
    let store = store(Group::V3).await;
    let list = store.list(&Query::all(Kind::Profile)).await.unwrap();
    assert_eq!(
        list.revision
            .0
            .split('/')
            .filter(|part| !part.is_empty())
            .count(),
        2
    );
    let mut watch = follow(&store, &Query::all(Kind::Profile), &list.revision).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "merged"}});
    apply(&[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "merged"}})]);
    let namespace_event = next_put(&mut watch, "kns.merged").await;
    apply(&[account]);
    let account_event = next_put(&mut watch, "ksa.merged.sa").await;

    let mut resumed = follow(
        &store,
        &Query::all(Kind::Profile),
        &namespace_event.revision,
    )
    .await;
    assert_eq!(
        next_put(&mut resumed, "ksa.merged.sa").await.change,
        account_event.change
    );
}

#[tokio::test]
async fn policies_of_kubernetes_are_among_those_of_calico() {
    let store = store(Group::V3).await;
    create_namespaces(&["mixed".to_owned()]);
    let start = store
        .list(&Query::in_namespace(Kind::NetworkPolicy, "mixed"))
        .await
        .unwrap()
        .revision;
    let mut watch = follow(
        &store,
        &Query::in_namespace(Kind::NetworkPolicy, "mixed"),
        &start,
    )
    .await;
    apply(&[json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "allow", "namespace": "mixed"},
        "spec": {"podSelector": {}, "policyTypes": ["Egress"]},
    })]);
    next_put(&mut watch, "knp.default.allow").await;
    let own = resource(
        Kind::NetworkPolicy,
        "mixed",
        "own",
        &json!({"tier": "default", "types": ["Ingress"]}),
    );
    let own = store.create(own).await.unwrap();
    next_put(&mut watch, "own").await;

    let list = store
        .list(&Query::in_namespace(Kind::NetworkPolicy, "mixed"))
        .await
        .unwrap();
    let names: Vec<_> = list
        .items
        .iter()
        .map(|item| item.metadata().name.as_str())
        .collect();
    assert_eq!(names, ["knp.default.allow", "own"]);
    let key = Key::namespaced(Kind::NetworkPolicy, "mixed", "knp.default.allow");
    let converted = store.get(&key).await.unwrap();
    assert_eq!(converted.to_value()["spec"]["types"], json!(["Egress"]));
    for result in [
        store.create(converted.clone()).await,
        store.update(converted).await,
        store.delete(&key, &Precondition::default()).await,
    ] {
        assert!(
            matches!(&result, Err(Error::Unsupported { reason, .. }) if reason.contains("Kubernetes API"))
        );
    }
    kubectl(&[
        "-n",
        "mixed",
        "delete",
        "networkpolicies.networking.k8s.io",
        "allow",
    ]);
    assert_eq!(next_delete(&mut watch).await, key);
    let deleted = store
        .delete(&Key::of(&own), &Precondition::default())
        .await
        .unwrap();
    assert_eq!(deleted, own);
}

#[tokio::test]
async fn cluster_policies_are_global_policies_and_broken_ones_are_reported_beside_them() {
    let store = store(Group::V3).await;
    let subject = json!({"namespaces": {}});
    let policy = |name: &str, tier: &str| {
        json!({
            "apiVersion": "policy.networking.k8s.io/v1alpha2", "kind": "ClusterNetworkPolicy",
            "metadata": {"name": name}, "spec": {"tier": tier, "priority": 5, "subject": subject},
        })
    };
    apply(&[policy("good", "Admin"), policy("bad", "Other")]);
    let list = store
        .list(&Query::all(Kind::GlobalNetworkPolicy))
        .await
        .unwrap();
    let good = list
        .items
        .iter()
        .find(|item| item.metadata().name == "kcnp.good")
        .unwrap();
    assert_eq!(good.to_value()["spec"]["tier"], "kube-admin");
    let bad = list
        .invalid
        .iter()
        .find(|invalid| invalid.key.name == "kcnp.bad")
        .unwrap();
    assert!(bad.reason.contains("Other"), "{}", bad.reason);
    let mut watch = follow(
        &store,
        &Query::all(Kind::GlobalNetworkPolicy),
        &Revision::default(),
    )
    .await;
    next_put(&mut watch, "kcnp.good").await;
}

#[tokio::test]
async fn a_node_keeps_its_calico_part_in_annotations() {
    let store = store(Group::V3).await;
    apply(&[
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker", "labels": {"zone": "a"}}}),
    ]);
    let key = Key::global(Kind::Node, "worker");
    let mut node = store.get(&key).await.unwrap();
    let Resource::Node(inner) = &mut node else {
        panic!("{node:?}")
    };
    inner.spec.ipv4_vxlan_tunnel_addr = "192.168.0.1".into();
    inner.metadata.labels.insert("own".into(), "1".into());
    let updated = store.update(node.clone()).await.unwrap();
    assert_eq!(store.get(&key).await.unwrap(), updated);
    assert_eq!(
        updated.metadata().labels.get("own").map(String::as_str),
        Some("1")
    );

    let kube = kubectl_json(&["get", "node", "worker"]);
    let annotations = &kube["metadata"]["annotations"];
    assert_eq!(
        annotations["projectcalico.org/IPv4VXLANTunnelAddr"],
        "192.168.0.1"
    );
    assert_eq!(annotations["projectcalico.org/labels"], r#"{"own":"1"}"#);
    assert_eq!(kube["metadata"]["labels"]["own"], Value::Null);

    let stale = store.update(node).await;
    assert!(matches!(stale, Err(Error::Conflict(_))), "{stale:?}");
    let created = store.create(updated).await;
    assert!(
        matches!(created, Err(Error::Unsupported { .. })),
        "{created:?}"
    );
}

#[tokio::test]
async fn a_migration_is_there_while_it_concerns_the_network() {
    let store = store(Group::V3).await;
    create_namespaces(&["machines".to_owned()]);
    let migration = |phase: &str| {
        json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
            "metadata": {"name": "move", "namespace": "machines"},
            "spec": {"vmiName": "vm"}, "status": {"phase": phase},
        })
    };
    let query = Query::in_namespace(Kind::LiveMigration, "machines");
    let from = store.list(&query).await.unwrap().revision;
    let mut watch = follow(&store, &query, &from).await;
    apply(&[migration("Running")]);
    next_put(&mut watch, "move").await;
    let list = store.list(&query).await.unwrap();
    assert_eq!(list.items.len(), 1);
    apply(&[migration("Succeeded")]);
    assert_eq!(next_delete(&mut watch).await, Key::of(&list.items[0]));
    assert!(store.list(&query).await.unwrap().items.is_empty());
    let got = store.get(&Key::of(&list.items[0])).await;
    assert!(matches!(got, Err(Error::NotFound(_))), "{got:?}");
}

#[tokio::test]
async fn an_endpoint_appears_when_its_pod_is_scheduled_and_goes_with_it() {
    let store = store(Group::V3).await;
    create_namespaces(&["scheduling".to_owned()]);
    let query = Query::in_namespace(Kind::WorkloadEndpoint, "scheduling");
    let from = store.list(&query).await.unwrap().revision;
    let mut watch = follow(&store, &query, &from).await;
    apply(&[pod("scheduling", "late", json!({}))]);
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "late", "namespace": "scheduling"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-2"},
    });
    create_raw("/api/v1/namespaces/scheduling/pods/late/binding", &binding);
    let first = next(&mut watch, |change| *change != Change::Bookmark).await;
    let Change::Put(endpoint) = first.change else {
        panic!("{first:?}")
    };
    assert_eq!(endpoint.metadata().name, "node--2-k8s-late-eth0");
    kubectl(&[
        "-n",
        "scheduling",
        "delete",
        "pod",
        "late",
        "--grace-period=0",
        "--force",
    ]);
    let last = next(&mut watch, |change| matches!(change, Change::Delete(_))).await;
    assert_eq!(last.change, Change::Delete(Key::of(&endpoint)));
}

//! The collector of addresses, with a real API server and real datastores.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod large;
mod site;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use serde_json::json;
use tortie_ipam::{AssignIp, AutoAssign, Ipam, Owner, attribute};
use tortie_store::{Key, Kind, Precondition, Resource};

use site::{Datastore, Site, pod, put_all};

/// Longer than a busy machine takes for the first look.
const GRACE: Duration = Duration::from_secs(8);
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_went_while_nobody_looked_is_cleaned_up_in_etcd() {
    cleans_up(Datastore::Etcd).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_went_while_nobody_looked_is_cleaned_up_in_kubernetes() {
    cleans_up(Datastore::Kubernetes).await;
}

async fn cleans_up(datastore: Datastore) {
    let site = Site::start(datastore).await;
    site.create_pool("10.65.0.0/16", 29).await;
    let nodes = ["stays", "goes"].map(str::to_owned);
    site.create_nodes(&nodes).await;
    let ipam = Ipam::new(Arc::clone(&site.store));

    // On the node that stays: a pod that runs, one that has not told its address, and one that is gone.
    let mut live = BTreeSet::new();
    let runs = site.assign(&ipam, "stays", "runs", "net.1").await;
    let starts = site.assign(&ipam, "stays", "starts", "net.2").await;
    let leaked = site.assign(&ipam, "stays", "gone", "net.3").await;
    live.extend([runs, starts]);
    let pods = [
        pod("runs", "stays", Some(runs)),
        pod("starts", "stays", None),
    ];
    put_all(&site.server, "pods", &pods);
    // On the node that goes: a pod and a tunnel; and one address of a pod that runs elsewhere was borrowed there.
    let dead = site.assign(&ipam, "goes", "dead", "net.4").await;
    let tunnel = AutoAssign {
        num4: 1,
        handle: Some("vxlan-tunnel-addr-goes".to_owned()),
        attributes: [
            (attribute::NODE.to_owned(), "goes".to_owned()),
            (
                attribute::TYPE.to_owned(),
                attribute::VXLAN_TUNNEL.to_owned(),
            ),
        ]
        .into(),
        used_for: tortie_ipam::Use::Tunnel,
        ..AutoAssign::on("goes")
    };
    let tunnel = ipam.auto_assign(&tunnel).await.unwrap().v4.addresses[0].addr();
    site.server
        .kubectl(&["delete", "node", "goes"])
        .unwrap()
        .into_stdout()
        .unwrap();
    if datastore == Datastore::Etcd {
        let key = Key::global(Kind::Node, "goes");
        site.store
            .delete(&key, &Precondition::default())
            .await
            .unwrap();
    }
    // Blocks that the node that stays has too many of.
    let empty = "10.65.200.0/28".parse().unwrap();
    ipam.claim_affinity(empty, &Owner::host("stays"))
        .await
        .unwrap();
    assert_eq!(site.count(Kind::IpamBlock).await, 4);

    let start = std::time::Instant::now();
    let collecting = site.collect(GRACE);
    // The address of the node that is gone goes at once, that of the pod after a while.
    let mut first = live.clone();
    first.insert(leaked);
    site.wait_for(&first, PATIENCE).await;
    site.wait_for(&live, PATIENCE).await;
    assert!(start.elapsed() > GRACE, "{:?}", start.elapsed());
    let held = site.held().await;
    assert!(!held.contains(&dead) && !held.contains(&tunnel));

    // The blocks of the node that is gone, and those that were not needed, go as well.
    for _ in 0..300 {
        if site.count(Kind::IpamBlock).await == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(site.count(Kind::IpamBlock).await, 1);
    assert_eq!(site.count(Kind::BlockAffinity).await, 1);
    assert_eq!(site.count(Kind::IpamHandle).await, 2);

    // While it runs: a pod that goes, and a node.
    site.server
        .kubectl(&["delete", "pod", "runs", "--grace-period=0", "--force"])
        .unwrap()
        .into_stdout()
        .unwrap();
    live.remove(&runs);
    site.wait_for(&live, PATIENCE).await;
    // Counted a moment after the write.
    let figure = "ipam_allocations_gc_reclamations{ippool=\"pool\",node=\"stays\"} 2.0";
    let mut text = String::new();
    for _ in 0..100 {
        text.clear();
        encode(&mut text, &collecting.registry).unwrap();
        if text.contains(figure) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{figure} is not there: {text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_done_while_the_datastore_is_locked() {
    let site = Site::start(Datastore::Etcd).await;
    site.create_pool("10.65.0.0/16", 29).await;
    site.create_nodes(&["node".to_owned()]).await;
    let key = Key::global(Kind::ClusterInformation, "default");
    let set_ready = async |is_ready| {
        let Resource::ClusterInformation(mut information) = site.store.get(&key).await.unwrap()
        else {
            panic!("something else is stored");
        };
        information.spec.datastore_ready = Some(is_ready);
        site.store.update((*information).into()).await.unwrap();
    };
    set_ready(false).await;
    let ipam = Ipam::new(Arc::clone(&site.store));
    let address = site.assign(&ipam, "node", "gone", "net.1").await;
    let _collecting = site.collect(Duration::from_millis(500));
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(site.held().await, BTreeSet::from([address]));
    set_ready(true).await;
    site.wait_for(&BTreeSet::new(), PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_be_cleaned_up_does_not_hold_up_others() {
    let site = Site::start(Datastore::Etcd).await;
    site.create_pool("10.65.0.0/16", 29).await;
    let ipam = Ipam::new(Arc::clone(&site.store));
    let nodes: Vec<String> = (0..5).map(|number| format!("gone-{number}")).collect();
    site.create_nodes(&nodes).await;
    site.create_nodes(&["stuck".to_owned()]).await;
    // On one of the nodes somebody unknown has an address, so that its block cannot go.
    let stuck = AssignIp {
        handle: Some("by-hand".to_owned()),
        attributes: [(attribute::NODE.to_owned(), "stuck".to_owned())].into(),
        ..AssignIp::on("stuck", "10.65.9.1".parse().unwrap())
    };
    ipam.assign_ip(&stuck).await.unwrap();
    for node in &nodes {
        site.assign(&ipam, node, &format!("pod-{node}"), &format!("net.{node}"))
            .await;
    }
    for node in nodes.iter().map(String::as_str).chain(["stuck"]) {
        let key = Key::global(Kind::Node, node);
        site.store
            .delete(&key, &Precondition::default())
            .await
            .unwrap();
        site.server
            .kubectl(&["delete", "node", node])
            .unwrap()
            .into_stdout()
            .unwrap();
    }
    // A block that nobody can read.
    site.create(
        &json!({ "kind": "IPAMBlock", "metadata": { "name": "10-65-77-0-29" },
        "spec": { "cidr": "10.65.77.0/29", "affinity": "host:stuck", "allocations": [9, null],
            "unallocated": [], "attributes": [], "strictAffinity": false } }),
    )
    .await;
    let _collecting = site.collect(GRACE);
    for _ in 0..150 {
        if site.count(Kind::BlockAffinity).await == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(site.count(Kind::BlockAffinity).await, 1);
    assert_eq!(site.count(Kind::IpamHandle).await, 1);
}

//! Many nodes and addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use ipnet::IpNet;
use serde_json::{Value, json};
use tortie_ipam::block::Block;
use tortie_ipam::{Holder, Owner, attribute, handle};
use tortie_store::{Kind, Resource, ipam_names};

use crate::ipam_gc::site::{Datastore, Site, pod, put_all};

const PER_NODE: u32 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_nodes_with_twenty_thousand_addresses_in_etcd() {
    collects(Datastore::Etcd, 1000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_nodes_with_two_thousand_addresses_in_kubernetes() {
    collects(Datastore::Kubernetes, 100).await;
}

/// A tenth of the nodes are gone, and of the pods on the others every fourth.
#[expect(clippy::print_stdout, reason = "how long it took is worth knowing")]
async fn collects(datastore: Datastore, nodes: u32) {
    let site = Site::start(datastore).await;
    site.create_pool("10.0.0.0/8", 26).await;
    let (mut live, mut pods, mut names, mut resources) =
        (BTreeSet::new(), Vec::new(), Vec::new(), Vec::new());
    for node in 0..nodes {
        let name = format!("node-{node}");
        let is_gone = node % 10 == 0;
        let net: IpNet = format!("10.{}.{}.0/26", node / 256, node % 256)
            .parse()
            .unwrap();
        let mut block = Block::new(net, &Owner::host(&*name), jiff::Timestamp::now(), None);
        for (number, address) in (0..PER_NODE).zip(net.hosts()) {
            let pod_name = format!("pod-{node}-{number}");
            let id = format!("k8s-pod-network.{node:032x}{number:032x}");
            block
                .assign(address, &holder(&name, &pod_name, &id))
                .unwrap();
            let mut handle = handle::new_handle(&id);
            handle::count(&mut handle, net, 1);
            resources.push(Resource::from(handle));
            if !is_gone && number % 4 != 0 {
                pods.push(pod(&pod_name, &name, Some(address)));
                live.insert(address);
            }
        }
        resources.push(block_resource(net, block));
        resources.push(affinity(&name, net));
        if !is_gone {
            names.push(name);
        }
    }
    site.create_nodes(&names).await;
    put_all(&site.server, "pods", &pods);
    store(&site, resources).await;
    let blocks = site.count(Kind::IpamBlock).await;
    assert_eq!(blocks, usize::try_from(nodes).unwrap());

    let before = resident();
    let start = Instant::now();
    let collecting = site.collect(Duration::from_secs(2));
    wait(&site, &live, Duration::from_secs(400)).await;
    let seconds = start.elapsed().as_secs_f64();
    let kilobytes = resident().saturating_sub(before);
    let held = live.len();
    println!("{datastore:?}: {held} stay, the rest went in {seconds:.1} s, {kilobytes} kB more");
    while site.count(Kind::IpamBlock).await > names.len() {
        assert!(
            start.elapsed() < Duration::from_secs(500),
            "blocks are left"
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(site.count(Kind::IpamHandle).await, live.len());
    assert_eq!(site.held().await, live);
    drop(collecting);
}

/// Like [`Site::wait_for`], with fewer looks.
async fn wait(site: &Site, live: &BTreeSet<IpAddr>, patience: Duration) {
    let start = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let held = site.held().await;
        assert!(held.is_superset(live), "addresses in use were released");
        if held == *live {
            return;
        }
        let left = held.len() - live.len();
        assert!(
            start.elapsed() < patience,
            "{left} addresses are still held"
        );
    }
}

fn holder(node: &str, pod: &str, handle: &str) -> Holder {
    let attributes = [
        (attribute::NODE, node),
        (attribute::NAMESPACE, "default"),
        (attribute::POD, pod),
    ];
    Holder {
        handle: Some(handle.to_owned()),
        attributes: attributes
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..Holder::default()
    }
}

fn block_resource(net: IpNet, block: Block) -> Resource {
    let name = ipam_names::of_cidr(&net.to_string());
    tortie_api::IpamBlock::new("", &name, block.into_spec()).into()
}

fn affinity(node: &str, net: IpNet) -> Resource {
    let name = ipam_names::of_affinity(node, &net.to_string());
    Resource::decode_strict(&json!({
        "apiVersion": "projectcalico.org/v3", "kind": "BlockAffinity", "metadata": { "name": name },
        "spec": { "node": node, "cidr": net, "state": "confirmed", "type": "host", "deleted": false },
    }))
    .unwrap()
}

async fn store(site: &Site, resources: Vec<Resource>) {
    if site.datastore == Datastore::Kubernetes {
        let mut objects: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for resource in &resources {
            let mut object = serde_json::to_value(resource).unwrap();
            let name = object["metadata"]["name"].as_str().unwrap().to_lowercase();
            object["metadata"]["name"] = json!(name);
            objects
                .entry(resource.kind().plural())
                .or_default()
                .push(object);
        }
        for (plural, objects) in objects {
            put_all(
                &site.server,
                &format!("projectcalico.org/{plural}"),
                &objects,
            );
        }
        return;
    }
    let writes = resources
        .into_iter()
        .map(|resource| site.store.create(resource));
    let mut writes = stream::iter(writes).buffer_unordered(64);
    while let Some(written) = writes.next().await {
        written.unwrap();
    }
}

/// Kilobytes of memory that this process has.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

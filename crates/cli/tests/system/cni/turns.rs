//! Plugins at once: who has its turn does what the others wait for.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cni::site::{Container, Site, addresses};

const PATIENCE: Duration = Duration::from_secs(30);

/// How many plugins wait; all of their addresses fit into one block.
const AT_ONCE: usize = 15;

fn site() -> Site {
    let site = Site::empty();
    let objects = "\
apiVersion: projectcalico.org/v3
kind: IPPool
metadata: {name: four}
spec: {cidr: 10.65.0.0/24, blockSize: 26, nodeSelector: all()}
---
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: n1}
";
    site.tortie(&["apply", "-f", "-"], objects);
    site
}

fn queue(site: &Site) -> PathBuf {
    site.folder.path().join("ipam.queue")
}

fn waiting(site: &Site) -> usize {
    fs::read_dir(queue(site)).map_or(0, Iterator::count)
}

/// Calls the plugin for all containers while nobody can have a turn, and lets them go when all wait.
fn all_at_once(site: &Site, command: &str, containers: &[Container]) -> Vec<Value> {
    let lock = File::create(site.folder.path().join("ipam.lock")).unwrap();
    lock.lock().unwrap();
    thread::scope(|scope| {
        let calls: Vec<_> = containers
            .iter()
            .map(|container| scope.spawn(|| site.calico(command, container, &json!({}))))
            .collect();
        let end = Instant::now() + PATIENCE;
        while waiting(site) < containers.len() {
            assert!(Instant::now() < end, "{} wait", waiting(site));
            thread::sleep(Duration::from_millis(10));
        }
        lock.unlock().unwrap();
        let answers = calls.into_iter().map(|call| call.join().unwrap());
        answers.map(|answer| answer.unwrap()).collect()
    })
}

/// How often the only block was written.
fn writes(site: &Site) -> u64 {
    let arguments = [
        "get",
        "--prefix",
        "-w",
        "json",
        "/calico/ipam/v2/assignment/",
    ];
    let listed = site.node.namespace().run(|| site.etcd.etcdctl(&arguments));
    let blocks: Value = serde_json::from_str(&listed.unwrap().unwrap()).unwrap();
    assert_eq!(blocks["kvs"].as_array().unwrap().len(), 1, "{blocks}");
    blocks["kvs"][0]["version"].as_u64().unwrap()
}

#[test]
fn all_that_wait_are_served_in_one_write() {
    let mut site = site();
    let pods: Vec<Container> = (0..AT_ONCE)
        .map(|i| Container::of_pod(&format!("c{i}"), "shop", &format!("web-{i}")))
        .collect();
    let found = all_at_once(&site, "ADD", &pods);
    let found: BTreeSet<String> = found.iter().flat_map(addresses).collect();
    assert_eq!(found.len(), AT_ONCE, "{found:?}");
    // The block is claimed, written for the first that comes, and for all the others.
    let after_adding = writes(&site);
    assert!(after_adding <= 5, "{after_adding} writes");
    assert_eq!(waiting(&site), 0);

    all_at_once(&site, "DEL", &pods);
    assert_eq!(waiting(&site), 0);
    let after_deleting = writes(&site);
    assert!(
        after_deleting - after_adding <= 5,
        "{after_deleting} writes"
    );
    site.assert_nothing_left();
}

#[test]
fn nothing_is_done_for_a_plugin_that_has_ended() {
    let mut site = site();
    let wish = json!({"datastore": site.etcd.endpoint(), "job": {"assign": {
        "num4": 1, "num6": 0, "handle": "net.gone", "attributes": {}, "host": "n1", "pools4": [], "pools6": [],
        "used_for": "Workload", "namespace_labels": null, "max_blocks_per_host": 0, "max_per_handle": 1,
        "reserved4": null, "reserved6": null,
    }}});
    fs::create_dir(queue(&site)).unwrap();
    let file = queue(&site).join("1-1");
    fs::write(&file, wish.to_string()).unwrap();
    fs::write(queue(&site).join("2-2.done"), "[]").unwrap();
    let live = queue(&site).join("3-3");
    fs::write(&live, wish.to_string().replace("net.gone", "net.live")).unwrap();
    let locked = File::open(&live).unwrap();
    locked.lock().unwrap();

    let pod = Container::of_pod("c1", "shop", "web");
    site.calico("ADD", &pod, &json!({})).unwrap();
    assert_eq!(
        site.keys("/calico/ipam/v2/handle/"),
        [
            "/calico/ipam/v2/handle/net.c1",
            "/calico/ipam/v2/handle/net.live"
        ]
    );
    assert!(!file.exists() && !queue(&site).join("2-2.done").exists());
    let done: Value =
        serde_json::from_slice(&fs::read(live.with_extension("done")).unwrap()).unwrap();
    assert_eq!(done.as_array().unwrap().len(), 1, "{done}");
    site.calico("DEL", &pod, &json!({})).unwrap();
    assert_eq!(site.interfaces(), Vec::<String>::new());
}

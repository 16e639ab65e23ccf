//! Where addresses come from.

use std::collections::BTreeSet;
use std::thread;

use serde_json::json;

use crate::cni::site::{Container, Site, addresses};

#[test]
fn the_plugin_for_addresses_works_on_its_own() {
    let site = Site::new();
    let container = Container::of_pod("c1", "shop", "web");
    let result = site
        .plugin("calico-ipam", "ADD", &container, &json!({}))
        .unwrap();
    let address = result["ips"][0]["address"].as_str().unwrap();
    // With the length of its block's network.
    assert!(
        address.starts_with("10.65.0.") && address.ends_with("/29"),
        "{address}"
    );
    assert_eq!(result["routes"][0]["dst"], address);
    let again = site
        .plugin("calico-ipam", "ADD", &container, &json!({}))
        .unwrap();
    assert_eq!(addresses(&result), addresses(&again));
    assert_eq!(
        site.keys("/calico/ipam/v2/handle/"),
        ["/calico/ipam/v2/handle/net.c1"]
    );
    let changes = json!({"cniVersion": "1.1.0"});
    site.plugin("calico-ipam", "CHECK", &container, &changes)
        .unwrap();
    for _ in 0..2 {
        site.plugin("calico-ipam", "DEL", &container, &json!({}))
            .unwrap();
        assert_eq!(site.allocations(), 0);
    }
    let (_, message) = site
        .plugin("calico-ipam", "CHECK", &container, &changes)
        .unwrap_err();
    assert!(message.contains("net.c1"), "{message}");
}

#[test]
fn a_particular_address_can_be_asked_for() {
    let site = Site::new();
    let mut container = Container::new("c1");
    container.arguments = "IP=10.65.0.42".to_owned();
    for _ in 0..2 {
        let result = site
            .plugin("calico-ipam", "ADD", &container, &json!({}))
            .unwrap();
        assert_eq!(addresses(&result), ["10.65.0.42"]);
    }
    let other = Container {
        arguments: container.arguments.clone(),
        ..Container::new("c2")
    };
    let (code, message) = site
        .plugin("calico-ipam", "ADD", &other, &json!({}))
        .unwrap_err();
    assert_eq!(code, 102);
    assert!(message.contains("10.65.0.42"), "{message}");
    let wrong = Container {
        arguments: "IP=10.65.0".to_owned(),
        ..Container::new("c3")
    };
    let (code, message) = site
        .plugin("calico-ipam", "ADD", &wrong, &json!({}))
        .unwrap_err();
    assert_eq!(code, 4);
    assert!(message.contains("10.65.0"), "{message}");
}

#[test]
fn pools_are_named_by_cidr_or_name() {
    let site = Site::new();
    let add = |id: &str, pools: &[&str]| {
        let changes = json!({"ipam": {"ipv4_pools": pools}});
        site.plugin("calico-ipam", "ADD", &Container::new(id), &changes)
    };
    for (id, pool) in [("a", "other"), ("b", "10.66.0.0/26")] {
        let found = addresses(&add(id, &[pool]).unwrap());
        assert!(found[0].starts_with("10.66.0."), "{found:?}");
    }
    for pool in ["nowhere", "six", "fd00:65::/112"] {
        let (_, message) = add("c", &[pool]).unwrap_err();
        assert!(message.contains(pool), "{message}");
    }
}

#[test]
fn many_containers_at_once_get_different_addresses() {
    let mut site = Site::new();
    let containers: Vec<Container> = (0..12).map(|i| Container::new(&format!("c{i}"))).collect();
    let found: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = containers
            .iter()
            .map(|container| scope.spawn(|| site.calico("ADD", container, &json!({})).unwrap()))
            .collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.flat_map(|result| addresses(&result)).collect()
    });
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 12);
    for (container, address) in containers.iter().zip(&found) {
        site.assert_reachable(container, address);
    }
    thread::scope(|scope| {
        for container in &containers {
            scope.spawn(|| site.calico("DEL", container, &json!({})).unwrap());
        }
    });
    site.assert_nothing_left();
}

#[test]
fn another_plugin_may_find_the_addresses() {
    let mut site = Site::new();
    let container = Container::of_pod("c1", "shop", "web");
    let changes = json!({"cniVersion": "0.4.0", "ipam": {
        "type": "host-local", "subnet": "10.77.0.0/24", "dataDir": site.folder.path().join("host-local"),
        "routes": [{"dst": "192.0.2.0/24"}],
    }});
    let result = site.calico("ADD", &container, &changes).unwrap();
    assert_eq!(addresses(&result), ["10.77.0.2"]);
    assert_eq!(result["ips"][0]["gateway"], serde_json::Value::Null);
    site.assert_reachable(&container, "10.77.0.2");
    let check = json!({"cniVersion": "0.4.0", "ipam": changes["ipam"], "prevResult": result});
    site.calico("CHECK", &container, &check).unwrap();
    site.calico("DEL", &container, &changes).unwrap();
    site.assert_nothing_left();

    let missing = json!({"ipam": {"type": "no-such-plugin"}});
    let (code, message) = site.calico("ADD", &container, &missing).unwrap_err();
    assert_eq!(code, 7);
    assert!(message.contains("`no-such-plugin`"), "{message}");
    let wrong = json!({"ipam": {"type": "host-local", "subnet": "10.77.0.0/99"}});
    let (code, message) = site.calico("ADD", &container, &wrong).unwrap_err();
    assert_eq!(code, 102);
    assert!(message.contains("10.77.0.0/99"), "{message}");
    site.assert_nothing_left();
}

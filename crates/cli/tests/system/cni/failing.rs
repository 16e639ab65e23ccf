//! An ADD that fails, wherever it does, leaves nothing.

use std::os::fd::AsFd as _;

use serde_json::json;
use tortie_kernel::route::{Route, Scope};

use crate::cni::site::{Container, Site};

#[test]
fn without_free_addresses_nothing_is_left() {
    let mut site = Site::new();
    // The pool for IPv6 has addresses, but the other one is used up.
    let full = json!({"ipam": {"ipv4_pools": ["10.67.0.0/30"], "assign_ipv6": "true"}});
    site.tortie(
        &["apply", "-f", "-"],
        "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {name: tiny}\nspec: {cidr: 10.67.0.0/30, blockSize: 30, nodeSelector: '!all()'}\n",
    );
    let containers: Vec<Container> = (0..5).map(|i| Container::new(&format!("c{i}"))).collect();
    for container in &containers[..4] {
        site.calico("ADD", container, &full).unwrap();
    }
    let (code, message) = site.calico("ADD", &containers[4], &full).unwrap_err();
    assert_eq!(code, 102);
    assert!(message.contains("IPv4"), "{message}");
    assert_eq!(site.allocations(), 8);
    assert_eq!(site.interfaces().len(), 4);
    for container in &containers {
        site.calico("DEL", container, &full).unwrap();
    }
    site.assert_nothing_left();
}

#[test]
fn where_the_interface_cannot_be_made_nothing_is_left() {
    let mut site = Site::new();
    let container = Container::new("taken");
    // The container has such an interface already, which is not ours.
    let namespace = container.namespace.as_fd();
    let create = |batch: &mut tortie_kernel::route::Batch| {
        batch.create_veth("foreign", "eth0", namespace);
    };
    site.node.socket().execute(create).unwrap();
    let (code, message) = site.calico("ADD", &container, &json!({})).unwrap_err();
    assert_eq!(code, 103);
    assert!(message.contains("`eth0`"), "{message}");
    site.assert_nothing_left();
    assert!(site.node.socket().link("foreign").unwrap().is_some());
}

#[test]
fn where_the_node_has_another_route_nothing_is_left() {
    let mut site = Site::new();
    let uplink = site.node.socket().link("uplink").unwrap().unwrap().index;
    let route = Route {
        device: Some(uplink),
        scope: Scope::LINK,
        ..Route::to("10.99.0.1/32".parse().unwrap())
    };
    site.node
        .socket()
        .execute(|batch| batch.add_route(&route))
        .unwrap();
    let container = Container::new("route");
    let changes = json!({"ipam": {
        "type": "host-local", "ranges": [[{"subnet": "10.99.0.0/24", "rangeStart": "10.99.0.1"}]],
        "dataDir": site.folder.path().join("host-local"),
    }});
    // The first address of a range is the gateway's, so that is moved.
    let mut changes = changes;
    changes["ipam"]["ranges"][0][0]["gateway"] = "10.99.0.254".into();
    let (code, message) = site.calico("ADD", &container, &changes).unwrap_err();
    assert_eq!(code, 103, "{message}");
    assert!(
        message.contains("10.99.0.1") && message.contains("`uplink`"),
        "{message}"
    );
    site.assert_nothing_left();
    let reserved = site.folder.path().join("host-local/net/10.99.0.1");
    assert!(!reserved.exists());
}

#[test]
fn what_is_wrong_from_the_start_is_refused_before_anything_is_done() {
    let mut site = Site::new();
    let container = Container::new("c1");
    let mut refused = |changes: serde_json::Value, code: u64, expected: &str| {
        let (found, message) = site.calico("ADD", &container, &changes).unwrap_err();
        assert_eq!(found, code, "{message}");
        assert!(message.contains(expected), "{message}");
        site.assert_nothing_left();
    };
    refused(json!({"cniVersion": "2.0.0"}), 1, "`2.0.0`");
    refused(json!({"mtu": "many"}), 6, "`mtu`");
    refused(json!({"name": "a b"}), 7, "`a b`");
    refused(json!({"device_type": "tap"}), 7, "`tap`");
    refused(json!({"dataplane_options": {"type": "grpc"}}), 2, "grpc");
    refused(
        json!({"nodename_file_optional": false, "nodename_file": "/nonexistent"}),
        11,
        "/nonexistent",
    );
    refused(json!({"etcd_endpoints": "http://127.0.0.1:1"}), 11, "");
    refused(json!({"ipam": {"assign_ipv4": "false"}}), 7, "assign_ipv4");
    refused(
        json!({"feature_control": {"ip_addrs_no_ipam": true}}),
        7,
        "ip_addrs_no_ipam",
    );
    refused(json!({"readiness_gates": ["nonsense"]}), 7, "`nonsense`");
}

#[test]
fn the_nodes_own_namespace_and_missing_ones_are_refused() {
    let mut site = Site::new();
    let config = site.config(&json!({})).to_string();
    let own = tortie_testkit::cni::path(site.node.namespace());
    for namespace in [own.as_str(), "/nonexistent/netns"] {
        let call = tortie_testkit::cni::Call {
            command: "ADD",
            container: "c1",
            namespace: namespace.to_owned(),
            interface: "eth0",
            arguments: "",
            config: config.clone(),
        };
        let (code, message) = site.runtime.call("calico", &call).unwrap().unwrap_err();
        assert_eq!(code, 8, "{message}");
        assert!(message.contains(namespace), "{message}");
    }
    site.assert_nothing_left();
}

#[test]
fn a_datastore_that_is_not_ready_serves_nobody() {
    let mut site = Site::empty();
    let container = Container::new("c1");
    let (_, message) = site.calico("ADD", &container, &json!({})).unwrap_err();
    assert!(message.contains("ClusterInformation"), "{message}");
    site.tortie(&["apply", "-f", "-"], crate::cni::site::POOLS);
    let patch = |ready: bool| format!("{{\"spec\": {{\"datastoreReady\": {ready}}}}}");
    let set = |site: &Site, ready| {
        let change = patch(ready);
        site.tortie(
            &["patch", "clusterinformation", "default", "-p", &change],
            "",
        );
    };
    set(&site, false);
    for command in ["ADD", "DEL"] {
        let (code, message) = site.calico(command, &container, &json!({})).unwrap_err();
        assert_eq!(code, 11);
        assert!(message.contains("not ready"), "{message}");
    }
    site.assert_nothing_left();
    set(&site, true);
    site.calico("ADD", &container, &json!({})).unwrap();
}

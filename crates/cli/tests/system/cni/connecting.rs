//! Containers are connected, can talk, and leave nothing behind.

use std::process::Command;

use serde_json::{Value, json};
use tortie_api::names::veth_name;

use crate::cni::site::{Container, Site, addresses, run_in};

#[test]
fn a_container_talks_with_its_node_and_goes_without_a_trace() {
    let mut site = Site::new();
    let container = Container::new("c0123456789abcdef");
    let result = site.calico("ADD", &container, &json!({})).unwrap();

    assert_eq!(result["cniVersion"], "1.0.0");
    assert_eq!(result["interfaces"][0]["name"], "calic0123456789");
    assert_eq!(result["interfaces"][1]["name"], "eth0");
    let found = addresses(&result);
    assert_eq!(
        result["ips"],
        json!([{"interface": 1, "address": format!("{}/32", found[0])}])
    );
    site.assert_reachable(&container, &found[0]);

    let endpoint = &site.resources("workloadendpoint")[0];
    let spec = &endpoint["spec"];
    assert_eq!(
        endpoint["metadata"]["name"],
        "n1-cni-c0123456789abcdef-eth0"
    );
    assert_eq!(spec["ipNetworks"], json!([format!("{}/32", found[0])]));
    assert_eq!(spec["containerID"], "c0123456789abcdef");
    assert_eq!(spec["interfaceName"], "calic0123456789");
    assert_eq!(spec["mac"], result["interfaces"][1]["mac"]);
    assert_eq!(spec["profiles"], json!(["net"]));
    let text = site.tortie(&["get", "profile", "net", "-o", "json"], "");
    let profile: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        profile["spec"]["ingress"][0]["source"]["selector"],
        "has(net)"
    );

    let mac = site
        .node
        .socket()
        .link("calic0123456789")
        .unwrap()
        .unwrap()
        .mac;
    assert_eq!(mac.unwrap().to_string(), "ee:ee:ee:ee:ee:ee");
    for _ in 0..2 {
        site.calico("DEL", &container, &json!({})).unwrap();
        site.assert_nothing_left();
    }
}

#[test]
fn a_container_has_addresses_of_both_families() {
    let mut site = Site::new();
    let container = Container::new("both");
    let changes = json!({"ipam": {"assign_ipv6": "true"}, "mtu": 1400, "num_queues": 2,
        "container_settings": {"allow_ip_forwarding": true}});
    let result = site.calico("ADD", &container, &changes).unwrap();
    let found = addresses(&result);
    assert_eq!(found.len(), 2);
    assert_eq!(result["interfaces"][1]["mtu"], 1400);
    for address in &found {
        site.assert_reachable(&container, address);
    }
    let link = site.node.socket().link("caliboth").unwrap().unwrap();
    assert_eq!(link.mtu, 1400);
    let mut ip = Command::new("ip");
    ip.args(["-j", "-d", "link", "show", "caliboth"]);
    let shown: Value = serde_json::from_str(&run_in(site.node.namespace(), ip, "")).unwrap();
    assert_eq!(shown[0]["num_tx_queues"], 2);
    assert_eq!(shown[0]["num_rx_queues"], 2);
    let forwarding = container.namespace.run(|| {
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        [
            read("/proc/sys/net/ipv4/ip_forward"),
            read("/proc/sys/net/ipv6/conf/all/forwarding"),
        ]
    });
    assert_eq!(forwarding.unwrap(), ["1\n", "1\n"]);
    site.calico("DEL", &container, &changes).unwrap();
    site.assert_nothing_left();
}

#[test]
fn only_ipv6_is_possible() {
    let mut site = Site::new();
    let container = Container::new("six");
    let changes = json!({"ipam": {"assign_ipv4": "false", "assign_ipv6": "true"}});
    let found = addresses(&site.calico("ADD", &container, &changes).unwrap());
    assert_eq!(found.len(), 1);
    site.assert_reachable(&container, &found[0]);
    site.calico("DEL", &container, &changes).unwrap();
    site.assert_nothing_left();
}

#[test]
fn the_same_container_gets_the_same_again() {
    let mut site = Site::new();
    let container = Container::of_pod("one", "shop", "web-1");
    let first = site.calico("ADD", &container, &json!({})).unwrap();
    let second = site.calico("ADD", &container, &json!({})).unwrap();
    assert_eq!(addresses(&first), addresses(&second));
    assert_eq!(site.interfaces(), [veth_name("shop", "web-1", "cali")]);
    assert_eq!(site.allocations(), 1);
    site.assert_reachable(&container, &addresses(&second)[0]);
    site.calico("DEL", &container, &json!({})).unwrap();
    site.assert_nothing_left();
}

#[test]
fn the_end_of_a_pods_old_container_leaves_its_new_one_alone() {
    let mut site = Site::new();
    let old = Container::of_pod("old", "shop", "web");
    let new = Container::of_pod("new", "shop", "web");
    site.calico("ADD", &old, &json!({})).unwrap();
    let found = addresses(&site.calico("ADD", &new, &json!({})).unwrap());
    site.calico("DEL", &old, &json!({})).unwrap();
    let endpoint = &site.resources("workloadendpoint")[0];
    assert_eq!(endpoint["spec"]["containerID"], "new");
    assert_eq!(site.allocations(), 1);
    site.assert_reachable(&new, &found[0]);
    site.calico("DEL", &new, &json!({})).unwrap();
    site.assert_nothing_left();
}

#[test]
fn results_have_the_form_of_the_version_that_was_asked_for() {
    let site = Site::new();
    for version in [
        "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
    ] {
        let container = Container::new(&format!("v{}", version.replace('.', "")));
        let changes = json!({ "cniVersion": version });
        let result = site.calico("ADD", &container, &changes).unwrap();
        assert_eq!(result["cniVersion"], version);
        let is_old = version < "0.3.0";
        assert_eq!(result.get("ip4").is_some(), is_old, "{result}");
        assert_eq!(result.get("ips").is_some(), !is_old, "{result}");
        let family = result.pointer("/ips/0/version").is_some();
        assert_eq!(family, !is_old && version < "1.0.0", "{result}");
        site.calico("DEL", &container, &changes).unwrap();
    }
}

#[test]
fn a_container_joins_another_network_by_its_profile_alone() {
    let mut site = Site::new();
    let container = Container::new("joins");
    let first = site.calico("ADD", &container, &json!({})).unwrap();
    let second = site
        .calico("ADD", &container, &json!({"name": "other"}))
        .unwrap();
    assert_eq!(addresses(&first), addresses(&second));
    let endpoint = &site.resources("workloadendpoint")[0];
    assert_eq!(endpoint["spec"]["profiles"], json!(["net", "other"]));
    assert_eq!(site.interfaces().len(), 1);
}

#[test]
fn addresses_are_given_back_where_the_namespace_is_gone() {
    let mut site = Site::new();
    let container = Container::new("gone");
    site.calico("ADD", &container, &json!({})).unwrap();
    let call = |namespace: &str| tortie_testkit::cni::Call {
        command: "DEL",
        container: "gone",
        namespace: namespace.to_owned(),
        interface: "eth0",
        arguments: "",
        config: site.config(&json!({})).to_string(),
    };
    let answer = site
        .runtime
        .call("calico", &call("/var/run/netns/nowhere"))
        .unwrap();
    answer.unwrap();
    let answer = site.runtime.call("calico", &call("")).unwrap();
    answer.unwrap();
    site.assert_nothing_left();
}

//! Nodes, host endpoints and pods in the network of their host.

use super::{SHOP, allowed, denied, deny_all, json, pod, refused};

const NODE: &str = "\
---
apiVersion: v1
kind: Node
metadata: {name: n3}
status: {addresses: [{type: InternalIP, address: 192.168.0.3}, {type: Hostname, address: n3}]}
";

fn host_endpoint(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: projectcalico.org/v3\nkind: HostEndpoint\n\
         metadata: {{name: {name}, labels: {{name: {name}}}}}\nspec: {{node: n3, {spec}}}\n"
    )
}

#[test]
fn a_host_without_a_host_endpoint_has_no_policy() {
    let world = format!("{SHOP}{NODE}{}", deny_all("shop"));
    let answer = json(0, &world, &["shop/api", "host/n3"]);
    assert_eq!(answer["ingress"]["endpoint"], serde_json::Value::Null);
    let text = denied(&world, &["host/n3", "shop/db"]);
    assert!(text.contains("host/n3 (192.168.0.3) to"), "{text}");
    // Nodes are also known by the pods on them.
    denied(&world, &["host/n2", "shop/db"]);
}

#[test]
fn an_address_of_a_node_is_its_host_endpoint() {
    let world = format!(
        "{SHOP}{NODE}{}",
        host_endpoint("n3-all", "interfaceName: '*'")
    );
    for to in ["192.168.0.3", "host/n3", "host/n3-all"] {
        let answer = json(2, &world, &["shop/api", to, "-p", "TCP", "--port", "80"]);
        assert_eq!(answer["ingress"]["endpoint"], "host/n3-all", "{to}");
    }
    allowed(
        &world,
        &["shop/api", "host/n3", "-p", "TCP", "--port", "22"],
    );
}

#[test]
fn of_several_host_endpoints_the_expected_address_decides() {
    let all = host_endpoint("all", "interfaceName: '*'");
    let eth0 = host_endpoint("eth0", "interfaceName: eth0, expectedIPs: [192.168.0.3]");
    let eth1 = host_endpoint("eth1", "interfaceName: eth1, expectedIPs: [172.16.0.3]");
    let eth2 = host_endpoint("eth2", "interfaceName: eth2");
    let endpoint = |world: &str, to: &str| {
        let answer = json(2, world, &["shop/api", to, "-p", "TCP", "--port", "80"]);
        answer["ingress"]["endpoint"].clone()
    };
    let world = format!("{SHOP}{NODE}{all}{eth0}{eth1}");
    assert_eq!(endpoint(&world, "host/n3"), "host/eth0");
    assert_eq!(endpoint(&world, "172.16.0.3"), "host/eth1");
    assert_eq!(endpoint(&world, "host/eth1"), "host/eth1");
    let world = format!("{SHOP}{NODE}{all}{eth1}{eth2}");
    assert_eq!(endpoint(&world, "host/n3"), "host/all");
    let world = format!("{SHOP}{NODE}{eth1}{eth2}");
    refused(
        &world,
        &["shop/api", "host/n3"],
        &["node `n3` is ambiguous", "`host/eth1` or `host/eth2`"],
    );
    assert_eq!(
        endpoint(&format!("{SHOP}{NODE}{eth2}"), "host/n3"),
        "host/eth2"
    );
}

#[test]
fn a_name_of_a_node_and_of_another_nodes_endpoint_is_ambiguous() {
    let world = format!("{SHOP}{NODE}{}", host_endpoint("n1", "interfaceName: '*'"));
    refused(
        &world,
        &["shop/api", "host/n1"],
        &["`host/n1` is ambiguous", "node `n3`"],
    );
}

#[test]
fn a_pod_in_the_network_of_its_host_counts_as_the_host() {
    let agent = pod("shop/agent", "n3", &["192.168.0.3"], ", hostNetwork: true");
    let policy = deny_all("shop");
    let world = format!("{SHOP}{NODE}{agent}{policy}");
    let answer = json(0, &world, &["blog/api", "shop/agent"]);
    assert_eq!(answer["ingress"]["endpoint"], serde_json::Value::Null);
    let text = denied(&world, &["shop/agent", "shop/db"]);
    assert!(text.contains("shop/agent (192.168.0.3)"), "{text}");
    let world = format!("{world}{}", host_endpoint("all", "interfaceName: '*'"));
    let answer = json(
        2,
        &world,
        &["blog/api", "shop/agent", "-p", "UDP", "--port", "9"],
    );
    assert_eq!(answer["ingress"]["endpoint"], "host/all");
    // Without the node, the pod tells its address.
    let text = denied(&format!("{SHOP}{agent}{policy}"), &["host/n3", "shop/db"]);
    assert!(text.contains("host/n3 (192.168.0.3)"), "{text}");
}

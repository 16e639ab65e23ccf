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

/// Policy of hosts, for all that has this name.
fn host_policy(name: &str, more: &str) -> String {
    format!(
        "---\napiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {{name: {name}}}\n\
         spec: {{selector: has(name), {more}}}\n"
    )
}

fn felix(spec: &str) -> String {
    format!(
        "---\napiVersion: projectcalico.org/v3\nkind: FelixConfiguration\nmetadata: {{name: default}}\nspec: {{{spec}}}\n"
    )
}

#[test]
fn what_pods_send_to_their_own_node_is_configured() {
    let local = pod("shop/local", "n3", &["10.0.0.7"], "");
    let world = format!("{SHOP}{NODE}{local}");
    let question = ["shop/local", "host/n3", "-p", "TCP", "--port", "80"];
    let text = denied(&world, &question);
    for piece in [
        "To allow it: defaultEndpointToHostAction of node n3 must be Accept or Return",
        "Deny: defaultEndpointToHostAction of node n3 is Drop, its default",
    ] {
        assert!(text.contains(piece), "{text}");
    }
    for action in ["Accept", "Return"] {
        let world = format!(
            "{world}{}",
            felix(&format!("defaultEndpointToHostAction: {action}"))
        );
        allowed(&world, &question);
        // The pod's own policy comes first, and host endpoints are not asked.
        let host = host_endpoint("all", "interfaceName: '*'");
        allowed(&format!("{world}{host}"), &question);
        let deny = deny_all("shop").replace("[Ingress]", "[Egress]");
        denied(&format!("{world}{deny}"), &question);
    }
    // Another node is not its own.
    allowed(
        &world,
        &["shop/api", "host/n3", "-p", "TCP", "--port", "80"],
    );
}

#[test]
fn a_node_always_reaches_its_own_pods() {
    let local = pod("shop/local", "n3", &["10.0.0.7"], "");
    let world = format!("{SHOP}{NODE}{local}{}", deny_all("shop"));
    let answer = json(
        0,
        &world,
        &["host/n3", "shop/local", "-p", "TCP", "--port", "80"],
    );
    assert_eq!(answer["ingress"]["by"]["type"], "ownNode");
    denied(
        &world,
        &["host/n1", "shop/local", "-p", "TCP", "--port", "80"],
    );
}

#[test]
fn forwarded_packets_meet_policies_for_them() {
    let local = pod("shop/local", "n3", &["10.0.0.7"], "");
    let host = host_endpoint("n3-all", "interfaceName: '*'");
    let question = ["203.0.113.7", "shop/local", "-p", "TCP", "--port", "22"];
    let world = |more: &str| format!("{SHOP}{NODE}{local}{host}{more}");
    // Policies of a host are for the host alone, and failsafe ports too.
    allowed(
        &world(&host_policy(
            "p",
            "types: [Ingress], ingress: [{action: Deny}]",
        )),
        &question,
    );
    for (more, point) in [
        (
            "applyOnForward: true, types: [Ingress], ingress: [{action: Deny}]",
            "forward",
        ),
        (
            "applyOnForward: true, types: [Egress], egress: [{action: Deny}]",
            "forward",
        ),
    ] {
        let answer = json(2, &world(&host_policy("p", more)), &question);
        let stage = &answer["onTheWay"][0];
        assert_eq!(
            (&stage["node"], &stage["endpoint"]),
            (&"n3".into(), &"host/n3-all".into())
        );
        assert_eq!(stage["by"]["point"], point);
        assert_eq!(answer["ingress"]["verdict"], "Allow");
    }
    let text = denied(
        &world(&host_policy(
            "p",
            "preDNAT: true, applyOnForward: true, types: [Ingress], ingress: [{action: Deny, protocol: TCP, destination: {ports: [80]}}]",
        )),
        &["203.0.113.7", "shop/local", "-p", "TCP", "--port", "80"],
    );
    let place = "On node n3, coming in, before destination NAT: denied\n";
    assert!(text.contains(place), "{text}");
    // What is accepted before NAT is not asked about where it is forwarded.
    let accept = host_policy(
        "a",
        "preDNAT: true, applyOnForward: true, types: [Ingress], ingress: [{action: Allow}]",
    );
    let deny = host_policy(
        "b",
        "applyOnForward: true, types: [Ingress], ingress: [{action: Deny}]",
    );
    let other_port = ["203.0.113.7", "shop/local", "-p", "TCP", "--port", "80"];
    allowed(&world(&format!("{accept}{deny}")), &other_port);
    denied(&world(&deny), &other_port);
    // Failsafe ports are not asked about before NAT, and count for nothing where packets are forwarded.
    denied(&world(&format!("{accept}{deny}")), &question);
    // Packets in tunnels come by an interface of their own.
    let named = host_endpoint("n3-eth0", "interfaceName: eth0, expectedIPs: [192.168.0.3]");
    let pool = "---\napiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {name: p}\nspec: {cidr: 10.0.0.0/16, vxlanMode: Always}\n";
    let world = format!("{SHOP}{NODE}{local}{named}{deny}");
    let between = ["shop/api", "shop/local", "-p", "TCP", "--port", "80"];
    denied(&world, &between);
    allowed(&format!("{world}{pool}"), &between);
}

#[test]
fn failsafe_ports_are_those_of_the_configuration() {
    let world = format!("{SHOP}{NODE}{}", host_endpoint("all", "interfaceName: '*'"));
    let to = |port: &'static str| ["203.0.113.7", "host/n3", "-p", "TCP", "--port", port];
    let text = allowed(&world, &to("22"));
    assert!(
        text.contains("To deny it: tcp:22 must leave failsafeInboundHostPorts"),
        "{text}"
    );
    denied(&world, &to("80"));
    let world = format!(
        "{world}{}",
        felix("failsafeInboundHostPorts: [{protocol: tcp, port: 80}]")
    );
    denied(&world, &to("22"));
    allowed(&world, &to("80"));
}

//! Policy for the node itself.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tortie_api::Kind;
use tortie_testkit::net::{self, Dialogue};

use crate::e2e::agent::RunningAgent;
use crate::e2e::flow::{Flow, Machine, eventually};
use crate::e2e::objects::{OPEN, host_endpoint, labelled, policy};
use crate::e2e::planes::Plane;
use crate::e2e::setting::{NODE, Setting};

on_all_data_planes!(
    policy_decides_what_the_node_receives_and_sends,
    policy_before_translation_sees_the_original_destination,
    policy_without_tracking_judges_both_directions_apart,
);

on_both_data_planes!(
    failsafe_ports_cannot_be_cut_by_any_policy,
    forwarded_traffic_is_judged_only_by_policies_for_it,
    an_endpoint_for_all_interfaces_covers_each_of_them,
    an_endpoint_is_found_by_name_or_address_when_its_interface_comes,
);

/// A pod, a machine outside, and the node as that sees it, with a host endpoint for the interface between them.
struct Border {
    setting: Setting,
    pod: Machine,
    outside: Machine,
    node: Machine,
}

impl Border {
    /// The border, with an agent for which the node and the machine outside know each other.
    fn guarded(plane: Plane) -> (Self, RunningAgent) {
        let mut border = Self::new();
        let agent = border.setting.start_agent(plane, &[]);
        let (outside, node) = (&border.outside, &border.node);
        let both = [(outside.tcp(node, 80), true), (node.tcp(outside, 80), true)];
        border.setting.await_flows(&both);
        (border, agent)
    }

    fn new() -> Self {
        let mut setting = Setting::new();
        let pod = setting.add_pod("pod", 1, &json!({"role": "pod"}));
        let (outside, node) = setting.add_external("ext0", 1);
        let labels = json!({"role": "host"});
        setting.put(host_endpoint("border", "ext0", &labels));
        Self {
            setting,
            pod,
            outside,
            node,
        }
    }
}

/// A policy for the node's interface.
fn host_policy(name: &str, spec: &Value) -> tortie_api::Resource {
    let mut whole = json!({"selector": "role == 'host'"});
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    policy(name, &whole)
}

/// Whether an answer came. Asks again if a signal interrupted the waiting, or if a program that another thread is about to
/// start still has the last listener open.
fn answer(mut ask: impl FnMut() -> net::Result<bool>) -> bool {
    let once_more = (0..20).find_map(|_| {
        let answered = ask().ok();
        if answered.is_none() {
            thread::sleep(Duration::from_millis(50));
        }
        answered
    });
    once_more.unwrap_or_else(|| ask().unwrap())
}

fn allow_tcp(port: u16) -> Value {
    json!([{"action": "Allow", "protocol": "TCP", "destination": {"ports": [port]}}])
}

fn policy_decides_what_the_node_receives_and_sends(plane: Plane) {
    let (border, _agent) = Border::guarded(plane);
    let Border {
        mut setting,
        pod,
        outside,
        node,
    } = border;
    let all = [
        outside.tcp(&node, 8000),
        outside.tcp(&node, 8001),
        node.tcp(&outside, 9000),
        node.tcp(&outside, 9001),
    ];
    setting.await_flows(&all.map(|flow| (flow, true)));
    setting.put(host_policy(
        "host",
        &json!({
            "types": ["Ingress", "Egress"],
            "ingress": allow_tcp(8000),
            "egress": allow_tcp(9000),
        }),
    ));
    let [in_allowed, in_denied, out_allowed, out_denied] = all;
    let expected = [
        (in_allowed, true),
        (in_denied, false),
        (out_allowed, true),
        (out_denied, false),
        // What is forwarded is not the node's.
        (outside.tcp(&pod, 8001), true),
        (pod.tcp(&outside, 9001), true),
    ];
    setting.await_flows(&expected);
    setting.delete(&host_policy("host", &json!({})));
    setting.await_flows(&expected.map(|(flow, _)| (flow, true)));
}

fn failsafe_ports_cannot_be_cut_by_any_policy(plane: Plane) {
    let (border, _agent) = Border::guarded(plane);
    let Border {
        mut setting,
        outside,
        node,
        ..
    } = border;
    let deny = json!([{"action": "Deny"}]);
    let both = json!({"types": ["Ingress", "Egress"], "ingress": deny, "egress": deny});
    setting.put(host_policy("all", &both));
    let mut first = json!({"applyOnForward": true, "preDNAT": true});
    first["ingress"] = deny.clone();
    setting.put(host_policy("all-before-translation", &first));
    let mut untracked = both.clone();
    untracked["applyOnForward"] = json!(true);
    untracked["doNotTrack"] = json!(true);
    let cut = [
        (outside.tcp(&node, 80), false),
        (outside.udp(&node, 22), false),
        (node.tcp(&outside, 80), false),
    ];
    let mut expected: Vec<(Flow<'_>, bool)> = cut.to_vec();
    for port in [22, 179, 2379, 2380, 5473, 6443, 6666, 6667] {
        expected.push((outside.tcp(&node, port), true));
    }
    for port in [179, 2379, 2380, 5473, 6443, 6666, 6667] {
        expected.push((node.tcp(&outside, port), true));
    }
    expected.push((outside.udp(&node, 68), true));
    expected.push((node.udp(&outside, 53), true));
    expected.push((node.udp(&outside, 67), true));
    setting.await_flows(&expected);
    // Once more where even connections that exist are asked about.
    setting.put(host_policy("all-untracked", &untracked));
    let dialogue = |port| SocketAddr::new(node.ipv4(), port);
    let login = Dialogue::new(&outside.namespace, &node.namespace, dialogue(22));
    let web = Dialogue::new(&outside.namespace, &node.namespace, dialogue(80));
    for _ in 0..5 {
        assert!(answer(|| login.tcp()), "the way to log in is cut");
        assert!(!answer(|| web.tcp()), "port 80 is open");
    }
    setting.check_flows(&expected);
}

fn forwarded_traffic_is_judged_only_by_policies_for_it(plane: Plane) {
    let (border, _agent) = Border::guarded(plane);
    let Border {
        mut setting,
        pod,
        outside,
        node,
    } = border;
    let in_and_out = json!({
        "applyOnForward": true,
        "types": ["Ingress", "Egress"],
        "ingress": allow_tcp(81),
        "egress": allow_tcp(91),
    });
    setting.put(host_policy("forward", &in_and_out));
    setting.await_flows(&[
        (outside.tcp(&pod, 80), false),
        (outside.tcp(&pod, 81), true),
        (pod.tcp(&outside, 90), false),
        (pod.tcp(&outside, 91), true),
        (outside.tcp(&node, 80), false),
        (outside.tcp(&node, 81), true),
    ]);
    setting.delete(&host_policy("forward", &in_and_out));
    setting.await_flows(&[
        (outside.tcp(&pod, 80), true),
        (pod.tcp(&outside, 90), true),
        (outside.tcp(&node, 80), true),
    ]);
}

fn policy_before_translation_sees_the_original_destination(plane: Plane) {
    let Border {
        mut setting,
        pod,
        outside,
        node,
    } = Border::new();
    setting.run("nft", "add table ip translation");
    let chain = "{ type nat hook prerouting priority -100 ; }";
    let add = format!("add chain ip translation prerouting {chain}");
    setting.run("nft", &add);
    for (from, to) in [(30080, 80), (30081, 81)] {
        let to = format!("{}:{to}", pod.ipv4());
        let rule = format!("tcp dport {from} dnat to {to}");
        setting.run("nft", &format!("add rule ip translation prerouting {rule}"));
    }
    // Where packets to the node's address arrive at the pod.
    let service = pod.with_address(node.ipv4());
    let _agent = setting.start_agent(plane, &[]);
    let first = outside.tcp(&service, 30080);
    let second = outside.tcp(&service, 30081);
    setting.await_flows(&[(first, true), (second, true)]);
    let deny = json!([{
        "action": "Deny",
        "protocol": "TCP",
        "source": {"nets": [format!("{}/32", outside.ipv4())]},
        "destination": {"ports": [30080]},
    }]);
    let spec = json!({"applyOnForward": true, "preDNAT": true, "ingress": deny});
    setting.put(host_policy("before-translation", &spec));
    setting.await_flows(&[
        (first, false),
        (second, true),
        // The pod's own port is another one.
        (outside.tcp(&pod, 80), true),
    ]);
    setting.delete(&host_policy("before-translation", &spec));
    setting.await_flows(&[(first, true), (second, true)]);
}

fn policy_without_tracking_judges_both_directions_apart(plane: Plane) {
    let (border, _agent) = Border::guarded(plane);
    let Border {
        mut setting,
        outside,
        node,
        ..
    } = border;
    let ask = |port| {
        let destination = SocketAddr::new(node.ipv4(), port);
        let dialogue = Dialogue::new(&outside.namespace, &node.namespace, destination);
        answer(|| dialogue.udp())
    };
    let deny = json!([{"action": "Deny"}]);
    setting.put(host_policy(
        "tracked",
        &json!({"types": ["Ingress", "Egress"], "ingress": deny, "egress": deny}),
    ));
    setting.await_flows(&[(outside.udp(&node, 8000), false)]);
    let mut spec = json!({
        "applyOnForward": true,
        "doNotTrack": true,
        "types": ["Ingress"],
        "ingress": [{"action": "Allow", "protocol": "UDP", "destination": {"ports": [8000]}}],
    });
    setting.put(host_policy("untracked", &spec));
    setting.await_flows(&[
        (outside.udp(&node, 8000), true),
        (outside.udp(&node, 8001), false),
    ]);
    assert!(
        !ask(8000),
        "an answer came back, though no rule lets it out"
    );
    spec["types"] = json!(["Ingress", "Egress"]);
    spec["egress"] = json!([{"action": "Allow", "protocol": "UDP", "source": {"ports": [8000]}}]);
    setting.put(host_policy("untracked", &spec));
    eventually("an answer comes back", &true, || ask(8000));
    assert!(!ask(8001));
}

fn an_endpoint_for_all_interfaces_covers_each_of_them(plane: Plane) {
    let mut setting = Setting::new();
    let pod = setting.add_pod("pod", 1, &json!({"role": "pod"}));
    let (one, node_at_one) = setting.add_external("ext0", 1);
    let (two, node_at_two) = setting.add_external("ext1", 2);
    let labels = json!({"role": "host"});
    setting.put(host_endpoint("everywhere", "*", &labels));
    let _agent = setting.start_agent(plane, &[]);
    setting.await_flows(&[(one.tcp(&node_at_one, 8001), true)]);
    let with_neighbours = |mut rules: Value| {
        // Without these, nobody with IPv6 would find the node.
        let neighbours = json!({"action": "Allow", "protocol": "ICMPv6", "ipVersion": 6});
        rules.as_array_mut().unwrap().push(neighbours);
        rules
    };
    let spec = json!({
        "types": ["Ingress", "Egress"],
        "ingress": with_neighbours(allow_tcp(8000)),
        "egress": with_neighbours(allow_tcp(9000)),
    });
    setting.put(host_policy("everywhere", &spec));
    let mut expected = vec![
        (one.tcp(&pod, 8001), true),
        (pod.tcp(&two, 9001), true),
        (one.tcp(&two, 8001), true),
    ];
    for (machine, node) in [(&one, &node_at_one), (&two, &node_at_two)] {
        expected.push((machine.tcp(node, 8000), true));
        expected.push((machine.tcp(node, 8001), false));
        expected.push((machine.tcp(node, 22), true));
        expected.push((node.tcp(machine, 9000), true));
        expected.push((node.tcp(machine, 9001), false));
    }
    setting.await_flows(&expected);
    // An interface that comes later is covered from the start.
    let (three, node_at_three) = setting.add_external("ext2", 3);
    setting.check_flows(&[
        (three.tcp(&node_at_three, 8000), true),
        (three.tcp(&node_at_three, 8001), false),
    ]);
}

fn an_endpoint_is_found_by_name_or_address_when_its_interface_comes(plane: Plane) {
    let mut setting = Setting::new();
    let labels = json!({"role": "host"});
    setting.put(host_endpoint("by-name", "ext1", &labels));
    let addresses = json!({"node": NODE, "expectedIPs": ["192.168.2.1"], "profiles": [OPEN]});
    setting.put(labelled(
        Kind::HostEndpoint,
        "",
        "by-address",
        &labels,
        &addresses,
    ));
    let mut spec = json!({"types": ["Ingress"], "ingress": allow_tcp(8000)});
    let neighbours = json!({"action": "Allow", "protocol": "ICMPv6", "ipVersion": 6});
    spec["ingress"].as_array_mut().unwrap().push(neighbours);
    setting.put(host_policy("host", &spec));
    let _agent = setting.start_agent(plane, &[]);
    let mut expected = Vec::new();
    let joined = [(1, true), (2, true), (3, false)].map(|(number, is_covered)| {
        let (machine, node) = setting.add_external(&format!("ext{number}"), number);
        (machine, node, is_covered)
    });
    for (machine, node, is_covered) in &joined {
        expected.push((machine.tcp(node, 8000), true));
        expected.push((machine.tcp(node, 8001), !is_covered));
    }
    setting.await_flows(&expected);
    setting.delete(&host_endpoint("by-name", "ext1", &labels));
    setting.await_flows(&[(joined[0].0.tcp(&joined[0].1, 8001), true)]);
    setting.check_flows(&expected[2..]);
}

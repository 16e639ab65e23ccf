//! `portmap`: with connections from outside, from the node, and from the container itself.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tortie_kernel::sysctl::Sysctl;
use tortie_testkit::net::{Dialogue, External, Namespace, Pod};

use super::{Bench, Whose, connected};
use crate::cni::site::run_in;

const NODE: [&str; 2] = ["198.51.100.1", "2001:db8:5::1"];
const POD: [&str; 2] = ["10.65.0.2", "fd00:65::2"];
const PORT: u16 = 8080;

struct Scene {
    bench: Bench,
    outside: External,
    pod: Pod,
}

impl Scene {
    fn new() -> Self {
        let mut bench = Bench::new();
        let networks = |addresses: [&str; 2]| addresses.map(|address| address.parse().unwrap());
        let outside = bench
            .node
            .add_external(
                "wire",
                &networks(["198.51.100.1/24", "2001:db8:5::1/64"]),
                &networks(["198.51.100.2/24", "2001:db8:5::2/64"]),
            )
            .unwrap();
        let addresses: Vec<IpAddr> = POD.iter().map(|address| address.parse().unwrap()).collect();
        let pod = bench.node.add_pod("cali1", &addresses).unwrap();
        bench.node.route_to(&pod).unwrap();
        Self {
            bench,
            outside,
            pod,
        }
    }

    fn config(&self, mappings: &Value) -> Value {
        let networks = POD
            .map(|address| format!("{address}/{}", if address.contains(':') { 128 } else { 32 }));
        let networks: Vec<&str> = networks.iter().map(String::as_str).collect();
        json!({
            "cniVersion": "1.1.0", "name": "net", "type": "portmap", "snat": true,
            "runtimeConfig": {"portMappings": mappings},
            "prevResult": connected("1.1.0", "cali1", &self.pod.namespace, &networks),
        })
    }

    #[track_caller]
    fn call(&self, command: &str, config: &Value) -> Value {
        let inside = &self.pod.namespace;
        self.bench
            .call(Whose::Ours, "portmap", (command, "c1"), inside, config)
            .unwrap()
    }

    /// Whether the pod is reached through an address of the node.
    fn is_reached(&self, client: &Namespace, address: &str, protocol: &str) -> bool {
        self.is_reached_on(client, address, protocol, PORT)
    }

    fn is_reached_on(&self, client: &Namespace, address: &str, protocol: &str, port: u16) -> bool {
        let address: IpAddr = address.parse().unwrap();
        let pod = POD[usize::from(address.is_ipv6())].parse().unwrap();
        let dialogue = Dialogue {
            listen: SocketAddr::new(pod, 80),
            ..Dialogue::new(client, &self.pod.namespace, SocketAddr::new(address, port))
        };
        match protocol {
            "tcp" => dialogue.tcp().unwrap(),
            _ => dialogue.udp().unwrap(),
        }
    }

    fn node(&self) -> &Namespace {
        self.bench.node.namespace()
    }

    fn tables(&self) -> String {
        self.bench.run(&["nft", "-s", "list", "ruleset"])
    }
}

fn both_protocols() -> Value {
    let mapping =
        |protocol: &str| json!({"hostPort": PORT, "containerPort": 80, "protocol": protocol});
    json!([mapping("tcp"), mapping("udp"), mapping("sctp")])
}

#[test]
fn a_port_of_the_node_leads_to_the_container_until_it_is_gone() {
    let scene = Scene::new();
    let config = scene.config(&both_protocols());
    let outside = &scene.outside.namespace;
    assert!(!scene.is_reached(outside, NODE[0], "tcp"));
    let mut passed_on = config["prevResult"].clone();
    passed_on["cniVersion"] = "1.1.0".into();
    assert_eq!(scene.call("ADD", &config), passed_on);
    let rules = scene.tables();
    scene.call("CHECK", &config);
    for protocol in ["tcp", "udp"] {
        for address in NODE {
            assert!(
                scene.is_reached(outside, address, protocol),
                "{protocol} {address}"
            );
            assert!(
                scene.is_reached(scene.node(), address, protocol),
                "from the node: {protocol} {address}"
            );
            assert!(
                scene.is_reached(&scene.pod.namespace, address, protocol),
                "from itself: {protocol} {address}"
            );
        }
        assert!(
            scene.is_reached(scene.node(), "127.0.0.1", protocol),
            "from localhost: {protocol}"
        );
    }
    // What is not the node's is not taken.
    assert!(!scene.is_reached(scene.node(), "198.51.100.2", "tcp"));

    scene.call("ADD", &config);
    assert_eq!(scene.tables(), rules, "a second ADD changes nothing");
    for _ in 0..2 {
        scene.call("DEL", &config);
        assert!(!scene.is_reached(outside, NODE[0], "tcp"));
        assert!(!scene.tables().contains("dnat"));
    }
    let inside = &scene.pod.namespace;
    let (code, _) = scene
        .bench
        .call(Whose::Ours, "portmap", ("CHECK", "c1"), inside, &config)
        .unwrap_err();
    assert_eq!(code, 104);
}

#[test]
fn a_mapping_may_be_for_one_address_or_under_conditions() {
    let scene = Scene::new();
    let outside = &scene.outside.namespace;
    let one =
        json!([{"hostPort": PORT, "containerPort": 80, "protocol": "TCP", "hostIP": NODE[0]}]);
    scene.call("ADD", &scene.config(&one));
    assert!(scene.is_reached(outside, NODE[0], "tcp"));
    assert!(!scene.is_reached(outside, NODE[1], "tcp"));
    assert!(!scene.is_reached(scene.node(), "127.0.0.1", "tcp"));

    let mut config = scene.config(&both_protocols());
    config["conditionsV4"] = json!(["!", "-s", "198.51.100.2/32"]);
    config["conditionsV6"] = json!(["ip6", "saddr", "2001:db8:5::/64"]);
    scene.call("ADD", &config);
    assert!(!scene.is_reached(outside, NODE[0], "tcp"));
    assert!(scene.is_reached(scene.node(), NODE[0], "tcp"));
    assert!(scene.is_reached(outside, NODE[1], "tcp"));
    config["conditionsV4"] = json!(["-m", "addrtype"]);
    let inside = &scene.pod.namespace;
    let (code, message) = scene
        .bench
        .call(Whose::Ours, "portmap", ("ADD", "c1"), inside, &config)
        .unwrap_err();
    assert_eq!(code, 2);
    assert!(message.contains("addrtype"), "{message}");
}

#[test]
fn a_sender_that_goes_on_gets_to_the_container() {
    let scene = Scene::new();
    let outside = &scene.outside.namespace;
    let pod: IpAddr = POD[0].parse().unwrap();
    let node: IpAddr = NODE[0].parse().unwrap();
    let dialogue = Dialogue {
        source: Some("198.51.100.2:5000".parse().unwrap()),
        listen: SocketAddr::new(pod, 80),
        ..Dialogue::new(outside, &scene.pod.namespace, SocketAddr::new(node, PORT))
    };
    assert!(!dialogue.udp().unwrap());
    let config = scene.config(&both_protocols());
    scene.call("ADD", &config);
    assert!(dialogue.udp().unwrap());
    // Another container gets the port, and the sender its answers.
    scene.call("DEL", &config);
    assert!(!dialogue.udp().unwrap());
}

#[test]
fn what_only_the_node_is_to_reach_stays_so() {
    let scene = Scene::new();
    scene.call("ADD", &scene.config(&both_protocols()));
    // A container that wants to talk to the loopback network of its node.
    let pod = &scene.pod.namespace;
    let prepare = || {
        Sysctl::of_network("net/ipv4/conf/eth0/route_localnet")
            .unwrap()
            .write("1")
    };
    pod.run(prepare).unwrap().unwrap();
    let in_pod = |words: &[&str]| {
        let mut command = Command::new("ip");
        command.args(words);
        run_in(pod, command, "");
    };
    in_pod(&["address", "flush", "dev", "lo"]);
    in_pod(&[
        "route",
        "add",
        "127.0.0.0/8",
        "via",
        "169.254.1.1",
        "dev",
        "eth0",
        "onlink",
    ]);
    let service = scene
        .node()
        .run(|| UdpSocket::bind("127.0.0.1:9999"))
        .unwrap()
        .unwrap();
    service
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let client = pod
        .run(|| UdpSocket::bind(format!("{}:0", POD[0])))
        .unwrap()
        .unwrap();
    let mut buffer = [0; 8];
    client.send_to(b"x", "127.0.0.1:9999").unwrap();
    service.recv(&mut buffer).expect_err("nothing arrives");
    // It is that rule that keeps it out.
    scene
        .bench
        .run(&["nft", "flush", "chain", "ip", "tortie-portmap", "guard"]);
    client.send_to(b"x", "127.0.0.1:9999").unwrap();
    service.recv(&mut buffer).unwrap();
}

#[test]
fn the_newest_container_has_the_port_and_garbage_is_collected() {
    let scene = Scene::new();
    let inside = &scene.pod.namespace;
    let outside = &scene.outside.namespace;
    let config = scene.config(&both_protocols());
    let mut stale = config.clone();
    // It was there before, and its DEL never came.
    stale["prevResult"]["ips"] = json!([{"address": "10.65.0.99/32", "interface": 1}]);
    scene
        .bench
        .call(Whose::Ours, "portmap", ("ADD", "stale"), inside, &stale)
        .unwrap();
    assert!(!scene.is_reached(outside, NODE[0], "tcp"));
    scene.call("ADD", &config);
    assert!(scene.is_reached(outside, NODE[0], "tcp"));
    let mut other = config.clone();
    other["name"] = "other".into();
    other["runtimeConfig"]["portMappings"][0]["hostPort"] = 9090.into();
    scene
        .bench
        .call(Whose::Ours, "portmap", ("ADD", "c2"), inside, &other)
        .unwrap();

    let mut gc = config.clone();
    gc["cni.dev/valid-attachments"] = json!([{"containerID": "c1", "ifname": "eth0"}]);
    scene.call("GC", &gc);
    let rules = scene.tables();
    assert!(!rules.contains("10.65.0.99"), "{rules}");
    assert!(scene.is_reached(outside, NODE[0], "tcp"));
    assert!(scene.is_reached_on(outside, NODE[0], "tcp", 9090));
    gc["cni.dev/valid-attachments"] = json!([]);
    scene.call("GC", &gc);
    assert!(!scene.is_reached(outside, NODE[0], "tcp"));
    assert!(scene.is_reached_on(outside, NODE[0], "tcp", 9090));
    scene.call("STATUS", &config);
}

#[test]
fn without_ports_a_result_is_passed_on_as_the_other_one_does() {
    let scene = Scene::new();
    for version in super::VERSIONS {
        let mut config = scene.config(&json!([]));
        config["cniVersion"] = version.into();
        config["prevResult"] = connected(version, "cali1", &scene.pod.namespace, &["10.65.0.2/32"]);
        let both = [Whose::Ours, Whose::Theirs].map(|whose| {
            scene
                .bench
                .call(
                    whose,
                    "portmap",
                    ("ADD", "c1"),
                    &scene.pod.namespace,
                    &config,
                )
                .unwrap()
        });
        assert_eq!(both[0], both[1], "{version}");
    }
}

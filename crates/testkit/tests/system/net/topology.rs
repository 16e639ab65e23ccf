use std::fs;
use std::path::Path;

use tortie_kernel::link::Mac;
use tortie_testkit::net::{Namespace, Node};

use crate::net::support::{World, address, probe, run, udp};

#[test]
fn a_pod_is_as_calicos_plugin_leaves_it() {
    let mut node = Node::new().unwrap();
    let addresses = [address("10.65.0.1"), address("fd00:65::1")];
    let pod = node.add_pod("cali12345678901", &addresses).unwrap();

    let link = node.socket().link("cali12345678901").unwrap().unwrap();
    assert_eq!(link.mac, Some(Mac::CALICO));
    assert_eq!(
        link.addresses,
        ["fe80::ecee:eeff:feee:eeee/64".parse().unwrap()]
    );
    assert!(link.is_running);
    let setting = |path: &str| {
        let file = format!("/proc/sys/net/{path}");
        node.namespace()
            .run(|| fs::read_to_string(&file).unwrap())
            .unwrap()
    };
    for path in [
        "ipv4/conf/cali12345678901/proxy_arp",
        "ipv4/conf/cali12345678901/forwarding",
        "ipv6/conf/cali12345678901/proxy_ndp",
        "ipv6/conf/cali12345678901/forwarding",
        "ipv4/ip_forward",
    ] {
        assert_eq!(setting(path), "1\n", "{path}");
    }
    assert_eq!(setting("ipv4/neigh/cali12345678901/proxy_delay"), "0\n");

    let routes = run(&pod.namespace, "ip", &["route"]);
    assert!(
        routes.contains("default via 169.254.1.1 dev eth0"),
        "{routes}"
    );
    assert!(
        routes.contains("169.254.1.1 dev eth0 scope link"),
        "{routes}"
    );
    let routes = run(&pod.namespace, "ip", &["-6", "route"]);
    assert!(
        routes.contains("default via fe80::ecee:eeff:feee:eeee dev eth0"),
        "{routes}"
    );
    let addresses = run(&pod.namespace, "ip", &["addr", "show", "dev", "eth0"]);
    assert!(addresses.contains("inet 10.65.0.1/32"), "{addresses}");
    assert!(addresses.contains("inet6 fd00:65::1/128"), "{addresses}");
    assert!(addresses.contains(&pod.mac.to_string()), "{addresses}");
}

#[test]
fn the_node_has_no_route_to_a_pod_until_it_is_told() {
    let mut node = Node::new().unwrap();
    let addresses = [address("10.65.0.1"), address("fd00:65::1")];
    let pod = node.add_pod("cali1", &addresses).unwrap();
    let lines = |node: &Node| {
        let both = ["-4", "-6"].map(|family| run(node.namespace(), "ip", &[family, "route"]));
        both.concat()
            .lines()
            .filter(|line| line.contains("65"))
            .count()
    };
    assert_eq!(lines(&node), 0);
    node.route_to(&pod).unwrap();
    assert_eq!(lines(&node), 2);
    let neighbours = node.socket().neighbours(Some(pod.index)).unwrap();
    assert_eq!(neighbours[0].address, addresses[0]);
}

#[test]
fn namespaces_have_no_files_and_end_with_their_values() {
    let named = || fs::read_dir("/run/netns").map_or(0, Iterator::count);
    let before = named();
    let namespace = Namespace::new().unwrap();
    let own = namespace
        .run(|| fs::read_link("/proc/thread-self/ns/net").unwrap())
        .unwrap();
    assert_ne!(own, fs::read_link(Path::new("/proc/self/ns/net")).unwrap());
    assert_eq!(named(), before);

    // The end of a pod's namespace takes its interface away from the node.
    let mut node = Node::new().unwrap();
    let pod = node.add_pod("cali1", &[address("10.65.0.1")]).unwrap();
    drop(pod);
    for _ in 0..2000 {
        if node.socket().link("cali1").unwrap().is_none() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the interface is still there");
}

#[test]
fn what_has_no_route_goes_nowhere_and_does_no_harm() {
    let world = World::new();
    let mut sites = world.sites();
    let nowhere = ["198.51.100.1", "203.0.113.5"];
    let probes = nowhere.map(|to| probe((sites.a, "10.65.0.1"), (sites.b, to), udp(80)));
    assert_eq!(sites.prober.probe_all(&probes).unwrap(), [false, false]);
}

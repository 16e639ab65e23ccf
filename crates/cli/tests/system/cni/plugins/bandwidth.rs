//! `bandwidth`: what the kernel is told, and how fast it then is.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tortie_testkit::net::{Namespace, Pod};

use super::{Bench, VERSIONS, Whose, connected};
use crate::cni::site::NODE_IPV4;

const POD: &str = "10.65.0.2";

/// Eight megabits a second.
const RATE: u64 = 8_000_000;
const BURST: u64 = 800_000;
const SENT: usize = 1_000_000;

fn bench() -> (Bench, Pod) {
    let mut bench = Bench::new();
    let uplink = bench.node.socket().link("uplink").unwrap().unwrap().index;
    let own: std::net::IpAddr = NODE_IPV4.parse().unwrap();
    bench
        .node
        .socket()
        .execute(|batch| batch.add_address(uplink, own.into()))
        .unwrap();
    let pod = bench
        .node
        .add_pod("cali1", &[POD.parse().unwrap()])
        .unwrap();
    bench.node.route_to(&pod).unwrap();
    (bench, pod)
}

fn config(version: &str, pod: &Pod, limits: &Value) -> Value {
    json!({
        "cniVersion": version, "name": "net", "type": "bandwidth",
        "runtimeConfig": {"bandwidth": limits},
        "prevResult": connected(version, "cali1", &pod.namespace, &["10.65.0.2/32"]),
    })
}

/// How long it takes to send something.
fn duration(from: &Namespace, to: &Namespace, address: &str) -> Duration {
    let listener = to
        .run(|| TcpListener::bind((address, 7000)))
        .unwrap()
        .unwrap();
    let reading = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), SENT);
    });
    let start = Instant::now();
    let mut stream = from
        .run(|| TcpStream::connect((address, 7000)))
        .unwrap()
        .unwrap();
    stream.write_all(&vec![0; SENT]).unwrap();
    drop(stream);
    reading.join().unwrap();
    start.elapsed()
}

#[test]
fn a_container_receives_and_sends_as_fast_as_it_may() {
    let (bench, pod) = bench();
    let inside = &pod.namespace;
    let node = bench.node.namespace();
    let both = || {
        [
            duration(node, inside, POD),
            duration(inside, node, NODE_IPV4),
        ]
    };
    let call = |command, limits: &Value| {
        bench.call(
            Whose::Ours,
            "bandwidth",
            (command, "c1"),
            inside,
            &config("1.0.0", &pod, limits),
        )
    };
    let fast = both();
    assert!(
        fast.iter().all(|time| *time < Duration::from_millis(500)),
        "{fast:?}"
    );
    let limits = json!({"ingressRate": RATE, "ingressBurst": BURST, "egressRate": RATE, "egressBurst": BURST});
    for _ in 0..2 {
        let result = call("ADD", &limits).unwrap();
        assert_eq!(result["interfaces"].as_array().unwrap().len(), 3);
        call("CHECK", &limits).unwrap();
    }
    let slow = both();
    assert!(
        slow.iter().all(|time| *time > Duration::from_millis(700)),
        "{slow:?}"
    );
    for _ in 0..2 {
        call("DEL", &limits).unwrap();
        assert!(!bench.run(&["ip", "link"]).contains("bwp"));
    }
    let (code, _) = call("CHECK", &limits).unwrap_err();
    assert_eq!(code, 104);
}

#[test]
fn the_kernel_is_told_the_same_and_either_removes_what_the_other_made() {
    let cases = [
        json!({"ingressRate": 1_000_000, "ingressBurst": 80_000}),
        json!({"egressRate": 123_456_789, "egressBurst": 7_654_321}),
        json!({"ingressRate": 64_000_000_000_u64, "ingressBurst": 800_000_000, "egressRate": 16_000, "egressBurst": 16_000}),
        json!({}),
    ];
    for (place, limits) in cases.iter().enumerate() {
        let version = VERSIONS[place % VERSIONS.len()];
        let both =
            [(Whose::Ours, Whose::Theirs), (Whose::Theirs, Whose::Ours)].map(|(one, other)| {
                let (bench, pod) = bench();
                let config = config(version, &pod, limits);
                let call = |whose, command| {
                    bench.call(whose, "bandwidth", (command, "c1"), &pod.namespace, &config)
                };
                let mut result = call(one, "ADD").unwrap();
                // Each device has a hardware address of its own, and each namespace a path.
                for interface in result["interfaces"].as_array_mut().unwrap() {
                    let kept = interface["name"].clone();
                    *interface = json!({"name": kept});
                }
                if version != "0.3.1" {
                    call(one, "CHECK").unwrap();
                    call(other, "CHECK").unwrap();
                }
                let queues = bench.run(&["tc", "qdisc", "show"]);
                let filters = bench.run(&["tc", "filter", "show", "dev", "cali1", "ingress"]);
                // Theirs has the same action a second time, to which no packet comes.
                let filters = filters.split("action order 2").next().unwrap().trim();
                let filters = filters.to_owned();
                call(other, "DEL").unwrap();
                assert!(!bench.run(&["ip", "link"]).contains("bwp"));
                (result, queues, filters)
            });
        assert_eq!(both[0], both[1], "{limits}");
    }
}

#[test]
fn garbage_is_collected_and_what_limits_nothing_is_refused() {
    let (bench, pod) = bench();
    let limits = json!({"egressRate": RATE, "egressBurst": BURST});
    let mut config = config("1.1.0", &pod, &limits);
    let call = |command, config: &Value| {
        bench.call(
            Whose::Ours,
            "bandwidth",
            (command, "c1"),
            &pod.namespace,
            config,
        )
    };
    call("ADD", &config).unwrap();
    config["cni.dev/valid-attachments"] = json!([{"containerID": "c1", "ifname": "eth0"}]);
    call("GC", &config).unwrap();
    assert!(bench.run(&["ip", "link"]).contains("bwp"));
    config["cni.dev/valid-attachments"] = json!([]);
    let mut other = config.clone();
    other["name"] = "other".into();
    call("GC", &other).unwrap();
    assert!(bench.run(&["ip", "link"]).contains("bwp"));
    call("GC", &config).unwrap();
    assert!(!bench.run(&["ip", "link"]).contains("bwp"));
    config["runtimeConfig"]["bandwidth"] = json!({"egressRate": 5});
    let (code, message) = call("ADD", &config).unwrap_err();
    assert_eq!(code, 7);
    assert!(message.contains("egressBurst"), "{message}");
}

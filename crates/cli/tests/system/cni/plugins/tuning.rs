//! `tuning`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tortie_kernel::link::Link;
use tortie_kernel::sysctl::Sysctl;
use tortie_testkit::net::Pod;

use super::{Bench, VERSIONS, Whose, connected, link};

fn bench() -> (Bench, Pod) {
    let mut bench = Bench::new();
    let pod = bench
        .node
        .add_pod("cali1", &["10.65.0.2".parse().unwrap()])
        .unwrap();
    (bench, pod)
}

fn config(version: &str, pod: &Pod, folder: &Path, more: &Value) -> Value {
    let mut config = json!({
        "cniVersion": version, "name": "net", "type": "tuning", "dataDir": folder,
        "prevResult": connected(version, "cali1", &pod.namespace, &["10.65.0.2/32"]),
    });
    config
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().cloned().unwrap());
    config
}

fn setting(pod: &Pod, path: &str) -> String {
    let read = || Sysctl::of_network(path).unwrap().read().unwrap();
    pod.namespace.run(read).unwrap()
}

fn wanted() -> Value {
    json!({
        "sysctl": {"net.ipv4.conf.eth0.arp_filter": "1", "net/core/somaxconn": "500"},
        "mac": "02:00:00:00:00:07", "mtu": 1234, "promisc": true, "allmulti": true,
    })
}

#[test]
fn both_make_the_same_of_an_interface_and_either_undoes_it() {
    for version in VERSIONS {
        let both =
            [(Whose::Ours, Whose::Theirs), (Whose::Theirs, Whose::Ours)].map(|(one, other)| {
                let (bench, pod) = bench();
                let folder = tempfile::tempdir().unwrap();
                let config = config(version, &pod, folder.path(), &wanted());
                let before = link(&pod.namespace, "eth0").unwrap();
                let call = |whose, command| {
                    bench.call(whose, "tuning", (command, "c1"), &pod.namespace, &config)
                };
                let result = call(one, "ADD").unwrap();
                assert_eq!(result["interfaces"][1]["mac"], "02:00:00:00:00:07");
                let during = link(&pod.namespace, "eth0").unwrap();
                assert_eq!(
                    (
                        during.mtu,
                        during.is_promiscuous,
                        during.takes_all_multicast
                    ),
                    (1234, true, true)
                );
                assert_eq!(setting(&pod, "net/ipv4/conf/eth0/arp_filter"), "1");
                assert_eq!(setting(&pod, "net/core/somaxconn"), "500");
                let kept: Value =
                    serde_json::from_slice(&fs::read(folder.path().join("c1_eth0.json")).unwrap())
                        .unwrap();
                assert_eq!(kept["mac"], before.mac.unwrap().to_string());
                if version != "0.3.1" {
                    call(one, "CHECK").unwrap();
                    call(other, "CHECK").unwrap();
                }
                call(other, "DEL").unwrap();
                call(other, "DEL").unwrap();
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
                let mut after = link(&pod.namespace, "eth0").unwrap();
                // The kernel makes addresses of hardware addresses, and keeps some.
                after.addresses.clone_from(&before.addresses);
                assert_eq!(after, before);
                let mut kept = kept;
                kept["mac"] = Value::Null;
                let mut result = result;
                result["interfaces"][1]["sandbox"] = Value::Null;
                (result, kept)
            });
        assert_eq!(both[0], both[1], "{version}");
    }
}

#[test]
fn an_add_that_is_repeated_still_knows_what_was_before() {
    let (bench, pod) = bench();
    let folder = tempfile::tempdir().unwrap();
    let more = json!({"sysctl": {"net.ipv4.conf.IFNAME.arp_announce": "2"}, "txQLen": 77, "runtimeConfig": {"mac": "02:00:00:00:00:08"}, "args": {"cni": {"mtu": 1300}}});
    let config = config("1.1.0", &pod, folder.path(), &more);
    let before = link(&pod.namespace, "eth0").unwrap();
    let call = |command| {
        bench.call(
            Whose::Ours,
            "tuning",
            (command, "c1"),
            &pod.namespace,
            &config,
        )
    };
    for _ in 0..2 {
        call("ADD").unwrap();
        let during = link(&pod.namespace, "eth0").unwrap();
        assert_eq!((during.mtu, during.queue_length), (1300, 77));
        assert_eq!(during.mac.unwrap().to_string(), "02:00:00:00:00:08");
        assert_eq!(setting(&pod, "net/ipv4/conf/eth0/arp_announce"), "2");
        call("CHECK").unwrap();
    }
    call("DEL").unwrap();
    let after = link(&pod.namespace, "eth0").unwrap();
    let known = |link: &Link| (link.mac, link.mtu, link.queue_length);
    assert_eq!(known(&after), known(&before));
    let (code, message) = call("CHECK").unwrap_err();
    assert_eq!(code, 104);
    assert!(
        message.contains("MTU") && message.contains("hardware address"),
        "{message}"
    );
}

#[test]
fn settings_of_the_machine_are_refused() {
    let (bench, pod) = bench();
    let folder = tempfile::tempdir().unwrap();
    for key in ["kernel.panic", "net.ipv4....kernel.panic", "net", ""] {
        let config = config("1.0.0", &pod, folder.path(), &json!({"sysctl": {key: "1"}}));
        let (code, message) = bench
            .call(
                Whose::Ours,
                "tuning",
                ("ADD", "c1"),
                &pod.namespace,
                &config,
            )
            .unwrap_err();
        assert_eq!(code, 7, "{message}");
        assert!(message.contains(key), "{message}");
    }
}

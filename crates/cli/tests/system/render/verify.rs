//! `tortie node verify`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tortie_rules::Dataplane;

use crate::render::support::{Files, HOSTS, in_namespace, run, tortie};

/// The world without the host endpoint whose interface only the host knows.
fn files() -> Files {
    Files::of(&HOSTS.replace(
        "spec: {node: n1, expectedIPs",
        "spec: {node: n2, expectedIPs",
    ))
}

#[test]
fn every_difference_of_nftables_is_a_line() {
    let files = files();
    in_namespace(|| {
        let verify = || files.tortie(&["node", "verify", "--node", "n1"]);
        let output = verify();
        assert_eq!(output.code, 1, "an empty kernel: {output:?}");
        files.dataplane("n1", Dataplane::Nftables).apply().unwrap();
        let output = verify();
        let right = "n1: nftables has what it should have; no drift\n";
        assert_eq!((output.code, &*output.stdout), (0, right), "{output:?}");

        run(
            "nft",
            &["flush", "chain", "ip", "calico", "filter-cali-tw-cali1"],
            "",
        );
        run(
            "nft",
            &["add", "chain", "ip6", "calico", "filter-cali-tw-cali9"],
            "",
        );
        run(
            "nft",
            &[
                "add",
                "element",
                "ip",
                "calico",
                "cali40this-host",
                "{ 10.9.9.9 }",
            ],
            "",
        );
        let output = verify();
        assert_eq!(output.code, 1);
        let lines: Vec<&str> = output.stdout.lines().collect();
        assert_eq!(lines.len(), 3, "{output:?}");
        assert!(
            lines[0].starts_with("chain filter-cali-tw-cali1: lacks"),
            "{lines:?}"
        );
        assert_eq!(lines[1], "set cali40this-host: has 1 members instead of 0");
        assert_eq!(lines[2], "chain filter-cali-tw-cali9: should not be there");

        let output = files.tortie(&["node", "verify", "--node", "n1", "-o", "json"]);
        assert_eq!(output.code, 1);
        let value: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(value["dataplane"], "nftables");
        assert_eq!(
            value["drift"][2],
            json!({"object": "chain filter-cali-tw-cali9", "what": "should not be there"})
        );
    });
}

#[test]
fn iptables_is_compared_where_the_parameters_ask_for_it() {
    let world = HOSTS.replace("logPrefix: rendered", "nftablesMode: Disabled");
    let world = world.replace(
        "spec: {node: n1, expectedIPs",
        "spec: {node: n2, expectedIPs",
    );
    let files = Files::of(&world);
    in_namespace(|| {
        files.dataplane("n1", Dataplane::Iptables).apply().unwrap();
        let verify = || files.tortie(&["node", "verify", "--node", "n1"]);
        let output = verify();
        let right = "n1: iptables has what it should have; no drift\n";
        assert_eq!((output.code, &*output.stdout), (0, right), "{output:?}");
        // The kind that is chosen where nobody else uses any.
        run("iptables-legacy", &["-F", "cali-tw-cali1"], "");
        let output = verify();
        assert_eq!(output.code, 1);
        assert!(
            output.stdout.starts_with("chain filter-cali-tw-cali1: "),
            "{output:?}"
        );
        assert_eq!(output.stdout.lines().count(), 1, "{output:?}");
    });
}

#[test]
fn what_cannot_be_found_out_is_neither_right_nor_wrong() {
    let output = tortie(
        &["node", "verify", "--node", "n1", "-f", "/nowhere.yaml"],
        &[],
    );
    assert_eq!((output.code, &*output.stdout), (2, ""), "{output:?}");
    assert!(output.stderr.contains("/nowhere.yaml"), "{output:?}");
    let output = tortie(&["node", "verify", "--nod", "n1"], &[]);
    assert_eq!(output.code, 2, "{output:?}");
    let endpoints = [("ETCD_ENDPOINTS", "http://127.0.0.1:1")];
    let output = tortie(&["node", "verify", "--node", "n1"], &endpoints);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("127.0.0.1:1"), "{output:?}");
}

#[test]
fn what_the_agent_made_of_a_datastore_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let data_file = folder.path().join("data.redb").display().to_string();
    let world = folder.path().join("world.yaml");
    // What belongs to a namespace of Kubernetes needs none in this datastore.
    std::fs::write(&world, HOSTS).unwrap();
    let world = world.display().to_string();
    let with_store = |arguments: &[&str]| {
        let all = [&["--data-file", &data_file][..], arguments].concat();
        tortie(&all, &[])
    };
    let output = with_store(&["apply", "-f", &world]);
    assert_eq!(output.code, 0, "{output:?}");
    in_namespace(|| {
        run(
            "ip",
            &[
                "link", "add", "eth0", "type", "veth", "peer", "name", "eth0p",
            ],
            "",
        );
        run(
            "ip",
            &["address", "add", "192.168.0.1/24", "dev", "eth0"],
            "",
        );
        let mut agent = Command::new(env!("CARGO_BIN_EXE_tortie"))
            .args(["--data-file", &data_file, "agent", "--node", "n1"])
            .args([
                "--status-folder",
                &folder.path().join("status").display().to_string(),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        let has_endpoint = || {
            let list = Command::new("nft")
                .args(["list", "table", "ip6", "calico"])
                .output();
            String::from_utf8_lossy(&list.unwrap().stdout).contains("cali-tw-cali1")
        };
        while !has_endpoint() {
            assert!(
                start.elapsed() < Duration::from_secs(30),
                "the agent enforces nothing"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        // The store is the agent's as long as it runs.
        let output = with_store(&["node", "verify", "--node", "n1"]);
        assert_eq!(output.code, 2, "{output:?}");
        agent.kill().unwrap();
        agent.wait().unwrap();
        let output = with_store(&["node", "verify", "--node", "n1"]);
        assert_eq!(output.code, 0, "{output:?}");
        let rendered = with_store(&["render", "--node", "n1", "--local-interfaces"]);
        assert!(rendered.stdout.contains("cali-th-eth0"), "{rendered:?}");
    });
}

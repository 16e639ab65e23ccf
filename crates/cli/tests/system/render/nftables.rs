//! For nftables.

use tortie_rules::Dataplane;

use crate::render::listing::Listing;
use crate::render::support::{Files, HOSTS, eth0, in_namespace, run};

/// The text loads, twice, and is what the driver programs.
#[track_caller]
fn assert_loads(files: &Files, node: &str, interface: Option<&str>, context: &str) {
    let mut arguments = vec!["--node", node, "-o", "nftables"];
    arguments.extend(interface.iter().flat_map(|text| ["--interface", text]));
    let text = files.render(&arguments);
    let loaded = in_namespace(|| {
        run("nft", &["-f", "-"], &text);
        let once = Listing::read();
        run("nft", &["-f", "-"], &text);
        Listing::read().assert_is(&once, &format!("{context}: loaded twice"));
        once
    });
    let programmed = in_namespace(|| {
        let mut dataplane = files.dataplane(node, Dataplane::Nftables);
        if interface.is_some() {
            dataplane.set_interfaces([eth0()].into());
        }
        dataplane.apply().unwrap();
        assert_eq!(dataplane.compare().unwrap(), [], "{context}");
        Listing::read()
    });
    assert!(!programmed.rules.is_empty(), "{context}");
    loaded.assert_is(&programmed, context);
}

#[test]
fn the_recipes_load_and_are_what_the_agent_programs() {
    for (name, files) in Files::recipes() {
        for node in ["node-1", "node-2"] {
            assert_loads(&files, node, None, &format!("{name} on {node}"));
        }
    }
}

#[test]
fn host_endpoints_load_and_are_what_the_agent_programs() {
    assert_loads(&Files::of(HOSTS), "n1", Some("eth0=192.168.0.1"), "hosts");
}

#[test]
fn parameters_have_effect() {
    let files = Files::of(HOSTS);
    let text = files.render(&["--node", "n1", "--interface", "eth0=192.168.0.1"]);
    for piece in [
        "log prefix \"rendered: \"",
        "masquerade to :10000-20000",
        "ip saddr 192.168.0.0/16",
        "filter-cali-th-eth0",
        "table ip6 calico {",
    ] {
        assert!(text.contains(piece), "no `{piece}` in\n{text}");
    }
    let v4 = files.render(&[
        "--node",
        "n1",
        "--interface",
        "eth0=192.168.0.1",
        "--ip",
        "4",
    ]);
    assert!(!v4.contains("ip6") && text.starts_with(&v4));
    let named = Files::of(&HOSTS.replace("logPrefix: rendered", "ipv6Support: false"));
    let output = named.tortie(&["render", "--node", "n1", "--ip", "6"]);
    assert_eq!(output.code, 1);
    let expected = "Error: Ipv6Support is false for node `n1`: nothing is programmed for IPv6\n";
    assert!(output.stderr.ends_with(expected), "{}", output.stderr);
}

#[test]
fn a_host_endpoint_without_an_interface_is_said() {
    let output = Files::of(HOSTS).tortie(&["render", "--node", "n1"]);
    assert_eq!(output.code, 0);
    let expected = "warning: HostEndpoint(by-address) names no interface";
    assert!(output.stderr.starts_with(expected), "{}", output.stderr);
    assert!(!output.stdout.contains("eth0"));
}

#[test]
fn nodes_are_listed_where_none_is_given_or_another() {
    let (_, files) = Files::recipes().remove(0);
    let output = files.tortie(&["render"]);
    let expected = "Error: say which node with --node; known are node-1, node-2\n";
    assert_eq!((output.code, &*output.stderr), (1, expected));
    let output = files.tortie(&["render", "--node", "node-3"]);
    let expected = "Error: there is no node `node-3`; known are node-1, node-2\n";
    assert_eq!((output.code, &*output.stderr), (1, expected));
}

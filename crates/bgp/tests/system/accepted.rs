//! BIRD's own parser reads every text.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError};
use serde_json::json;
use tempfile::TempDir;
use tortie_api::{Kind, Resource};
use tortie_bgp::plan::Plan;
use tortie_bgp::{Family, Identity, Inputs, Update, render};
use tortie_testkit::vector_folders;

use crate::random;

/// How many worlds are made up.
const WORLDS: u32 = 300;

/// What BIRD says about a text, if it does not take it.
fn refused(text: &str) -> Option<String> {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("bird.conf");
    fs::write(&file, text).unwrap();
    let output = Command::new("bird")
        .args(["-p", "-c"])
        .arg(&file)
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
        .output()
        .expect("`bird` of Debian's bird2 runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(said)
}

fn plan(updates: &[Update]) -> Plan {
    let mut inputs = Inputs::new(Identity {
        node: "node1".to_owned(),
        ..Identity::default()
    });
    for update in updates {
        inputs.update(update.clone());
    }
    Plan::new(&inputs)
}

#[test]
fn the_texts_of_all_vectors() {
    for folder in vector_folders("bgp") {
        let text = fs::read_to_string(folder.join("input.yaml")).unwrap();
        let documents = tortie_api::yaml::parse(&text).unwrap();
        let updates: Vec<Update> = documents
            .iter()
            .map(|value| Update::Resource(Resource::decode_strict(value).unwrap()))
            .collect();
        let text = render::bird2(&plan(&updates));
        assert_eq!(refused(&text), None, "{}:\n{text}", folder.display());
    }
}

/// Every second one is impossible in a way of its own.
#[test]
fn ten_thousand_peers_of_which_half_cannot_be() {
    let peer = |index: u32| {
        let address = std::net::Ipv4Addr::from_bits(0x0a00_0001 + index);
        let spec = match index % 8 {
            1 => json!({"peerIP": format!("{address}/8"), "asNumber": 65000}),
            3 => json!({"peerIP": "224.0.0.5", "asNumber": 65000}),
            5 => json!({"peerIP": address.to_string(), "asNumber": 0}),
            7 => json!({"peerSelector": "has(", "nodeSelector": "all()"}),
            _ => json!({"peerIP": address.to_string(), "asNumber": 65000 + index % 100}),
        };
        json!({
            "apiVersion": "projectcalico.org/v3", "kind": "BGPPeer",
            "metadata": {"name": format!("peer-{index}")}, "spec": spec,
        })
    };
    let node = json!({
        "apiVersion": "projectcalico.org/v3", "kind": "Node",
        "metadata": {"name": "node1"}, "spec": {"bgp": {"ipv4Address": "192.0.2.1/24"}},
    });
    let stored = |kind, value| Update::Resource(Resource::decode_stored(kind, &value).unwrap());
    let mut updates = vec![stored(Kind::Node, node)];
    updates.extend((0..10_000).map(|index| stored(Kind::BgpPeer, peer(index))));
    let plan = plan(&updates);
    assert_eq!(plan.family(Family::V4).peers.len(), 5_000);
    let reported: BTreeSet<&str> = plan.problems.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(reported.len(), 5_000, "{:?}", plan.problems.first());
    assert_eq!(refused(&render::bird2(&plan)), None);
}

/// Each address that a peer of this node names has a session, or there is a problem with that peer.
fn check_peers(updates: &[Update], plan: &Plan) -> Result<(), TestCaseError> {
    let own = Family::BOTH.map(|family| plan.family(family).address);
    let all = Family::BOTH
        .into_iter()
        .flat_map(|family| &plan.family(family).peers);
    let with: BTreeSet<IpAddr> = all.map(|peer| peer.address).collect();
    let mut seen = BTreeSet::new();
    // Of versions of one object the last one counts.
    for update in updates.iter().rev() {
        let Update::Resource(Resource::BgpPeer(peer)) = update else {
            continue;
        };
        let (name, spec) = (&peer.metadata.name, &peer.spec);
        let is_plain = spec.peer_selector.is_empty() && spec.local_workload_selector.is_empty();
        let is_ours = spec.node_selector.is_empty() && matches!(&*spec.node, "" | "node1");
        if !seen.insert(name) || !is_plain || !is_ours {
            continue;
        }
        let is_reported = plan
            .problems
            .iter()
            .any(|p| p.kind == "BGPPeer" && p.name == *name);
        let address = tortie_api::net::parse_ip_port(&spec.peer_ip).map(|(address, _)| address);
        let has_session = address.is_some_and(|a| with.contains(&a) || own.contains(&Some(a)));
        prop_assert!(is_reported || has_session, "{name:?} {:?}", spec.peer_ip);
    }
    Ok(())
}

#[test]
fn whatever_objects_say_bird_reads_the_text() {
    let config = Config {
        cases: WORLDS,
        failure_persistence: None,
        ..Config::default()
    };
    proptest!(config, |(updates in random::world())| {
        let plan = plan(&updates);
        let text = render::bird2(&plan);
        prop_assert_eq!(refused(&text), None, "{}", text);
        check_peers(&updates, &plan)?;
        // Nobody asked for a session with this one.
        prop_assert!(!text.contains("203.0.113.66"), "{}", text);
    });
}

//! What the datastore is told of BIRD, and how a node leaves.

use serde_json::Value;

use crate::multi_node::cluster::{Cluster, Overlay};
use crate::multi_node::member::Member;
use crate::multi_node::speaker::{Speaker, run_folder};

/// `CalicoNodeStatus` with these classes, of a node.
fn status(name: &str, node: &str, classes: &str, period: u32) -> String {
    format!(
        "apiVersion: projectcalico.org/v3\nkind: CalicoNodeStatus\nmetadata: {{name: {name}}}\n\
         spec: {{node: {node}, classes: [{classes}], updatePeriodSeconds: {period}}}\n---\n"
    )
}

fn told(member: &Member, name: &str) -> Value {
    let text = member.tortie(&["get", "caliconodestatus", name, "-o", "json"], "");
    let object: Value = serde_json::from_str(&text).unwrap();
    object["status"].clone()
}

#[test]
fn the_datastore_is_told_of_bird_as_often_as_it_asks() {
    let mut cluster = Cluster::new(Overlay::Bgp, &[0, 0]);
    let mut speakers = Speaker::everywhere(&cluster);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    cluster.apply(
        &[
            status("all", "node-0", "Agent, BGP, Routes", 1),
            status("agent", "node-0", "Agent", 1),
            status("never", "node-0", "Agent", 0),
            status("nobody", "node-9", "Agent", 1),
        ]
        .concat(),
    );
    let member = &cluster.members()[0];
    let of_peer = &cluster.members()[1].name;
    cluster.eventually("sessions and routes are told", || {
        let all = told(member, "all");
        let routes = all["routes"]["routesV4"].as_array();
        all["bgp"]["numberEstablishedV4"] == 1
            && all["bgp"]["numberEstablishedV6"] == 1
            && routes.is_some_and(|routes| {
                let is_learned = |route: &Value| {
                    route["type"] == "FIB" && route["learnedFrom"]["sourceType"] == "NodeMesh"
                };
                routes.iter().any(is_learned)
            })
    });
    let all = told(member, "all");
    assert_eq!(all["agent"]["birdV4"]["state"], "Ready", "{all}");
    assert_eq!(all["bgp"]["peersV4"][0]["type"], "NodeMesh", "{all}");
    let agent = told(member, "agent");
    assert_eq!(agent["agent"]["birdV6"]["state"], "Ready", "{agent}");
    assert_eq!(agent["bgp"]["numberEstablishedV4"], 0, "{agent}");
    assert_eq!(agent["routes"], serde_json::json!({}), "{agent}");
    for name in ["never", "nobody"] {
        let status = told(member, name);
        assert!(status["lastUpdated"].is_null(), "{name}: {status}");
    }
    let before = agent["lastUpdated"].clone();
    cluster.eventually("it is told again", || {
        told(member, "agent")["lastUpdated"] != before
    });

    // A peer that is gone, and then BIRD itself.
    drop(speakers.pop());
    cluster.eventually("a peer less is told", || {
        told(member, "all")["bgp"]["numberNotEstablishedV4"] == 1
    });
    shut_down(member);
    cluster.eventually("BIRD that does not run is told", || {
        told(member, "all")["agent"]["birdV4"]["state"] == "NotReady"
    });
    assert_eq!(of_peer, "node-1");
}

fn shut_down(member: &Member) -> String {
    let run = run_folder(member).display().to_string();
    member.tortie(&["node", "shutdown", "--run-folder", &run], "")
}

/// Peers move at once, and nobody brings BIRD back before the node starts.
#[test]
fn a_node_that_leaves_says_good_bye() {
    let mut cluster = Cluster::new(Overlay::Bgp, &[0, 0]);
    let mut speakers = Speaker::everywhere(&cluster);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    let leaving = &cluster.members()[1];
    let said = shut_down(leaving);
    assert!(said.contains("peers know"), "{said}");
    cluster.eventually("routes to it are gone", || {
        cluster.routes_to_block_of(0, &pods[1]).is_empty()
    });
    let stamp = std::fs::read_to_string(leaving.folder().join("shutdownTS")).unwrap();
    assert!(stamp.ends_with('Z'), "{stamp}");
    // Its own packets still have a way.
    assert_eq!(cluster.routes_to(1, &pods[0]).len(), 2);

    let again = Speaker::start(leaving);
    std::mem::replace(&mut speakers[1], again).kill();
    let run = run_folder(leaving).display().to_string();
    let report = || std::fs::read_to_string(run_folder(leaving).join("bgp-status.json")).unwrap();
    cluster.eventually("the new one stays away, too", || {
        report().contains("\"hasLeft\": true")
    });
    assert!(!run_folder(leaving).join("bird.ctl").exists());
    assert!(cluster.routes_to_block_of(0, &pods[1]).is_empty());

    leaving.tortie(&["node", "startup", "--run-folder", &run], "");
    cluster.eventually("routes to it are back", || {
        cluster.routes_to_block_of(0, &pods[1]).len() == 2
    });
    cluster.all_reach_all(&pods);
}

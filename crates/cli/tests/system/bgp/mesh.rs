//! A full mesh: pods of all nodes reach each other by their own addresses, as far as policies let them.

use crate::multi_node::cluster::{Cluster, Overlay};
use crate::multi_node::reach::Pod;
use crate::multi_node::speaker::{Speaker, run_folder};

#[test]
fn three_nodes_have_routes_and_policies_without_an_overlay() {
    let mut cluster = Cluster::new(Overlay::Bgp, &[0, 0, 0]);
    let speakers = Speaker::everywhere(&cluster);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    for from in 0..3 {
        for to in (0..3).filter(|to| *to != from) {
            for route in cluster.routes_to(from, &pods[to]) {
                let is_bird = route.contains("proto bird") && route.contains("dev eth0");
                assert!(is_bird && route.contains("via"), "{route}");
            }
        }
        let known = ["lo", "eth0", "uplink"];
        for link in cluster.links(from) {
            let is_known = known.contains(&link.as_str()) || link.starts_with("cali");
            assert!(is_known, "node {from} has an interface {link}");
        }
        let member = &cluster.members()[from];
        let folder = run_folder(member).display().to_string();
        let status = member.tortie(&["bgp", "status", "--run-folder", &folder], "");
        assert!(status.contains("nothing is left out"), "{status}");
    }
    policies_hold(&cluster, &pods);
    drop(speakers);
}

/// By labels, on the side of the receiver and on that of the sender.
fn policies_hold(cluster: &Cluster, pods: &[Pod]) {
    let [mute, server, friend] = pods else {
        panic!("{} pods", pods.len());
    };
    cluster.label_pod(server, "role=server");
    cluster.label_pod(friend, "role=friend");
    cluster.label_pod(mute, "role=mute");
    cluster.apply(
        "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {name: ingress}\n\
         spec:\n  selector: role == 'server'\n  types: [Ingress]\n  ingress:\n  \
         - {action: Allow, protocol: TCP, source: {selector: role == 'friend'}, destination: {ports: [80]}}\n  \
         - {action: Deny, source: {selector: role == 'friend'}}\n  \
         - {action: Allow}\n",
    );
    cluster.eventually("what comes in is denied by port", || {
        !friend.reaches(server, 81) && friend.reaches(server, 80)
    });
    assert!(mute.reaches(server, 81) && server.reaches(friend, 81));

    cluster.apply(
        "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {name: egress}\n\
         spec:\n  selector: role == 'mute'\n  types: [Egress]\n  egress:\n  \
         - {action: Deny, destination: {selector: role == 'server'}}\n  \
         - {action: Allow}\n",
    );
    cluster.eventually("what goes out is denied by label", || {
        !mute.reaches(server, 81) && mute.reaches(friend, 81)
    });
    assert!(server.reaches(mute, 81));

    for name in ["ingress", "egress"] {
        let member = &cluster.members()[0];
        member.tortie(&["delete", "globalnetworkpolicy", name], "");
    }
    cluster.all_reach_all(pods);
    cluster.eventually("nothing is denied any more", || {
        friend.reaches(server, 81) && mute.reaches(server, 81)
    });
}

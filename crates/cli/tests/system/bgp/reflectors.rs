//! Route reflectors in place of the mesh.

use crate::bgp::peers::configure;
use crate::multi_node::cluster::{Cluster, Overlay};
use crate::multi_node::speaker::{Speaker, birdc, kill_bird};

/// How many sessions a node's BIRD has that are established.
fn established(cluster: &Cluster, node: usize) -> usize {
    let printed = birdc(&cluster.members()[node], "show protocols");
    printed.matches("Established").count()
}

#[test]
fn five_nodes_do_without_one_of_two_reflectors() {
    let mut cluster = Cluster::new(Overlay::Bgp, &[0; 5]);
    let member = &cluster.members()[0];
    for node in ["node-0", "node-1"] {
        let reflects = r#"{"spec": {"bgp": {"routeReflectorClusterID": "244.0.0.1"}}}"#;
        member.tortie(&["patch", "node", node, "-p", reflects], "");
        member.tortie(&["label", "node", node, "route-reflector=true"], "");
    }
    cluster.apply(
        "apiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata: {name: to-reflectors}\n\
         spec: {nodeSelector: all(), peerSelector: route-reflector == 'true'}\n",
    );
    configure(&cluster, "nodeToNodeMeshEnabled: false");
    let mut speakers = Speaker::everywhere(&cluster);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    // Both IP versions: nodes have the reflectors only, and these have everybody.
    for (node, sessions) in [(0, 8), (1, 8), (2, 4), (3, 4), (4, 4)] {
        cluster.eventually(&format!("node {node} has {sessions} sessions"), || {
            established(&cluster, node) == sessions
        });
    }

    let mut streams = pods[2].datagrams(&pods[3]);
    streams.extend(pods[4].datagrams(&pods[2]));
    for stream in &streams {
        stream.await_arrivals();
    }
    speakers.remove(0).kill();
    kill_bird(&cluster.members()[0]);
    cluster.eventually("the reflector is gone", || {
        (2..5).all(|node| established(&cluster, node) == 2)
    });
    cluster.members()[0].run("ip", "link set eth0 down");
    // What is new is told by the other one.
    cluster.apply(
        "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {name: more}\n\
         spec: {cidr: 10.66.0.0/16, ipipMode: Never, vxlanMode: Never}\n",
    );
    let new = cluster.add_pod_with(4, "IP=10.66.0.7");
    cluster.eventually("a new pod is reached", || {
        pods[2].pings(&new) && pods[1].pings(&new)
    });
    cluster.all_reach_all(&pods[1..]);
    for stream in streams {
        let (sent, lost) = (stream.sent(), stream.lost().len());
        assert_eq!(lost, 0, "lost of {sent} packets past a reflector that died");
    }
}

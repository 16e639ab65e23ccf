//! Nodes that share one etcd, each a network namespace with an agent of its own, and pods that come about as a container
//! runtime makes them: by calling the CNI plugin. Packets then go from node to node.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bgp_handover;
mod bgp_lifecycle;
pub(crate) mod cluster;
mod kernel;
pub(crate) mod member;
pub(crate) mod reach;
pub(crate) mod speaker;

use cluster::{Cluster, Overlay, Plane};

/// Where pods are on other nodes through VXLAN, whatever the network between nodes.
#[test]
fn pods_reach_each_other_through_vxlan() {
    let mut cluster = Cluster::new(Overlay::Vxlan, &[0, 1]);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    for (from, to) in [(0, 1), (1, 0)] {
        for route in cluster.routes_to(from, &pods[to]) {
            assert!(route.contains("vxlan"), "{route}");
        }
    }
}

/// In one subnet directly, and through VXLAN where a router is between.
#[test]
fn a_tunnel_is_used_between_subnets_only() {
    let mut cluster = Cluster::new(Overlay::CrossSubnet, &[0, 0, 1]);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    for route in cluster.routes_to(0, &pods[1]) {
        assert!(
            route.contains("dev eth0") && route.contains("via"),
            "{route}"
        );
    }
    for route in cluster.routes_to(0, &pods[2]) {
        assert!(route.contains("dev vxlan"), "{route}");
    }
}

/// No tunnel at all: the network must carry the pods' own addresses.
#[test]
fn plain_routes_lead_through_the_network() {
    let mut cluster = Cluster::new(Overlay::None, &[0, 0]);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    for route in cluster.routes_to(0, &pods[1]) {
        assert!(
            route.contains("dev eth0") && route.contains("proto 80"),
            "{route}"
        );
    }
    assert!(!cluster.has_link(0, "vxlan.calico"));
}

/// Policies hold for packets of other nodes as for those of the same.
#[test]
fn policies_are_enforced_between_nodes() {
    policies_hold(Plane::Nftables);
}

#[test]
fn policies_are_enforced_between_nodes_with_iptables() {
    policies_hold(Plane::Iptables);
}

fn policies_hold(plane: Plane) {
    let mut cluster = Cluster::with_plane(Overlay::Vxlan, &[0, 1], plane);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    cluster.apply(
        "apiVersion: projectcalico.org/v3\n\
         kind: GlobalNetworkPolicy\n\
         metadata: {name: only-tcp-80}\n\
         spec:\n  selector: all()\n  types: [Ingress]\n  ingress:\n  \
         - {action: Allow, protocol: TCP, destination: {ports: [80]}}\n",
    );
    cluster.eventually("the policy holds", || {
        !pods[0].reaches(&pods[1], 81) && pods[0].reaches(&pods[1], 80)
    });
    assert!(pods[1].reaches(&pods[0], 80) && !pods[1].reaches(&pods[0], 81));
}

/// Nothing goes in clear text that should be encrypted, unless somebody says so.
#[test]
fn where_packets_should_be_encrypted_there_is_no_way_in_clear_text() {
    let mut cluster = Cluster::new(Overlay::Vxlan, &[0, 1]);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    let configure = |cluster: &Cluster, enabled: bool| {
        cluster.apply(&format!(
            "apiVersion: projectcalico.org/v3\nkind: FelixConfiguration\nmetadata: {{name: default}}\n\
             spec: {{wireguardEnabled: {enabled}, wireguardEnabledV6: {enabled}}}\n"
        ));
    };
    configure(&cluster, true);
    cluster.eventually("the routes are gone", || {
        cluster.routes_to_block_of(0, &pods[1]).is_empty()
            && cluster.routes_to_block_of(1, &pods[0]).is_empty()
    });
    assert!(!pods[0].reaches(&pods[1], 80) && !pods[1].reaches(&pods[0], 80));
    // Also for an agent that finds it so at its start.
    cluster.restart_agent(0);
    assert!(cluster.routes_to_block_of(0, &pods[1]).is_empty());

    cluster.set("TORTIE_ALLOW_CLEARTEXT", "true");
    for node in [0, 1] {
        cluster.restart_agent(node);
    }
    cluster.all_reach_all(&pods);
    cluster.set("TORTIE_ALLOW_CLEARTEXT", "false");
    for node in [0, 1] {
        cluster.restart_agent(node);
    }
    configure(&cluster, false);
    cluster.eventually("the routes are back", || pods[0].reaches(&pods[1], 80));
    cluster.all_reach_all(&pods);
}

/// What a removed node leaves on the others goes.
#[test]
fn a_removed_node_is_forgotten_by_the_others() {
    let mut cluster = Cluster::new(Overlay::CrossSubnet, &[0, 0, 1]);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    let before = cluster.routes(0);
    cluster.remove(2, &pods[2]);
    cluster.eventually("routes to the removed node are gone", || {
        let after = cluster.routes(0);
        after.len() < before.len() && cluster.routes_to_block_of(0, &pods[2]).is_empty()
    });
    cluster.eventually("tunnel entries of the removed node are gone", || {
        cluster.tunnel_entries(0).len() == 2
    });
    cluster.all_reach_all(&pods[..2]);
}

/// Nobody has to run `tortie node startup` for a node that somebody deleted.
#[test]
fn a_deleted_node_that_still_runs_takes_its_place_again() {
    let mut cluster = Cluster::new(Overlay::Vxlan, &[0, 1]);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    let entries = cluster.tunnel_entries(0);
    cluster.lose_node(1);
    cluster.all_reach_all(&pods);
    cluster.eventually("the tunnel to it is as before", || {
        cluster.tunnel_entries(0) == entries
    });
    // A pod that is new since reaches all, too.
    let more = cluster.add_pod(1);
    let all: Vec<_> = pods.into_iter().chain([more]).collect();
    cluster.all_reach_all(&all);
}

/// The kernel goes on while the agent is away, and what the agent finds at its start stays.
#[test]
fn a_restart_of_the_agent_loses_no_packet() {
    let mut cluster = Cluster::new(Overlay::Vxlan, &[0, 1]);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    let streams = pods[0].datagrams(&pods[1]);
    for _ in 0..3 {
        for node in [0, 1] {
            cluster.restart_agent(node);
        }
    }
    for stream in streams {
        let sent = stream.sent();
        assert!(sent > 100, "only {sent} datagrams were sent");
        let lost = stream.lost().len();
        assert_eq!(lost, 0, "lost of {sent} packets of an established flow");
    }
}

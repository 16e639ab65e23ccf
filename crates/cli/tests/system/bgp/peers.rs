//! Resources that several tests write.

use std::net::IpAddr;

use crate::multi_node::cluster::Cluster;

/// Where `addresses` are peers of nodes, with these fields besides `peerIP` and `asNumber`: one `BGPPeer` for each.
pub(super) fn peer_with(
    cluster: &Cluster,
    name: &str,
    (addresses, number): (&[IpAddr], u32),
    more: &str,
) {
    let peers = addresses.iter().map(|address| {
        let version = if address.is_ipv4() { "v4" } else { "v6" };
        format!(
            "apiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata: {{name: {name}-{version}}}\n\
             spec: {{peerIP: '{address}', asNumber: {number}{more}}}\n---\n"
        )
    });
    cluster.apply(&peers.collect::<String>());
}

/// The configuration of all nodes.
pub(super) fn configure(cluster: &Cluster, spec: &str) {
    cluster.apply(&format!(
        "apiVersion: projectcalico.org/v3\nkind: BGPConfiguration\nmetadata: {{name: default}}\nspec: {{{spec}}}\n"
    ));
}

/// A filter with these rules.
pub(super) fn filter(cluster: &Cluster, name: &str, spec: &str) {
    cluster.apply(&format!(
        "apiVersion: projectcalico.org/v3\nkind: BGPFilter\nmetadata: {{name: {name}}}\nspec:\n{spec}"
    ));
}

/// Lets pods be reached from anywhere: the profile that the plugin gives them is for pods of their network.
pub(super) fn open_pods(cluster: &Cluster) {
    cluster.apply(
        "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {name: open}\n\
         spec: {selector: all(), types: [Ingress], ingress: [{action: Allow}]}\n",
    );
}

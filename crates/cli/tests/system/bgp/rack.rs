//! Racks: nodes with AS numbers of their own, which speak with the router between them and not with each other.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::bgp::peers::configure;
use crate::bgp::router::{Conf, Router, Session, block_of};
use crate::multi_node::cluster::{Cluster, Overlay};
use crate::multi_node::speaker::{Speaker, birdc};

const ROUTER: u32 = 65000;

/// What the router between the networks has in one of them.
fn router_in(network: u16) -> [IpAddr; 2] {
    [
        [172, 20, u8::try_from(network).unwrap(), 254].into(),
        [0xfd20, 0, 0, network, 0, 0, 0, 254].into(),
    ]
}

#[test]
fn nodes_with_numbers_of_their_own_speak_through_their_router() {
    // One node in the first rack, and two in the second, which share its number.
    let mut cluster = Cluster::new(Overlay::Bgp, &[0, 1, 1]);
    let numbers = [65101, 65102, 65102];
    let racks = [0, 1, 1];
    let member = &cluster.members()[0];
    for (node, (number, rack)) in numbers.iter().zip(racks).enumerate() {
        let name = format!("node-{node}");
        let patch = format!(r#"{{"spec": {{"bgp": {{"asNumber": {number}}}}}}}"#);
        member.tortie(&["patch", "node", &name, "-p", &patch], "");
        member.tortie(&["label", "node", &name, &format!("rack=r{rack}")], "");
    }
    configure(&cluster, "nodeToNodeMeshEnabled: false");
    write_peers(&cluster, 1);
    let ends = cluster.members().iter().zip(numbers);
    let sessions: Vec<Session> = ends
        .flat_map(|(member, number)| member.addresses.map(|one| Session::with(one, number)))
        .collect();
    let conf = |security: &str| {
        let conf = Conf {
            as_number: ROUTER,
            sessions: sessions.clone(),
            passes_on: true,
            ..Conf::default()
        };
        conf.saying(security)
    };
    let mut router = Router::between(&cluster, router_in(0));
    router.run(&conf("ttl security on;").saying_of_routes("next hop self;"));
    let speakers = Speaker::everywhere(&cluster);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);

    let learnt = |node: usize, of: usize| {
        let block = block_of(pods[of].addresses[0]);
        birdc(&cluster.members()[node], &format!("show route {block} all"))
    };
    assert!(
        learnt(0, 1).contains("BGP.as_path: 65000 65102"),
        "{}",
        learnt(0, 1)
    );
    // Those of one rack have the rack's number in the path, and take it all the same.
    assert!(
        learnt(1, 2).contains("BGP.as_path: 65000 65102"),
        "{}",
        learnt(1, 2)
    );
    let is_short = |route: &String| {
        let hops = cluster.members()[2].addresses;
        hops.iter()
            .any(|hop| route.contains(&format!("via {hop} ")))
    };
    let kernel = cluster.routes_to(1, &pods[2]);
    assert!(!kernel.iter().any(is_short), "{kernel:?}");
    assert!(kernel[0].contains("via 172.20.1.254 "), "{kernel:?}");

    // The router lets the next hop be where it is in the same network: packets take the short way.
    router.run(&conf("ttl security on;"));
    cluster.eventually("packets take the short way", || {
        cluster.routes_to_block_of(1, &pods[2]).iter().all(is_short)
    });
    cluster.all_reach_all(&pods);

    // Packets that might come from farther away are not heard.
    let established = || {
        let members = cluster.members().iter();
        let counts = members.map(|member| {
            birdc(member, "show protocols")
                .matches("Established")
                .count()
        });
        counts.sum::<usize>()
    };
    assert_eq!(established(), 6);
    router.run(&conf(""));
    cluster.eventually("no session holds", || established() == 0);
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        assert_eq!(established(), 0);
    }
    drop(speakers);
}

/// A peer for each rack and IP version.
fn write_peers(cluster: &Cluster, hops: u8) {
    let peer = |rack: u16| {
        router_in(rack).map(|address| {
            let version = if address.is_ipv4() { "v4" } else { "v6" };
            format!(
                "apiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata: {{name: rack-{rack}-{version}}}\n\
                 spec: {{nodeSelector: rack == 'r{rack}', peerIP: '{address}', asNumber: {ROUTER}, \
                 numAllowedLocalASNumbers: 1, ttlSecurity: {hops}}}\n---\n"
            )
        })
    };
    cluster.apply(&[0, 1].map(peer).concat().concat());
}

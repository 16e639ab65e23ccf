//! What a router outside the cluster learns, and what it is let tell.

use crate::bgp::peers::{configure, filter, open_pods, peer_with};
use crate::bgp::router::{Conf, Router, block_of};
use crate::multi_node::cluster::{Cluster, Overlay};
use crate::multi_node::reach::Pod;
use crate::multi_node::speaker::Speaker;

const CLUSTER: u32 = 64512;
const OUTSIDE: u32 = 65000;

/// Waits until the router has a route to an address's block through a node, and gives all that it knows of it.
#[track_caller]
fn await_route(cluster: &Cluster, router: &Router, network: ipnet::IpNet, node: usize) -> String {
    let member = &cluster.members()[node];
    let via = |found: &str| {
        let mut hops = member.addresses.iter();
        hops.any(|address| found.contains(&format!("via {address} ")))
    };
    cluster.eventually(&format!("{network} is learnt from node {node}"), || {
        via(&router.route(network))
    });
    router.route(network)
}

#[test]
fn blocks_borrowed_addresses_and_services_are_told_with_communities() {
    let mut cluster = Cluster::new(Overlay::Bgp, &[0, 0]);
    open_pods(&cluster);
    let mut router = Router::outside(&mut cluster, 0);
    peer_with(&cluster, "outside", (&router.place.addresses, OUTSIDE), "");
    configure(
        &cluster,
        "communities: [{name: pods, value: '64512:100'}, {name: large, value: '64512:1:2'}], \
         prefixAdvertisements: [{cidr: 10.65.0.0/16, communities: [pods, large]}, \
         {cidr: 10.96.0.0/16, communities: ['64512:300']}], \
         serviceClusterIPs: [{cidr: 10.96.0.0/16}, {cidr: 'fd96::/112'}], serviceExternalIPs: [{cidr: 203.0.113.0/24}]",
    );
    let speakers = Speaker::everywhere(&cluster);
    let pods = cluster.pods_everywhere();
    router.run(&Conf::towards(&cluster, &[0, 1], (OUTSIDE, CLUSTER)));
    for (node, pod) in pods.iter().enumerate() {
        for address in &pod.addresses {
            let found = await_route(&cluster, &router, block_of(*address), node);
            assert!(
                found.contains(&format!("BGP.as_path: {CLUSTER}")),
                "{found}"
            );
            let is_marked = found.contains("(64512,100)") && found.contains("(64512, 1, 2)");
            assert_eq!(is_marked, address.is_ipv4(), "{found}");
        }
    }

    let borrower = cluster.add_borrower(0, &pods[1]);
    let single = ipnet::IpNet::from(borrower.addresses[0]);
    let found = await_route(&cluster, &router, single, 0);
    assert!(found.contains("(64512,100)"), "{found}");
    for node in [0, 1] {
        for network in ["10.96.0.0/16", "fd96::/112", "203.0.113.0/24"] {
            await_route(&cluster, &router, network.parse().unwrap(), node);
        }
    }
    let services = router.route("10.96.0.0/16".parse().unwrap());
    assert_eq!(services.matches("(64512,300)").count(), 2, "{services}");
    // Of a block, peers are told the whole, and no addresses but those on the move.
    for pod in &pods {
        for address in &pod.addresses {
            let own = router.route(ipnet::IpNet::from(*address));
            assert!(own.is_empty(), "{own}");
        }
    }

    let all: Vec<Pod> = pods.into_iter().chain([borrower]).collect();
    for pod in &all {
        cluster.eventually(&format!("the router reaches {:?}", pod.addresses), || {
            router.place.pings(pod) && router.place.reaches(pod, 8080)
        });
    }
    cluster.eventually("pods reach the borrower", || all[1].pings(&all[2]));
    drop(speakers);
}

#[test]
fn filters_decide_what_is_told_and_what_is_taken() {
    let mut cluster = Cluster::new(Overlay::Bgp, &[0, 0]);
    open_pods(&cluster);
    let mut router = Router::outside(&mut cluster, 0);
    let speakers = Speaker::everywhere(&cluster);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    let blocks: Vec<_> = pods.iter().map(|pod| block_of(pod.addresses[0])).collect();
    let theirs = block_of(pods[1].addresses[1]);
    filter(
        &cluster,
        "selective",
        &format!(
            "  exportV4:\n  - {{action: Reject, cidr: {}, matchOperator: Equal}}\n  \
             importV4:\n  - {{action: Accept, cidr: 192.0.2.0/24, matchOperator: In}}\n  - {{action: Reject}}\n  \
             exportV6:\n  - {{action: Accept, cidr: 'fd65::/64', matchOperator: In, \
             operations: [{{addCommunity: {{value: '64512:666'}}}}, {{prependASPath: {{prefix: [64512, 64512]}}}}]}}\n",
            blocks[0]
        ),
    );
    let addresses = router.place.addresses.clone();
    let peer = |more: &str| {
        let more = format!(", node: node-0{more}");
        peer_with(&cluster, "outside", (&addresses, OUTSIDE), &more);
    };
    peer(", filters: [selective]");
    let told = ["192.0.2.0/24", "198.51.100.0/24"];
    let conf = Conf::towards(&cluster, &[0], (OUTSIDE, CLUSTER)).telling(&told);
    router.run(&conf);

    // Node 0 alone speaks with it, and tells of what it has from node 1 as if it were its own.
    await_route(&cluster, &router, blocks[1], 0);
    assert_eq!(router.route(blocks[0]), "", "a rejected block is told");
    let found = await_route(&cluster, &router, theirs, 0);
    assert!(found.contains("BGP.as_path: 64512 64512 64512"), "{found}");
    assert!(found.contains("(64512,666)"), "{found}");
    let has = |node: usize, network: &str| {
        let kernel = cluster.members()[node].run("ip", "route show proto bird");
        kernel.contains(network)
    };
    cluster.eventually("what is accepted is in the kernel", || has(0, told[0]));
    assert!(!has(0, told[1]), "what is rejected is in the kernel");
    // Nodes pass on what is of the cluster.
    assert!(!has(1, told[0]), "node 0 has told of other networks");

    // Where packets go that are for pods of another node.
    peer(", nextHopMode: Keep");
    await_route(&cluster, &router, blocks[1], 1);
    await_route(&cluster, &router, blocks[0], 0);
    cluster.eventually("it is taken without the filter", || has(0, told[1]));
    peer(", nextHopMode: Self");
    await_route(&cluster, &router, blocks[1], 0);
    peer(", keepOriginalNextHop: true");
    await_route(&cluster, &router, blocks[1], 1);
    cluster.eventually("the router reaches the pod", || {
        router.place.pings(&pods[1])
    });

    cluster.members()[0].tortie(&["delete", "bgppeer", "outside-v4"], "");
    cluster.eventually("the session is gone, and all that was told", || {
        router.route(blocks[0]).is_empty() && !has(0, told[0])
    });
    drop(speakers);
}

//! A pod that speaks BGP with its node.

use crate::bgp::peers::configure;
use crate::bgp::router::{Conf, Router, Session};
use crate::multi_node::cluster::{Cluster, Overlay};
use crate::multi_node::reach::Pod;
use crate::multi_node::speaker::Speaker;

/// What nodes show to such pods.
const NODE_SIDE: [&str; 2] = ["169.254.77.1", "fd77::1"];

/// What the pod has.
const TOLD: [&str; 2] = ["10.99.0.0/24", "fd99::/64"];

const POD: u32 = 65201;

/// The pod's BIRD, and what it has to say.
fn conf() -> Conf {
    let sessions = NODE_SIDE.iter().map(|address| Session {
        is_far: true,
        ..Session::with(address.parse().unwrap(), 64512)
    });
    let conf = Conf {
        as_number: POD,
        sessions: sessions.collect(),
        ..Conf::default()
    };
    conf.telling(&TOLD)
}

/// Where the pod is reached by what it tells.
fn place_behind(pod: &Pod) -> Pod {
    let addresses = ["10.99.0.7", "fd99::7"].map(|address| address.parse().unwrap());
    for address in addresses {
        let mut ip = std::process::Command::new("ip");
        let address: std::net::IpAddr = address;
        let length = if address.is_ipv4() { 32 } else { 128 };
        ip.args([
            "address",
            "add",
            &format!("{address}/{length}"),
            "dev",
            "eth0",
        ]);
        assert!(
            pod.namespace
                .run(|| ip.status())
                .unwrap()
                .unwrap()
                .success()
        );
    }
    Pod {
        namespace: pod.namespace.clone(),
        container: "behind the pod".to_owned(),
        addresses: addresses.into(),
    }
}

#[test]
fn a_pod_tells_its_node_a_prefix_which_other_nodes_learn() {
    let mut cluster = Cluster::new(Overlay::Bgp, &[0, 0]);
    // What a pod tells leads to its node, and is passed on as it is in a pool.
    cluster.apply(
        "apiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata: {name: pods}\n\
         spec: {localWorkloadSelector: app == 'router', asNumber: 65201}\n---\n\
         apiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata: {name: nodes}\n\
         spec: {nodeSelector: all(), peerSelector: all(), nextHopMode: Self}\n",
    );
    for (name, cidr) in ["told-v4", "told-v6"].iter().zip(TOLD) {
        cluster.apply(&format!(
            "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {{name: {name}}}\n\
             spec: {{cidr: '{cidr}', ipipMode: Never, vxlanMode: Never, disabled: true}}\n"
        ));
    }
    let [v4, v6] = NODE_SIDE;
    configure(
        &cluster,
        &format!(
            "nodeToNodeMeshEnabled: false, localWorkloadPeeringIPV4: {v4}, localWorkloadPeeringIPV6: '{v6}'"
        ),
    );
    let mut speakers = Speaker::everywhere(&cluster);
    let pods = cluster.pods_everywhere();
    cluster.all_reach_all(&pods);
    cluster.label_pod(&pods[0], "app=router");
    crate::bgp::peers::open_pods(&cluster);
    let mut router = Router::in_pod(&pods[0]);
    router.run(&conf());
    let sessions = NODE_SIDE.map(|address| address.parse().unwrap());
    // Somebody else's stays.
    let links = cluster.links(0);
    let interface = links.iter().find(|link| link.starts_with("cali")).unwrap();
    let foreign = "192.0.2.77/32";
    let member = &cluster.members()[0];
    member.run("ip", &format!("address add {foreign} dev {interface}"));
    let addresses = || member.run("ip", &format!("address show dev {interface}"));
    cluster.eventually("the node has addresses for the pod", || {
        NODE_SIDE
            .iter()
            .all(|address| addresses().contains(address))
    });
    for session in sessions {
        cluster.eventually(&format!("the pod has a session with {session}"), || {
            router.is_established(session)
        });
    }
    let behind = place_behind(&pods[0]);
    for node in [0, 1] {
        cluster.eventually(
            &format!("node {node} has routes to what the pod tells"),
            || {
                let kernel = cluster.routes_to_block_of(node, &behind);
                kernel
                    .iter()
                    .filter(|route| route.contains("proto bird"))
                    .count()
                    == 2
            },
        );
    }
    cluster.eventually("a pod elsewhere reaches it", || {
        pods[1].pings(&behind) && pods[1].reaches(&behind, 8080)
    });

    // It outlives the one who keeps BIRD.
    let since = router.birdc("show protocols");
    speakers.remove(0).kill();
    let again = Speaker::start(&cluster.members()[0]);
    let streams = pods[1].datagrams(&behind);
    for stream in &streams {
        stream.await_arrivals();
    }
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(
        router.birdc("show protocols"),
        since,
        "the sessions were ended"
    );
    for stream in streams {
        assert_eq!(stream.lost().len(), 0);
    }

    cluster.label_pod(&pods[0], "app=other");
    cluster.eventually("what it told is gone", || {
        cluster.routes_to_block_of(1, &behind).is_empty()
    });
    cluster.eventually("and so are the node's addresses towards it", || {
        !NODE_SIDE
            .iter()
            .any(|address| addresses().contains(address))
    });
    assert!(addresses().contains(foreign), "{}", addresses());
    drop(again);
}

//! `bgp why` and `bgp doctor` on nodes with real BIRD, whose sessions and routes are broken in several ways.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::IpAddr;

use crate::multi_node::cluster::{Cluster, Overlay};
use crate::multi_node::member::Member;
use crate::multi_node::speaker::{Speaker, run_folder};

const MESH: &str = "apiVersion: projectcalico.org/v3\nkind: BGPConfiguration\nmetadata: {name: default}\n\
    spec: {nodeToNodeMeshEnabled: true}\n";

/// Three nodes with BIRD, and an IPv4 address of a pod of the second one.
struct World {
    cluster: Cluster,
    speakers: Vec<Speaker>,
    pod: String,
}

impl World {
    fn new() -> Self {
        let mut cluster = Cluster::new(Overlay::Bgp, &[0, 0, 0]);
        let speakers: Vec<Speaker> = cluster.members().iter().map(Speaker::start).collect();
        let pods = cluster.pods_everywhere();
        cluster.all_reach_all(&pods);
        let pod = pods[1].addresses.iter().find(|address| address.is_ipv4());
        let pod = pod.unwrap().to_string();
        Self {
            cluster,
            speakers,
            pod,
        }
    }

    fn member(&self, node: usize) -> &Member {
        &self.cluster.members()[node]
    }

    /// A node's own IPv4 address.
    fn address(&self, node: usize) -> IpAddr {
        let printed = self.member(node).run("ip", "-4 -o addr show dev eth0");
        let mut words = printed.split_whitespace();
        let text = words.find(|word| word.contains('/')).unwrap();
        text.split('/').next().unwrap().parse().unwrap()
    }

    fn ask(&self, node: usize, arguments: &[&str]) -> (i32, String) {
        let member = self.member(node);
        let run = run_folder(member).display().to_string();
        member.answer(&[&["bgp"], arguments, &["--run-folder", &run]].concat())
    }

    fn doctor(&self, node: usize) -> (i32, String) {
        self.ask(node, &["doctor"])
    }

    /// Waits until an answer has this code and all of these parts.
    #[track_caller]
    fn await_answer(&self, node: usize, arguments: &[&str], code: i32, parts: &[&str]) {
        let last = std::cell::RefCell::new(String::new());
        let is_so = || {
            let (found, said) = self.ask(node, arguments);
            let is_so = found == code && parts.iter().all(|part| said.contains(part));
            *last.borrow_mut() = format!("code {found}:\n{said}");
            is_so
        };
        let end = std::time::Instant::now() + std::time::Duration::from_secs(40);
        while !is_so() {
            assert!(
                std::time::Instant::now() < end,
                "not {code} with {parts:?}, but {}",
                last.borrow()
            );
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }

    #[track_caller]
    fn await_why(&self, node: usize, code: i32, parts: &[&str]) {
        self.await_answer(node, &["why", &self.pod], code, parts);
    }
}

fn object(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: projectcalico.org/v3\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n"
    )
}

fn mesh_off() -> String {
    MESH.replace("true", "false") + "---\n"
}

#[test]
fn what_is_broken_is_named() {
    let mut world = World::new();
    // All is well, here and there.
    world.await_why(
        1,
        0,
        &[
            "is advertised by node-1 to 2 peers",
            "BIRD tells it by Mesh_",
            "blackhole",
        ],
    );
    world.await_why(
        0,
        0,
        &[
            "is learnt by node-0 and programmed by BIRD",
            "which it prefers",
            "proto bird",
        ],
    );
    let (code, said) = world.doctor(0);
    assert_eq!(code, 0, "{said}");

    // The pool stays at home.
    let pool = |export: &str| {
        object(
            "IPPool",
            "ipv4",
            &format!(
                "{{cidr: 10.65.0.0/16, vxlanMode: Never, ipipMode: Never, disableBGPExport: {export}}}"
            ),
        )
    };
    world.cluster.apply(&pool("true"));
    world.await_why(
        1,
        2,
        &[
            "is not advertised by node-1",
            "IPPool(ipv4): spec.disableBGPExport = true",
        ],
    );
    world.await_why(
        0,
        2,
        &[
            "is not learnt by node-0",
            "IPPool(ipv4): spec.disableBGPExport = true",
            "the kernel has no route",
        ],
    );
    world.cluster.apply(&pool("false"));
    world.await_why(0, 0, &["is learnt by node-0"]);

    // A filter rejects.
    let filtered = [
        object(
            "BGPFilter",
            "closed",
            "{exportV4: [{action: Reject, cidr: 10.65.0.0/16, matchOperator: In}]}",
        ),
        object(
            "BGPPeer",
            "all",
            "{nodeSelector: all(), peerSelector: all(), filters: [closed]}",
        ),
        mesh_off(),
    ];
    world.cluster.apply(&filtered.concat());
    world.await_why(
        1,
        2,
        &["rejects 10.65.", "BGPFilter(closed): spec.exportV4[0]"],
    );
    world.await_why(
        0,
        2,
        &[
            "NOT learnt from node-1",
            "BGPFilter(closed): spec.exportV4[0]",
        ],
    );
    world.member(0).tortie(&["delete", "bgppeer", "all"], "");
    world.await_why(
        0,
        2,
        &["the mesh is switched off, and no BGPPeer joins node-0 and node-1"],
    );

    // Another AS number than the neighbour has.
    let (a, b) = (world.address(0), world.address(1));
    let wrong = [
        object(
            "BGPPeer",
            "there",
            &format!("{{node: node-0, peerIP: {b}, asNumber: 65001, reversePeering: Manual}}"),
        ),
        object(
            "BGPPeer",
            "back",
            &format!("{{node: node-1, peerIP: {a}, asNumber: 64512, reversePeering: Manual}}"),
        ),
    ];
    world.cluster.apply(&wrong.concat());
    world.await_answer(
        0,
        &["doctor"],
        1,
        &[
            "BGPPeer(there): spec.asNumber = 65001",
            "is not established",
            "Bad peer AS",
        ],
    );
    world.await_why(
        0,
        2,
        &[
            "BGPPeer(there): spec.asNumber = 65001",
            "is not established",
        ],
    );
    world.await_answer(
        2,
        &["doctor", "--node", "node-2"],
        1,
        &[
            "node-2 has no sessions",
            "spec.nodeToNodeMeshEnabled = false",
        ],
    );
    world
        .member(0)
        .tortie(&["delete", "bgppeer", "there", "back"], "");
    world.cluster.apply(MESH);
    world.await_why(0, 0, &["is learnt by node-0"]);

    // A claim that is announced, and no more.
    let claim = "{cidr: 10.65.200.0/26, node: node-1, state: pending, deleted: false}";
    let pending = object("BlockAffinity", "node-1-10-65-200-0-26", claim);
    world.cluster.apply(&pending);
    world.await_answer(
        0,
        &["why", "10.65.200.0/26"],
        2,
        &[
            "is not learnt by node-0",
            "BlockAffinity(node-1-10-65-200-0-26): spec.state = pending",
        ],
    );
    world
        .cluster
        .apply(&pending.replace("pending", "confirmed"));
    world.await_answer(0, &["why", "10.65.200.0/26"], 0, &["proto bird"]);

    // Nobody listens on the other side. Of two neighbours of the mesh, the one with the larger address connects.
    let own: Vec<String> = (0..3).map(|node| world.address(node).to_string()).collect();
    assert!(own[2] > own[0], "{own:?}");
    drop(world.speakers.remove(0));
    let closed = format!("nobody listens at {}:179", own[0]);
    world.await_answer(2, &["doctor"], 1, &["is not established", &closed]);
    world.await_answer(0, &["doctor"], 1, &["BIRD does not answer"]);
    world.await_why(
        0,
        2,
        &["should be learnt by node-0", "BIRD does not answer"],
    );
    // The datastore says that all is told; BIRD knows better.
    world.await_why(
        1,
        2,
        &[
            "should be advertised by node-1 to 2 peers",
            "is not established",
        ],
    );
}

//! What is wrong with sessions: each finding once, with its object, field and what would be right.

mod sessions;

use serde_json::{Value, json};
use tortie_bgp::doctor::{Finding, examine};
use tortie_bgp::{Cluster, Identity, Update};

use crate::world::{configuration, labelled, node, object, peer, stored};

fn findings(resources: &[Value]) -> Vec<Finding> {
    let mut cluster = Cluster::new(Identity::default());
    for value in resources {
        cluster.put(Update::Resource(stored(value)));
    }
    examine(&mut cluster, None)
}

fn nodes() -> Vec<Value> {
    vec![node("node1", "192.0.2.1/24"), node("node2", "192.0.2.2/24")]
}

fn with(more: &[Value]) -> Vec<Value> {
    let mut all = nodes();
    for value in more {
        let is_same = |old: &Value| {
            old["kind"] == value["kind"] && old["metadata"]["name"] == value["metadata"]["name"]
        };
        all.retain(|old| !is_same(old));
        all.push(value.clone());
    }
    all
}

/// There is a finding with this field, value and part of the text, and all but it are of no matter.
#[track_caller]
fn check(resources: &[Value], severity: &str, origin: &str, value: Option<&str>, part: &str) {
    let findings = findings(resources);
    let is_it = |finding: &&Finding| {
        let of = finding.reason.origin.as_ref();
        of.is_some_and(|of| of.to_string() == origin) && finding.reason.text.contains(part)
    };
    let Some(found) = findings.iter().find(is_it) else {
        panic!("no {origin} with {part:?}: {findings:#?}");
    };
    assert_eq!(found.reason.value.as_deref(), value, "{found:#?}");
    assert_eq!(found.is_error(), severity == "error", "{found:#?}");
    let is_problem_of_plan = found.reason.remedy.is_none();
    assert!(
        found.reason.remedy.is_some() || is_problem_of_plan,
        "{found:#?}"
    );
}

#[test]
fn what_is_right_has_no_findings() {
    assert_eq!(findings(&nodes()), []);
    let off = configuration(json!({"nodeToNodeMeshEnabled": false}));
    let all = peer(
        "all",
        json!({"nodeSelector": "all()", "peerSelector": "all()"}),
    );
    assert_eq!(findings(&with(&[off, all])), []);
}

#[test]
fn addresses() {
    check(
        &with(&[node("node2", "192.0.2.1/24")]),
        "error",
        "Node(node2): spec.bgp.ipv4Address",
        Some("192.0.2.1"),
        "Node(node1) too",
    );
    check(
        &with(&[object("Node", "node3", json!({}))]),
        "error",
        "Node(node3): spec.bgp.ipv4Address",
        None,
        "no IPv4 address",
    );
    check(
        &with(&[object(
            "Node",
            "node3",
            json!({"bgp": {"ipv4Address": "192.0.2.300/24"}}),
        )]),
        "error",
        "Node(node3): spec.bgp.ipv4Address",
        None,
        "192.0.2.300/24",
    );
    let both = |name: &str, number: u8| {
        object(
            "Node",
            name,
            json!({"bgp": {
                "ipv4Address": format!("192.0.2.{number}/24"), "ipv6Address": format!("2001:db8::{number}/64"),
            }}),
        )
    };
    let world = [
        both("node1", 1),
        both("node2", 2),
        both("node3", 3),
        node("node4", "192.0.2.4/24"),
    ];
    check(
        &world,
        "warning",
        "Node(node4): spec.bgp.ipv6Address",
        None,
        "no IPv6 address",
    );
    let v6 = peer("v6", json!({"peerIP": "2001:db8::9", "asNumber": 65000}));
    check(
        &with(&[v6]),
        "error",
        "BGPPeer(v6): spec.peerIP",
        None,
        "has no IPv6 address",
    );
}

#[test]
fn router_ids() {
    let mut cluster = Cluster::new(Identity {
        node: "node1".to_owned(),
        router_id: Some("192.0.2.2".to_owned()),
        kubernetes_node: None,
    });
    for value in nodes() {
        cluster.put(Update::Resource(stored(&value)));
    }
    let findings = examine(&mut cluster, None);
    let found = &findings[0].reason;
    assert!(
        found.text.contains("both call themselves 192.0.2.2"),
        "{findings:#?}"
    );
    assert!(found.remedy.as_ref().unwrap().contains("CALICO_ROUTER_ID"));
}

#[test]
fn reflectors() {
    let reflector = |name: &str, number: u8, id: &str, rack: &str| {
        let bgp =
            json!({"ipv4Address": format!("192.0.2.{number}/24"), "routeReflectorClusterID": id});
        labelled(
            object("Node", name, json!({"bgp": bgp})),
            json!({"rr": rack}),
        )
    };
    let off = configuration(json!({"nodeToNodeMeshEnabled": false}));
    let all = peer(
        "all",
        json!({"nodeSelector": "all()", "peerSelector": "has(rr)"}),
    );
    let both = |id| {
        [
            reflector("rr1", 11, "244.0.0.1", "a"),
            reflector("rr2", 12, id, "b"),
            all.clone(),
        ]
    };
    let world = |id, more: &[Value]| with(&[&both(id)[..], more].concat());
    assert_eq!(
        findings(&world("244.0.0.1", std::slice::from_ref(&off))),
        []
    );
    check(
        &world("244.0.0.2", std::slice::from_ref(&off)),
        "warning",
        "Node(rr2): spec.bgp.routeReflectorClusterID",
        Some("244.0.0.2"),
        "different cluster ids",
    );
    check(
        &world("244.0.0.1", &[]),
        "warning",
        "BGPConfiguration(default): spec.nodeToNodeMeshEnabled",
        Some("true"),
        "beside the route reflector rr1",
    );
    // Alone in a mesh that leaves it out.
    check(
        &with(&[reflector("rr1", 11, "244.0.0.1", "a")]),
        "error",
        "Node(rr1): spec.bgp.routeReflectorClusterID",
        Some("244.0.0.1"),
        "leaves route reflectors out",
    );
    let one = |name: &str, node: &str, rr: &str| {
        peer(
            name,
            json!({"nodeSelector": format!("n == '{node}'"), "peerSelector": format!("rr == '{rr}'")}),
        )
    };
    let apart = [
        labelled(node("node1", "192.0.2.1/24"), json!({"n": "1"})),
        labelled(node("node2", "192.0.2.2/24"), json!({"n": "2"})),
        reflector("rr1", 11, "244.0.0.1", "a"),
        reflector("rr2", 12, "244.0.0.1", "b"),
        one("p1", "1", "a"),
        one("p2", "2", "b"),
        off,
    ];
    check(
        &apart,
        "error",
        "Node(rr2): spec.bgp.routeReflectorClusterID",
        Some("244.0.0.1"),
        "have no session",
    );
}

#[test]
fn who_programs_routes() {
    let pool = object(
        "IPPool",
        "pods",
        json!({"cidr": "10.65.0.0/16", "ipipMode": "Never", "vxlanMode": "Never"}),
    );
    let nobody = configuration(json!({"programClusterRoutes": "Disabled"}));
    check(
        &with(&[pool, nobody]),
        "error",
        "BGPConfiguration(default): spec.programClusterRoutes",
        None,
        "nobody programs",
    );
}

#[test]
fn a_node_is_told_of_what_concerns_it() {
    let mut cluster = Cluster::new(Identity::default());
    for value in with(&[
        node("node2", "192.0.2.1/24"),
        node("node3", "192.0.2.3/24"),
        object("Node", "node4", json!({})),
    ]) {
        cluster.put(Update::Resource(stored(&value)));
    }
    let about = |cluster: &mut Cluster, node| {
        examine(cluster, Some(node))
            .iter()
            .filter(|f| f.reason.text.contains("too"))
            .count()
    };
    assert_eq!(
        [about(&mut cluster, "node1"), about(&mut cluster, "node2")],
        [1, 1]
    );
    assert_eq!(about(&mut cluster, "node4"), 0);
}

/// Time grows with what is looked at: a thousand nodes take seconds in a build for tests, and not minutes.
#[test]
fn a_thousand_nodes() {
    let mut all: Vec<Value> = (0..1000_u32)
        .map(|index| {
            node(
                &format!("node{index}"),
                &format!("10.{}.{}.1/8", index / 256, index % 256),
            )
        })
        .collect();
    all.push(node("twin", "10.0.7.1/8"));
    let start = std::time::Instant::now();
    let found = findings(&all);
    assert!(
        found
            .iter()
            .any(|finding| finding.reason.text.contains("Node(node7) too")),
        "{:?}",
        found.first()
    );
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

//! Both sides of sessions, and routers.

use serde_json::{Value, json};
use tortie_bgp::doctor::{End, disagreements, examine};
use tortie_bgp::{Cluster, Family, Identity, Update};

use super::{check, findings, with};
use crate::world::{configuration, object, peer, stored};

#[test]
fn numbers_of_autonomous_systems() {
    let own = |name: &str, address: &str, number: u32| {
        object(
            "Node",
            name,
            json!({"bgp": {"ipv4Address": address, "asNumber": number}}),
        )
    };
    // In the mesh, a node takes its own number for that of nodes without one.
    check(
        &with(&[own("node1", "192.0.2.1/24", 65001)]),
        "error",
        "Node(node1): spec.bgp.asNumber",
        Some("65001"),
        "such as node2, which have 64512",
    );
    assert_eq!(findings(&with(&[own("node1", "192.0.2.1/24", 64512)])), []);
    assert_eq!(
        findings(&with(&[
            own("node1", "192.0.2.1/24", 65001),
            own("node2", "192.0.2.2/24", 65002)
        ])),
        []
    );

    let wrong = peer(
        "to-2",
        json!({"node": "node1", "peerIP": "192.0.2.2", "asNumber": 65001}),
    );
    check(
        &with(std::slice::from_ref(&wrong)),
        "error",
        "BGPPeer(to-2): spec.asNumber",
        Some("65001"),
        "which has 64512",
    );
    let back = peer(
        "to-1",
        json!({"node": "node2", "peerIP": "192.0.2.1", "asNumber": 64512}),
    );
    check(
        &with(&[wrong, back]),
        "error",
        "BGPPeer(to-2): spec.asNumber",
        Some("65001"),
        "which says 64512",
    );
    let local = |name: &str, node: &str, ip: &str, number: Option<u32>| {
        let mut spec =
            json!({"node": node, "peerIP": ip, "asNumber": 64512, "reversePeering": "Manual"});
        if let Some(number) = number {
            spec["localASNumber"] = json!(number);
        }
        peer(name, spec)
    };
    let pair = [
        local("a", "node1", "192.0.2.2", Some(65009)),
        local("b", "node2", "192.0.2.1", None),
    ];
    check(
        &with(&pair),
        "error",
        "BGPPeer(a): spec.localASNumber",
        Some("65009"),
        "expects the AS number 64512 of node1",
    );
}

/// One `BGPPeer` on each node, with the other one and these specs.
fn pair(there: Value, back: Value) -> Vec<Value> {
    let side = |name: &str, node: &str, ip: &str, more: Value| {
        let mut spec =
            json!({"node": node, "peerIP": ip, "asNumber": 64512, "reversePeering": "Manual"});
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        peer(name, spec)
    };
    let off = configuration(json!({"nodeToNodeMeshEnabled": false}));
    with(&[
        off,
        side("a", "node1", "192.0.2.2", there),
        side("b", "node2", "192.0.2.1", back),
    ])
}

#[test]
fn sides_that_mean_different_things() {
    assert_eq!(findings(&pair(json!({}), json!({}))), []);
    check(
        &pair(json!({"ttlSecurity": 1}), json!({})),
        "error",
        "BGPPeer(a): spec.ttlSecurity",
        Some("1"),
        "node1 drops packets",
    );
    assert_eq!(
        findings(&pair(json!({"ttlSecurity": 1}), json!({"ttlSecurity": 1}))),
        []
    );
    check(
        &pair(json!({"sourceAddress": "None"}), json!({})),
        "warning",
        "BGPPeer(a): spec.sourceAddress",
        Some("None"),
        "from 192.0.2.1 only",
    );
    // One side can still open the session.
    check(
        &pair(json!({"peerIP": "192.0.2.2:1179"}), json!({})),
        "warning",
        "BGPPeer(a): spec.peerIP",
        Some("1179"),
        "which listens on 179",
    );
    check(
        &pair(
            json!({"peerIP": "192.0.2.2:1179"}),
            json!({"peerIP": "192.0.2.1:1179"}),
        ),
        "error",
        "BGPPeer(b): spec.peerIP",
        Some("1179"),
        "which listens on 179",
    );
}

#[test]
fn passwords_are_on_both_sides_and_never_shown() {
    let mut cluster = Cluster::new(Identity::default());
    let password = |key: &str| json!({"password": {"secretKeyRef": {"name": "s", "key": key}}});
    let world = |there: Value, back: Value| pair(there, back);
    for value in world(password("one"), password("two")) {
        cluster.put(Update::Resource(stored(&value)));
    }
    for (key, text) in [("one", "first secret"), ("two", "second secret")] {
        let of = tortie_bgp::inputs::SecretRef {
            name: "s".to_owned(),
            key: key.to_owned(),
        };
        let text = tortie_bgp::inputs::SecretText::new(text.as_bytes());
        cluster.put(Update::Secret(of, Some(text)));
    }
    assert_eq!(cluster.secrets().len(), 2);
    let findings = examine(&mut cluster, None);
    assert!(
        findings[0].reason.text.contains("different passwords"),
        "{findings:#?}"
    );
    assert!(!format!("{findings:?}").contains("secret\""));
    assert!(
        !serde_json::to_string(&findings)
            .unwrap()
            .contains("first secret")
    );
    check(
        &pair(password("gone"), json!({})),
        "error",
        "BGPPeer(a): spec.password.secretKeyRef",
        None,
        "there is no secret",
    );
}

#[test]
fn sessions_of_one_side() {
    let off = configuration(json!({"nodeToNodeMeshEnabled": false}));
    let manual = peer(
        "a",
        json!({"node": "node1", "peerIP": "192.0.2.2", "asNumber": 64512, "reversePeering": "Manual"}),
    );
    check(
        &with(&[off.clone(), manual]),
        "error",
        "BGPPeer(a): spec.reversePeering",
        Some("Manual"),
        "which has none with node1",
    );
    let port = configuration(json!({"nodeToNodeMeshEnabled": false, "listenPort": 1179}));
    let asked = peer(
        "a",
        json!({"node": "node1", "peerIP": "192.0.2.2:179", "asNumber": 64512}),
    );
    check(
        &with(&[port, asked]),
        "error",
        "BGPPeer(a): spec.peerIP",
        Some("192.0.2.2:179"),
        "which listens on 1179",
    );
    check(
        &with(&[off]),
        "error",
        "BGPConfiguration(default): spec.nodeToNodeMeshEnabled",
        Some("false"),
        "node1 has no sessions",
    );
}

/// Of two sides that both could open the session, the one with the lesser address waits, whoever asks for it.
#[test]
fn both_sides_wait() {
    let off = configuration(json!({"nodeToNodeMeshEnabled": false}));
    let global = |name: &str, ip: &str| peer(name, json!({"peerIP": ip, "asNumber": 64512}));
    let world = with(&[off, global("g1", "192.0.2.1"), global("g2", "192.0.2.2")]);
    assert_eq!(findings(&world), []);
    let mut cluster = Cluster::new(Identity::default());
    for value in &world {
        cluster.put(Update::Resource(stored(value)));
    }
    let plans = ["node1", "node2"].map(|node| cluster.plan(node));
    let mut peers = plans
        .each_ref()
        .map(|plan| plan.family(Family::V4).peers[0].clone());
    for is_passive in [false, true] {
        for peer in &mut peers {
            peer.is_passive = is_passive;
        }
        let [a, b] = [0, 1].map(|side| End::new(&plans[side], &peers[side]).unwrap());
        let found = disagreements(&a, &b);
        let said = found.iter().any(|finding| {
            finding.is_error()
                && finding.reason.text
                    == "node1 and node2 both wait for the other to open the session"
        });
        assert_eq!(said, is_passive, "{found:#?}");
    }
}

#[test]
fn routers() {
    let far = |more: Value| {
        let mut spec = json!({"peerIP": "203.0.113.1", "asNumber": 65000});
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        peer("far", spec)
    };
    check(
        &with(&[far(json!({}))]),
        "warning",
        "BGPPeer(far): spec.reachableBy",
        Some("nothing"),
        "not in the network 192.0.2.0/24",
    );
    check(
        &with(&[far(json!({"ttlSecurity": 1, "reachableBy": "192.0.2.254"}))]),
        "error",
        "BGPPeer(far): spec.ttlSecurity",
        Some("1"),
        "pass a router",
    );
    assert_eq!(
        findings(&with(&[far(json!({"reachableBy": "192.0.2.254"}))])),
        []
    );
    check(
        &with(&[far(
            json!({"filters": ["gone"], "reachableBy": "192.0.2.254"}),
        )]),
        "error",
        "BGPPeer(far): spec.filters[0]",
        None,
        "no BGPFilter `gone`",
    );
}

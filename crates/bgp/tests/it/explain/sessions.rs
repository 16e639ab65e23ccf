//! Sessions that are not there or do not come up, and the way from node to node.

use serde_json::{Value, json};

use super::{BLOCK, ask, block, filter, pool, refused, router, with};
use crate::world::{configuration, labelled, object, peer};

#[test]
fn sessions_that_are_not_there() {
    let off = configuration(json!({"nodeToNodeMeshEnabled": false}));
    refused(
        &with(std::slice::from_ref(&off)),
        (None, None),
        "BGPConfiguration(default): spec.nodeToNodeMeshEnabled",
    );
    refused(
        &with(&[off]),
        (Some("node2"), None),
        "BGPConfiguration(default): spec.nodeToNodeMeshEnabled",
    );

    let reflector = object(
        "Node",
        "node2",
        json!({
            "bgp": {"ipv4Address": "192.0.2.2/24", "routeReflectorClusterID": "244.0.0.1"},
        }),
    );
    refused(
        &with(&[reflector]),
        (Some("node2"), None),
        "Node(node2): spec.bgp.routeReflectorClusterID",
    );

    let without = object("Node", "node2", json!({}));
    refused(
        &with(&[without]),
        (Some("node2"), None),
        "Node(node2): spec.bgp.ipv4Address",
    );

    let elsewhere = router(json!({"node": "node3"}));
    refused(
        &with(&[elsewhere]),
        (None, Some("router")),
        "BGPPeer(router): spec.node",
    );
    let wrong = router(json!({"peerIP": "192.0.2.999"}));
    refused(
        &with(&[wrong]),
        (None, Some("router")),
        "BGPPeer(router): spec.peerIP",
    );
    let password = json!({"password": {"secretKeyRef": {"name": "p", "key": "k"}}});
    refused(
        &with(&[router(password)]),
        (None, None),
        "BGPPeer(router): spec.password.secretKeyRef",
    );
    let v6 = router(json!({"peerIP": "2001:db8::9"}));
    refused(
        &with(&[v6]),
        (None, Some("router")),
        "BGPPeer(router): spec.peerIP",
    );
    let own = router(json!({"peerIP": "192.0.2.1"}));
    refused(
        &with(&[own]),
        (Some("node1"), Some("router")),
        "BGPPeer(router): spec.peerIP",
    );
    let nobody = peer(
        "router",
        json!({"nodeSelector": "all()", "peerSelector": "rack == '9'"}),
    );
    refused(
        &with(&[nobody]),
        (Some("node1"), Some("router")),
        "BGPPeer(router): spec.peerSelector",
    );
}

#[test]
fn sides_that_do_not_agree() {
    let off = configuration(json!({"nodeToNodeMeshEnabled": false}));
    let there = peer(
        "there",
        json!({
            "node": "node1", "peerIP": "192.0.2.2", "asNumber": 64512, "reversePeering": "Manual",
        }),
    );
    let back = peer(
        "back",
        json!({
            "node": "node2", "peerIP": "192.0.2.1", "asNumber": 65001, "reversePeering": "Manual",
        }),
    );
    let world = with(&[off.clone(), there.clone(), back]);
    refused(&world, (None, None), "BGPPeer(back): spec.asNumber");
    refused(
        &world,
        (Some("node2"), None),
        "BGPPeer(back): spec.asNumber",
    );
    refused(
        &with(&[off, there]),
        (Some("node2"), None),
        "BGPConfiguration(default): spec.nodeToNodeMeshEnabled",
    );
}

#[test]
fn paths_with_the_nodes_own_number() {
    // Each node has an AS of its own, and the second one adds the third one's number to what it tells.
    let own = |name: &str, address: &str, number: u32| {
        object(
            "Node",
            name,
            json!({"bgp": {"ipv4Address": address, "asNumber": number}}),
        )
    };
    let prepend = filter(
        "prepend",
        json!({"exportV4": [{
            "action": "Accept", "operations": [{"prependASPath": {"prefix": [65002]}}],
        }]}),
    );
    let nodes = [
        own("node1", "192.0.2.1/24", 65001),
        own("node2", "192.0.2.2/24", 65002),
        configuration(json!({"nodeToNodeMeshEnabled": false})),
        peer(
            "all",
            json!({"nodeSelector": "all()", "peerSelector": "all()", "filters": ["prepend"]}),
        ),
        prepend,
    ];
    refused(
        &with(&nodes),
        (Some("node2"), None),
        "BGPPeer(all): spec.numAllowedLocalASNumbers",
    );
    let mut allowed = nodes.clone();
    allowed[3]["spec"]["numAllowedLocalASNumbers"] = json!(1);
    let answer = ask(&with(&allowed), BLOCK, Some("node2"), None);
    assert!(answer.is_well, "{answer:#?}");
}

/// Two reflectors, of which each node has one, and which have each other.
fn reflectors(with_each_other: bool) -> Vec<Value> {
    let node = |name: &str, address: &str, id: &str, rack: &str| {
        let bgp = json!({"ipv4Address": address, "routeReflectorClusterID": id});
        labelled(
            object("Node", name, json!({"bgp": bgp})),
            json!({"rack": rack}),
        )
    };
    let rack = |name: &str| {
        peer(
            &format!("rack-{name}"),
            json!({
                "nodeSelector": format!("rack == '{name}'"), "peerSelector": format!("rack == 'rr-{name}'"),
            }),
        )
    };
    let mut all = vec![
        node("node1", "192.0.2.1/24", "", "a"),
        node("node2", "192.0.2.2/24", "", "b"),
        node("rr1", "192.0.2.11/24", "244.0.0.1", "rr-a"),
        node("rr2", "192.0.2.12/24", "244.0.0.2", "rr-b"),
        rack("a"),
        rack("b"),
        configuration(json!({"nodeToNodeMeshEnabled": false})),
        pool(json!({})),
        block("node1", BLOCK, "confirmed"),
    ];
    if with_each_other {
        all.push(peer(
            "rrs",
            json!({
                "nodeSelector": "rack starts with 'rr-'", "peerSelector": "rack starts with 'rr-'",
            }),
        ));
    }
    all
}

#[test]
fn routes_come_by_reflectors() {
    let answer = ask(&reflectors(true), BLOCK, Some("node2"), None);
    assert!(answer.is_well, "{answer:#?}");
    let learnt = &answer.nodes[1].learnt[0];
    assert_eq!(learnt.way, ["node1", "rr1", "rr2"]);
    let answer = ask(&reflectors(false), BLOCK, Some("node2"), None);
    assert!(!answer.is_well, "{answer:#?}");
    assert!(
        answer.verdict.contains("no BGPPeer joins"),
        "{}",
        answer.verdict
    );
}

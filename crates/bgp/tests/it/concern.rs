//! Which changes can make another plan of this node.

use serde_json::{Value, json};
use tortie_api::Kind;
use tortie_bgp::{Inputs, Plan, Update};

use crate::world::{
    configuration, identity, inputs, labelled, node, object, peer, resource, stored,
};

/// Two nodes of a mesh, and a block of each.
fn mesh() -> Inputs {
    let block = |name: &str, cidr: &str| {
        let spec = json!({"cidr": cidr, "node": name, "state": "confirmed", "deleted": false});
        object("BlockAffinity", name, spec)
    };
    inputs(
        identity(),
        [
            node("node1", "192.0.2.1/24"),
            node("node2", "192.0.2.2/24"),
            object("IPPool", "p", json!({"cidr": "10.0.0.0/16"})),
            block("node1", "10.0.1.0/26"),
            block("node2", "10.0.2.0/26"),
        ],
    )
}

/// The mesh is off, and nodes with a role are route reflectors of the others.
fn reflectors() -> Inputs {
    let mut inputs = mesh();
    let rest = [
        configuration(json!({"nodeToNodeMeshEnabled": false})),
        labelled(node("rr", "192.0.2.9/24"), json!({"role": "rr"})),
        peer(
            "to-rr",
            json!({"nodeSelector": "!has(role)", "peerSelector": "role == 'rr'"}),
        ),
    ];
    for value in rest {
        inputs.update(Update::Resource(resource(&value)));
    }
    inputs
}

/// A change that does not concern this node leaves the plan as it is, too.
#[track_caller]
fn check(mut inputs: Inputs, change: &Value, expected: bool) {
    let before = Plan::new(&inputs);
    let told = inputs.update(Update::Resource(stored(change)));
    let is_other = Plan::new(&inputs) != before;
    assert_eq!(told, expected, "{change}");
    assert!(told || !is_other, "the plan is another after {change}");
    let again = inputs.update(Update::Resource(stored(change)));
    assert!(!again, "nothing is new the second time: {change}");
}

#[test]
fn blocks_are_a_matter_of_their_nodes() {
    let block = |node: &str, state: &str| {
        let spec = json!({"cidr": "10.0.3.0/26", "node": node, "state": state, "deleted": false});
        object("BlockAffinity", "new", spec)
    };
    check(mesh(), &block("node1", "confirmed"), true);
    check(mesh(), &block("node1", "pendingDeletion"), true);
    check(mesh(), &block("node1", "pending"), false);
    check(mesh(), &block("node2", "confirmed"), false);
}

#[test]
fn other_nodes_are_a_matter_of_their_addresses_in_a_mesh() {
    check(mesh(), &node("node3", "192.0.2.3/24"), true);
    check(mesh(), &node("node2", "192.0.2.4/24"), true);
    let relabelled = labelled(node("node2", "192.0.2.2/24"), json!({"a": "b"}));
    check(mesh(), &relabelled, false);
    let mut status = node("node2", "192.0.2.2/24");
    status["status"] = json!({"podCIDRs": ["10.0.2.0/24"]});
    check(mesh(), &status, false);
    let without_address = object("Node", "node3", json!({}));
    check(mesh(), &without_address, false);
}

#[test]
fn to_clients_of_reflectors_other_clients_are_nothing() {
    check(reflectors(), &node("node3", "192.0.2.3/24"), false);
    check(reflectors(), &node("node2", "192.0.2.4/24"), false);
    let reflector = |address: &str| labelled(node("rr", address), json!({"role": "rr"}));
    check(reflectors(), &reflector("192.0.2.10/24"), true);
    let labels = json!({"role": "rr", "zone": "a"});
    check(
        reflectors(),
        &labelled(node("rr", "192.0.2.9/24"), labels),
        false,
    );
    let labels = json!({"role": "none"});
    check(
        reflectors(),
        &labelled(node("rr", "192.0.2.9/24"), labels),
        true,
    );
    let new = labelled(node("rr2", "192.0.2.11/24"), json!({"role": "rr"}));
    check(reflectors(), &new, true);
}

#[test]
fn peers_are_a_matter_of_their_nodes() {
    let to = |spec: Value| peer("tor", spec);
    let address = json!({"peerIP": "192.0.2.254", "asNumber": 65000});
    check(mesh(), &to(address), true);
    let of_other = json!({"node": "node2", "peerIP": "192.0.2.254", "asNumber": 65000});
    check(mesh(), &to(of_other), false);
    let to_this = json!({"node": "node2", "peerIP": "192.0.2.1", "asNumber": 64512});
    check(mesh(), &to(to_this), true);
    let unreadable = json!({"nodeSelector": "has(", "peerIP": "192.0.2.254", "asNumber": 65000});
    check(mesh(), &to(unreadable), true);
}

#[test]
fn settings_of_other_nodes_are_their_ports() {
    let of = |node: &str, spec: Value| object("BGPConfiguration", &format!("node.{node}"), spec);
    check(
        mesh(),
        &of("node1", json!({"logSeverityScreen": "Debug"})),
        true,
    );
    check(
        mesh(),
        &of("node2", json!({"logSeverityScreen": "Debug"})),
        false,
    );
    check(mesh(), &of("node2", json!({"listenPort": 1790})), true);
    check(
        reflectors(),
        &of("node2", json!({"listenPort": 1790})),
        false,
    );
    check(mesh(), &configuration(json!({"asNumber": 65000})), true);
}

#[test]
fn this_node_is_a_matter_of_what_is_asked_of_it() {
    let relabelled = |labels: Value| labelled(node("node1", "192.0.2.1/24"), labels);
    check(mesh(), &relabelled(json!({"zone": "a"})), false);
    let exclude = "node.kubernetes.io/exclude-from-external-load-balancers";
    check(mesh(), &relabelled(json!({ exclude: "true" })), true);
    check(reflectors(), &relabelled(json!({"role": "x"})), true);
    check(reflectors(), &relabelled(json!({"zone": "a"})), false);
}

#[test]
fn pools_are_a_matter_of_networks_and_encapsulation() {
    let pool = |spec: Value| object("IPPool", "p", spec);
    check(
        mesh(),
        &pool(json!({"cidr": "10.0.0.0/16", "natOutgoing": true})),
        false,
    );
    check(
        mesh(),
        &pool(json!({"cidr": "10.0.0.0/16", "disableBGPExport": true})),
        true,
    );
    check(
        mesh(),
        &pool(json!({"cidr": "10.0.0.0/16", "ipipMode": "Always"})),
        true,
    );
    let felix = |spec: Value| object("FelixConfiguration", "default", spec);
    check(mesh(), &felix(json!({"logSeverityScreen": "Debug"})), false);
    check(
        mesh(),
        &felix(json!({"programClusterRoutes": "Enabled"})),
        true,
    );
}

#[test]
fn what_goes_is_a_matter_of_those_who_had_to_do_with_it() {
    let mut mesh = mesh();
    assert!(!mesh.update(Update::Removed(Kind::BlockAffinity, "node2".to_owned())));
    assert!(mesh.update(Update::Removed(Kind::BlockAffinity, "node1".to_owned())));
    assert!(mesh.update(Update::Removed(Kind::Node, "node2".to_owned())));
    assert!(!mesh.update(Update::Removed(Kind::Node, "node2".to_owned())));
    let mut reflectors = reflectors();
    assert!(!reflectors.update(Update::Removed(Kind::Node, "node2".to_owned())));
    assert!(reflectors.update(Update::Removed(Kind::BgpPeer, "to-rr".to_owned())));
    assert!(!reflectors.update(Update::Removed(Kind::Node, "rr".to_owned())));
}

#[test]
fn the_plan_does_not_depend_on_the_way_there() {
    let mut there = reflectors();
    let back = mesh();
    for (kind, name) in [
        (Kind::BgpPeer, "to-rr"),
        (Kind::Node, "rr"),
        (Kind::BgpConfiguration, "default"),
    ] {
        there.update(Update::Removed(kind, name.to_owned()));
    }
    assert_eq!(Plan::new(&there), Plan::new(&back));
}

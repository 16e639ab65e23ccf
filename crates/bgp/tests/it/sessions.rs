//! Who speaks with whom, and how.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tortie_bgp::inputs::{SecretRef, SecretText, WorkloadPeer};
use tortie_bgp::plan::{NextHop, Peer};
use tortie_bgp::{Family, Identity, Inputs, Plan, Update, render};

use crate::world::{
    configuration, identity, inputs, labelled, node, object, peer, plan, resource, sessions,
};

/// A session in a few words, with what it has of its own.
fn words(peer: &Peer) -> String {
    let mut words = format!("{} as {}", peer.name, peer.as_number);
    let mut add = |word: &str| write!(words, " {word}").unwrap();
    if peer.is_passive {
        add("passive");
    }
    if let Some(cluster) = peer.reflects {
        add(&format!("client-of-{cluster}"));
    }
    match peer.next_hop {
        NextHop::Auto => {}
        NextHop::Own => add("self"),
        NextHop::Keep => add("keep"),
    }
    words
}

fn all(plan: &Plan) -> Vec<String> {
    let peers = Family::BOTH
        .into_iter()
        .flat_map(|family| &plan.family(family).peers);
    peers.map(words).collect()
}

#[track_caller]
fn check(resources: &[Value], expected: &[&str]) {
    let plan = plan(resources);
    assert_eq!(all(&plan), expected);
}

fn no_mesh() -> Value {
    configuration(json!({"nodeToNodeMeshEnabled": false}))
}

#[test]
fn a_node_of_all_may_be_the_one_that_is_named() {
    let to_this = peer(
        "p",
        json!({"node": "node2", "peerIP": "192.0.2.1", "asNumber": 64512}),
    );
    check(&[no_mesh(), to_this.clone()], &["Node_192_0_2_2 as 64512"]);
    let mut manual = to_this.clone();
    manual["spec"]["reversePeering"] = "Manual".into();
    check(&[no_mesh(), manual], &[]);
    let mut other_as = to_this.clone();
    other_as["spec"]["asNumber"] = 65000.into();
    check(&[no_mesh(), other_as], &[]);
    let mut other_port = to_this;
    other_port["spec"]["peerIP"] = "192.0.2.1:1790".into();
    check(
        &[no_mesh(), other_port.clone()],
        &["Node_192_0_2_2 as 64512"],
    );
    let port = object(
        "BGPConfiguration",
        "node.node1",
        json!({"listenPort": 1791}),
    );
    check(&[no_mesh(), other_port, port], &[]);
}

#[test]
fn of_two_nodes_one_opens_a_session_that_all_have() {
    let to = |address: &str| peer("p", json!({"peerIP": address, "asNumber": 64512}));
    check(
        &[no_mesh(), to("192.0.2.2")],
        &["Global_192_0_2_2 as 64512 passive"],
    );
    check(
        &[no_mesh(), to("192.0.2.254")],
        &["Global_192_0_2_254 as 64512"],
    );
    // All others ask this one.
    check(&[no_mesh(), to("192.0.2.1")], &["Node_192_0_2_2 as 64512"]);
}

#[test]
fn a_neighbour_of_all_is_no_neighbour_of_one_besides() {
    let spec = json!({"peerIP": "192.0.2.254", "asNumber": 65000});
    let mut own = spec.clone();
    own["node"] = "node1".into();
    let plan = plan(&[no_mesh(), peer("b", spec), peer("a", own)]);
    assert_eq!(all(&plan), ["Global_192_0_2_254 as 65000"]);
    assert_eq!(plan.problems, []);
}

#[test]
fn sessions_that_differ_are_said() {
    let spec = |address: &str, hops: u8| json!({"peerIP": address, "asNumber": 65000, "ttlSecurity": hops});
    let plan = plan(&[
        no_mesh(),
        peer("a", spec("192.0.2.254", 1)),
        peer("b", spec("192.0.2.254", 2)),
    ]);
    assert_eq!(
        plan.problems[0].to_string(),
        "BGPPeer(b): spec: BGPPeer(a) has a session with 192.0.2.254 too, with other options, which count"
    );
}

#[test]
fn reflectors_have_clients_and_no_mesh() {
    let reflector = |name: &str, address: &str, cluster: &str| {
        let spec = json!({"bgp": {"ipv4Address": address, "routeReflectorClusterID": cluster}});
        labelled(object("Node", name, spec), json!({"rr": ""}))
    };
    let peering = peer(
        "p",
        json!({"nodeSelector": "all()", "peerSelector": "has(rr)"}),
    );
    let resources = [
        reflector("node1", "192.0.2.1/24", "10.0.0.1"),
        reflector("rr2", "192.0.2.3/24", "10.0.0.1"),
        reflector("rr3", "192.0.2.4/24", "10.0.0.2"),
        peering,
    ];
    check(
        &resources,
        &[
            "Node_192_0_2_2 as 64512 client-of-10.0.0.1",
            "Node_192_0_2_3 as 64512",
            "Node_192_0_2_4 as 64512 client-of-10.0.0.1",
        ],
    );
}

#[test]
fn next_hops_are_kept_towards_other_numbers_only() {
    let to = |number: u32, mode: &str| {
        let mut spec = json!({"peerIP": "192.0.2.254", "asNumber": number});
        match mode {
            "" => spec["keepOriginalNextHop"] = true.into(),
            mode => spec["nextHopMode"] = mode.into(),
        }
        peer("p", spec)
    };
    check(
        &[no_mesh(), to(65000, "")],
        &["Global_192_0_2_254 as 65000 keep"],
    );
    check(
        &[no_mesh(), to(64512, "")],
        &["Global_192_0_2_254 as 64512"],
    );
    check(
        &[no_mesh(), to(64512, "Keep")],
        &["Global_192_0_2_254 as 64512 keep"],
    );
    check(
        &[no_mesh(), to(64512, "Self")],
        &["Global_192_0_2_254 as 64512 self"],
    );
}

#[test]
fn a_mesh_and_a_peer_with_one_neighbour_are_said() {
    let plan = plan(&[peer(
        "p",
        json!({"nodeSelector": "all()", "peerSelector": "all()"}),
    )]);
    assert_eq!(sessions(&plan), ["Mesh_192_0_2_2", "Node_192_0_2_2"]);
    assert_eq!(
        plan.problems[0].to_string(),
        "BGPConfiguration(default): spec.nodeToNodeMeshEnabled: the mesh has sessions with 1 neighbours that BGPPeers name \
         too, such as 192.0.2.2 by BGPPeer(p); only one of both comes up: set it to false, or take the BGPPeers away"
    );
}

/// A node with its sessions, and these updates.
fn told(resources: &[Value], updates: Vec<Update>) -> Inputs {
    let mut inputs = inputs(identity(), [node("node1", "192.0.2.1/24"), no_mesh()]);
    for value in resources {
        inputs.update(Update::Resource(resource(value)));
    }
    for update in updates {
        assert!(inputs.update(update));
    }
    inputs
}

#[test]
fn workloads_open_sessions_with_the_address_that_they_are_shown() {
    let mut shown = no_mesh();
    shown["spec"]["localWorkloadPeeringIPV4"] = "169.254.7.1".into();
    let selects = peer(
        "pods",
        json!({"localWorkloadSelector": "all()", "asNumber": 65001}),
    );
    let workload = |peer: &str| {
        let workload = WorkloadPeer {
            bgp_peer: peer.to_owned(),
            ipv4: Some("10.0.1.5".parse().unwrap()),
            ipv6: Some("fd00::5".parse().unwrap()),
        };
        Update::WorkloadPeer(format!("pod of {peer}"), Some(workload))
    };
    let inputs = told(
        &[shown, selects],
        vec![workload("pods"), workload("others")],
    );
    let plan = Plan::new(&inputs);
    assert_eq!(all(&plan), ["Local_Workload_10_0_1_5 as 65001 passive"]);
    assert_eq!(
        plan.families.v4.peers[0].source,
        Some("169.254.7.1".parse().unwrap())
    );
}

#[test]
fn passwords_are_in_the_text_alone() {
    let password = json!({"secretKeyRef": {"name": "s", "key": "k"}});
    let spec = json!({"peerIP": "192.0.2.254", "asNumber": 65000, "password": password});
    let secret = SecretRef {
        name: "s".to_owned(),
        key: "k".to_owned(),
    };
    let text = |text: &[u8]| Update::Secret(secret.clone(), Some(SecretText::new(text)));
    let mut inputs = told(&[peer("p", spec)], vec![text(b"open sesame")]);
    assert!(inputs.secrets().iter().eq([&secret]));
    let plan = Plan::new(&inputs);
    assert!(!format!("{plan:?} {inputs:?}").contains("sesame"));
    assert!(render::bird2(&plan).contains("  password \"open sesame\";\n"));
    let [(_, main), ..] = render::bird1(&plan)
        .files()
        .map(|(name, text)| (name, text.to_owned()));
    assert!(main.contains("  password \"open sesame\";\n"));

    let other = SecretRef {
        name: "other".to_owned(),
        ..secret.clone()
    };
    assert!(!inputs.update(Update::Secret(other, Some(SecretText::new(b"x")))));
    for wrong in [&b"a\"; }"[..], b"", b"\xff"] {
        inputs.update(text(wrong));
        let plan = Plan::new(&inputs);
        assert_eq!(sessions(&plan), [""; 0]);
        let problem = plan.problems[0].to_string();
        assert!(
            problem.contains("what the secret `s` has under `k` is no password"),
            "{problem}"
        );
    }
}

#[test]
fn router_ids_are_asked_for_or_made() {
    let of = |router_id: Option<&str>, address: Value| {
        let identity = Identity {
            router_id: router_id.map(str::to_owned),
            ..identity()
        };
        Plan::new(&inputs(
            identity,
            [object("Node", "node1", json!({ "bgp": address }))],
        ))
    };
    let v4 = || json!({"ipv4Address": "192.0.2.1/24"});
    let v6 = || json!({"ipv6Address": "2001:db8::1/64"});
    let id = |plan: &Plan| plan.router_id.to_string();
    assert_eq!(id(&of(None, v4())), "192.0.2.1");
    assert_eq!(id(&of(Some(""), v4())), "192.0.2.1");
    assert_eq!(id(&of(Some("10.9.8.7"), v4())), "10.9.8.7");
    assert_eq!(id(&of(Some("hash"), v4())), "202.18.243.27");
    assert_eq!(id(&of(None, v6())), "202.18.243.27");
    let wrong = of(Some("1; }"), v4());
    assert_eq!(id(&wrong), "192.0.2.1");
    assert_eq!(
        wrong.problems[0].to_string(),
        "Environment(CALICO_ROUTER_ID): value: `1; }` is neither an IPv4 address nor `hash`; 192.0.2.1 is used"
    );
}

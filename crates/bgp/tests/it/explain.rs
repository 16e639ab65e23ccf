//! Why a prefix is told, learnt and programmed, or not: each reason once.

mod services;
mod sessions;

use serde_json::{Value, json};
use tortie_bgp::explain::{Answer, Question, explain};
use tortie_bgp::{Cluster, Update};

use crate::world::{configuration, node, object, peer, stored};

/// Nothing is said about a machine of its own.
fn cluster(resources: &[Value]) -> Cluster {
    let mut cluster = Cluster::new(tortie_bgp::Identity::default());
    for value in resources {
        cluster.put(update(value));
    }
    cluster
}

fn update(value: &Value) -> Update {
    match value["kind"].as_str() {
        Some("Service") => Update::Service(serde_json::from_value(value.clone()).unwrap()),
        Some("EndpointSlice") => {
            Update::EndpointSlice(serde_json::from_value(value.clone()).unwrap())
        }
        _ => Update::Resource(stored(value)),
    }
}

pub(crate) fn block(node: &str, cidr: &str, state: &str) -> Value {
    let name = format!("{node}-{}", cidr.replace(['.', '/', ':'], "-"));
    object(
        "BlockAffinity",
        &name,
        json!({"node": node, "cidr": cidr, "state": state, "deleted": false}),
    )
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "specs are written where they are used"
)]
pub(crate) fn pool(spec: Value) -> Value {
    let mut all = json!({"cidr": "10.65.0.0/16", "ipipMode": "Never", "vxlanMode": "Never"});
    for (field, value) in spec.as_object().unwrap() {
        all[field] = value.clone();
    }
    object("IPPool", "pods", all)
}

/// Three nodes of a mesh, and a block of the first one.
fn mesh() -> Vec<Value> {
    vec![
        node("node1", "192.0.2.1/24"),
        node("node2", "192.0.2.2/24"),
        node("node3", "192.0.2.3/24"),
        pool(json!({})),
        block("node1", "10.65.1.0/26", "confirmed"),
    ]
}

fn with(more: &[Value]) -> Vec<Value> {
    let mut all = mesh();
    for value in more {
        let is_same = |old: &Value| {
            old["kind"] == value["kind"] && old["metadata"]["name"] == value["metadata"]["name"]
        };
        all.retain(|old| !is_same(old));
        all.push(value.clone());
    }
    all
}

fn ask(resources: &[Value], prefix: &str, node: Option<&str>, peer: Option<&str>) -> Answer {
    let question = Question {
        target: prefix.parse().unwrap(),
        node: node.map(str::to_owned),
        peer: peer.map(str::to_owned),
    };
    explain(&mut cluster(resources), &question).unwrap()
}

const BLOCK: &str = "10.65.1.0/26";

/// The prefix is not told, learnt or programmed for the reason, which names this field of this object.
#[track_caller]
fn refused(
    resources: &[Value],
    (node, peer): (Option<&str>, Option<&str>),
    origin: &str,
) -> Answer {
    let answer = ask(resources, BLOCK, node, peer);
    assert!(!answer.is_well, "{answer:#?}");
    let text = serde_json::to_string(&answer).unwrap();
    let (object, field) = origin.split_once(": ").unwrap();
    let (kind, name) = object.trim_end_matches(')').split_once('(').unwrap();
    let expected = json!({"kind": kind, "name": name, "field": field}).to_string();
    let parts = ["kind", "name", "field"].map(|key| {
        let value: Value = serde_json::from_str(&expected).unwrap();
        format!("\"{key}\":{}", value[key])
    });
    assert!(
        text.contains(&format!("{{{}}}", parts.join(","))),
        "no {origin}: {answer:#?}"
    );
    answer
}

#[test]
fn a_block_is_told_to_all_learnt_and_programmed() {
    let answer = ask(&mesh(), BLOCK, None, None);
    assert!(answer.is_well, "{answer:#?}");
    assert_eq!(
        answer.verdict,
        "10.65.1.0/26 is advertised by node1 to 2 peers"
    );
    let answer = ask(&mesh(), BLOCK, Some("node2"), None);
    assert!(answer.is_well, "{answer:#?}");
    assert_eq!(
        answer.verdict,
        "10.65.1.0/26 is learnt by node2 and programmed by BIRD"
    );
    assert_eq!(
        answer.nodes[1].learnt[0].session.as_deref(),
        Some("Mesh_192_0_2_1")
    );
}

#[test]
fn an_address_is_its_longest_prefix() {
    let answer = ask(&mesh(), "10.65.1.9", None, None);
    assert_eq!(answer.prefix.to_string(), BLOCK);
    assert!(
        answer.notes[0].contains("10.65.1.9 is in 10.65.1.0/26"),
        "{answer:#?}"
    );
    let answer = ask(&mesh(), "203.0.113.1", None, None);
    assert_eq!(answer.prefix.to_string(), "203.0.113.1/32");
    assert!(!answer.is_well);
}

#[test]
fn single_addresses_are_told_with_their_block() {
    let answer = ask(&mesh(), "10.65.1.9/32", None, None);
    assert!(!answer.is_well);
    let reason = &answer.nodes[0].told[0].reason;
    assert!(
        reason.text.contains("part of the block 10.65.1.0/26"),
        "{reason}"
    );
}

#[test]
fn what_is_wrong_with_the_block_or_its_pool() {
    let pending = with(&[block("node1", BLOCK, "pending")]);
    let claim = "BlockAffinity(node1-10-65-1-0-26): spec.state";
    let answer = refused(&pending, (None, None), claim);
    assert!(
        answer.verdict.contains("has announced its claim"),
        "{}",
        answer.verdict
    );
    refused(&pending, (Some("node2"), None), claim);
    let mut deleted = block("node1", BLOCK, "confirmed");
    deleted["spec"]["deleted"] = json!(true);
    refused(
        &with(&[deleted]),
        (None, None),
        "BlockAffinity(node1-10-65-1-0-26): spec.deleted",
    );
    let gone = with(&[block("node9", BLOCK, "confirmed")]);
    let gone: Vec<Value> = gone
        .into_iter()
        .filter(|o| o["metadata"]["name"] != "node1-10-65-1-0-26")
        .collect();
    refused(
        &gone,
        (Some("node2"), None),
        "BlockAffinity(node9-10-65-1-0-26): spec.node",
    );
    let private = with(&[pool(json!({"disableBGPExport": true}))]);
    refused(
        &private,
        (None, None),
        "IPPool(pods): spec.disableBGPExport",
    );
    refused(
        &private,
        (Some("node2"), None),
        "IPPool(pods): spec.disableBGPExport",
    );
    // A node that has it says so of any peer.
    let disabled = ask(&with(&[pool(json!({"disabled": true}))]), BLOCK, None, None);
    assert!(
        disabled.is_well && disabled.notes[0].contains("is disabled"),
        "{disabled:#?}"
    );
    let unclaimed = ask(&mesh(), "10.65.7.0/26", Some("node2"), None);
    assert!(
        unclaimed.verdict.contains("no node has claimed"),
        "{}",
        unclaimed.verdict
    );
    let wide = ask(&mesh(), "10.65.0.0/16", None, None);
    assert!(
        wide.notes
            .iter()
            .any(|note| note.contains("1 of them are in 10.65.0.0/16")),
        "{wide:#?}"
    );
}

fn filter(name: &str, spec: Value) -> Value {
    object("BGPFilter", name, spec)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "specs are written where they are used"
)]
fn router(more: Value) -> Value {
    let mut spec = json!({"peerIP": "192.0.2.254", "asNumber": 65000});
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    peer("router", spec)
}

#[test]
fn rules_of_filters() {
    let reject = json!({"action": "Reject", "cidr": "10.65.0.0/16", "matchOperator": "In"});
    let other = json!({"action": "Accept", "cidr": "10.66.0.0/16", "matchOperator": "In"});
    let named = filter("none", json!({"exportV4": [other, reject]}));
    let world = with(&[router(json!({"filters": ["none"]})), named]);
    let answer = refused(
        &world,
        (None, Some("router")),
        "BGPFilter(none): spec.exportV4[1]",
    );
    assert!(
        answer.verdict.contains("rejects 10.65.1.0/26"),
        "{}",
        answer.verdict
    );
    // The others are told.
    let answer = ask(&world, BLOCK, None, None);
    assert!(!answer.is_well);
    assert_eq!(
        answer.verdict,
        "10.65.1.0/26 is advertised by node1 to 2 of 3 peers"
    );

    let import = filter("none", json!({"importV4": [{"action": "Reject"}]}));
    let by_label = peer(
        "both",
        json!({
            "nodeSelector": "all()", "peerSelector": "all()", "filters": ["none"],
        }),
    );
    let off = configuration(json!({"nodeToNodeMeshEnabled": false}));
    refused(
        &with(&[by_label, import, off]),
        (Some("node2"), None),
        "BGPFilter(none): spec.importV4[0]",
    );

    let by_interface = json!({"importV4": [{"action": "Reject", "interface": "eth9"}]});
    let world = with(&[
        router(json!({"filters": ["none"]})),
        filter("none", by_interface),
    ]);
    let answer = ask(&world, BLOCK, Some("node2"), None);
    let expected = "BGPFilter(none): spec.importV4[0] asks for an interface";
    assert!(answer.notes[0].starts_with(expected), "{answer:#?}");

    let added = filter(
        "mark",
        json!({"exportV4": [{
            "action": "Accept", "operations": [{"addCommunity": {"value": "65000:7"}}, {"setPriority": {"value": 7}}],
        }]}),
    );
    let answer = ask(
        &with(&[router(json!({"filters": ["mark"]})), added]),
        BLOCK,
        None,
        Some("192.0.2.254"),
    );
    let told = &answer.nodes[0].told[0];
    assert!(
        told.is_told && told.communities == ["65000:7"] && told.metric == Some(7),
        "{told:#?}"
    );
}

#[test]
fn networks_that_nobody_asked_to_tell() {
    let answer = ask(
        &with(&[router(json!({}))]),
        "192.0.2.0/24",
        Some("node1"),
        None,
    );
    assert!(!answer.is_well, "{answer:#?}");
    assert_eq!(answer.nodes[0].has.len(), 1, "{answer:#?}");
    let reason = &answer.nodes[0].told[0].reason.text;
    assert!(
        reason.contains("no IPPool and no range of services"),
        "{reason}"
    );
    let programmed = answer.nodes[0].programmed.as_ref().unwrap();
    assert_eq!(programmed.by, Some("the kernel itself"));
    let answer = ask(&mesh(), "203.0.113.0/24", Some("node1"), None);
    assert!(!answer.is_well);
    assert!(
        answer
            .verdict
            .contains("no IPPool and no range of services"),
        "{}",
        answer.verdict
    );
}

#[test]
fn who_programs_it() {
    let by = |pool: Value, more: &[Value]| {
        let all = [&[pool][..], more].concat();
        let answer = ask(&with(&all), BLOCK, Some("node2"), None);
        let programmed = answer.nodes[1].programmed.clone().unwrap();
        (programmed.by, programmed.is_programmed)
    };
    assert_eq!(by(pool(json!({})), &[]), (Some("BIRD"), Some(true)));
    assert_eq!(
        by(pool(json!({"vxlanMode": "Always"})), &[]),
        (Some("the agent"), Some(true))
    );
    assert_eq!(
        by(pool(json!({"ipipMode": "Always"})), &[]),
        (Some("the agent"), Some(true))
    );
    let off = configuration(json!({"programClusterRoutes": "Disabled"}));
    assert_eq!(
        by(pool(json!({})), std::slice::from_ref(&off)),
        (None, Some(false))
    );
    let felix = object(
        "FelixConfiguration",
        "default",
        json!({"programClusterRoutes": "Enabled"}),
    );
    assert_eq!(
        by(pool(json!({})), &[off, felix]),
        (Some("the agent"), Some(true))
    );
    let wireguard = |name: &str, address: &str| {
        object(
            "Node",
            name,
            json!({
                "bgp": {"ipv4Address": address}, "wireguard": {"interfaceIPv4Address": "10.9.9.9"},
            }),
        )
    };
    let encrypted = [
        wireguard("node1", "192.0.2.1/24"),
        wireguard("node2", "192.0.2.2/24"),
    ];
    assert_eq!(
        by(pool(json!({})), &encrypted),
        (Some("the agent"), Some(true))
    );
}

#[test]
fn questions_that_nothing_answers() {
    let question = |node: Option<&str>, peer: Option<&str>| Question {
        target: BLOCK.parse().unwrap(),
        node: node.map(str::to_owned),
        peer: peer.map(str::to_owned),
    };
    let asked = |question| explain(&mut cluster(&mesh()), &question).unwrap_err();
    let message = asked(question(Some("node9"), None));
    assert_eq!(
        message,
        "there is no Node(node9); there is node1, node2, node3"
    );
    let message = asked(question(None, Some("nobody")));
    assert!(message.starts_with("nothing is called nobody"), "{message}");
    assert!(
        "10.65.1.0/33"
            .parse::<tortie_bgp::explain::Target>()
            .is_err()
    );
}

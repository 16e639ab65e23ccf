use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use serde_json::{Value, json};
use tortie_api::meta::{Metadata, OwnerReference};
use tortie_api::{Kind, Resource, Tier};
use tortie_store::Key;

use super::phase::{conflict_conditions, is_own, is_same, remap_owners, rollout, tier_drift};

fn tier(name: &str, order: Option<f64>, action: Option<&str>) -> Tier {
    let mut tier = json!({ "metadata": { "name": name }, "spec": {} });
    if let Some(order) = order {
        tier["spec"]["order"] = json!(order);
    }
    if let Some(action) = action {
        tier["spec"]["defaultAction"] = json!(action);
    }
    serde_json::from_value(tier).expect("a tier")
}

#[test]
fn tiers_that_always_exist_must_be_as_the_newer_group_wants_them() {
    let good = [
        tier("default", Some(1_000_000.0), None),
        tier("kube-admin", Some(1000.0), Some("Pass")),
        tier("mine", Some(7.0), None),
    ];
    assert_eq!(tier_drift(&good), Vec::<String>::new());
    let bad = [
        tier("kube-baseline", None, None),
        tier("default", Some(5.0), Some("Pass")),
    ];
    let expected = [
        "tier \"default\" must have defaultAction \"Deny\"",
        "tier \"default\" must have order 1000000",
        "tier \"kube-baseline\" must have defaultAction \"Pass\"",
        "tier \"kube-baseline\" must have order 10000000",
    ];
    assert_eq!(tier_drift(&bad), expected);
}

#[test]
fn at_most_so_many_conflicts_are_told_one_by_one() {
    let conflicts = |number: usize| -> Vec<Key> {
        (0..number)
            .map(|at| Key::namespaced(Kind::NetworkPolicy, "ns", format!("p{at}")))
            .collect()
    };
    let told = conflict_conditions(&conflicts(32), Timestamp::UNIX_EPOCH);
    assert_eq!(told.len(), 32);
    let message = "NetworkPolicy/ns/p0: v3 resource exists with different spec";
    assert_eq!(told[0].message, message);
    let told = conflict_conditions(&conflicts(33), Timestamp::UNIX_EPOCH);
    assert_eq!(told[32].message, "1 more conflict not shown");
    let told = conflict_conditions(&conflicts(40), Timestamp::UNIX_EPOCH);
    assert_eq!(
        (told.len(), told[32].message.as_str()),
        (33, "8 more conflicts not shown")
    );
    assert!(conflict_conditions(&[], Timestamp::UNIX_EPOCH).is_empty());
}

#[test]
fn components_must_use_the_newer_group_and_be_rolled_out() {
    let node = |has_variable: bool, status: Value| -> DaemonSet {
        let value = if has_variable {
            "projectcalico.org/v3"
        } else {
            ""
        };
        let container =
            json!({ "name": "c", "env": [{ "name": "CALICO_API_GROUP", "value": value }] });
        serde_json::from_value(json!({
            "metadata": { "generation": 3 },
            "spec": { "selector": {}, "template": { "spec": { "containers": [container] } } },
            "status": status,
        }))
        .expect("a daemon set")
    };
    let status = |generation: u8, updated: u8, unavailable: u8| {
        json!({ "observedGeneration": generation, "updatedNumberScheduled": updated,
            "desiredNumberScheduled": 5, "numberUnavailable": unavailable,
            "currentNumberScheduled": 5, "numberMisscheduled": 0, "numberReady": 5 })
    };
    let check = |node: DaemonSet, fan_out: Option<&Deployment>, expected: &str| {
        let found = rollout(&node, fan_out, false).err().unwrap_or_default();
        assert_eq!(found, expected);
    };
    check(node(true, status(3, 5, 0)), None, "");
    check(
        node(true, status(2, 5, 0)),
        None,
        "Waiting for calico-node rollout to begin",
    );
    check(
        node(true, status(3, 4, 0)),
        None,
        "Waiting for calico-node rollout (4/5 updated)",
    );
    check(
        node(true, status(3, 5, 1)),
        None,
        "Waiting for calico-node pods to be available (1 unavailable)",
    );
    let asks = "Waiting for user to set CALICO_API_GROUP=projectcalico.org/v3 on calico-node";
    check(node(false, status(3, 5, 0)), None, asks);
    let fan_out = json!({ "spec": { "selector": {}, "template": { "spec": { "containers": [{ "name": "c" }] } } } });
    let fan_out: Deployment = serde_json::from_value(fan_out).expect("a deployment");
    check(
        node(false, status(3, 5, 0)),
        Some(&fan_out),
        &format!("{asks} and calico-typha"),
    );
    let operator = rollout(&node(false, status(3, 5, 0)), None, true).expect_err("it waits");
    assert_eq!(
        operator,
        "Waiting for operator to configure calico-node with v3 API group"
    );
}

#[test]
fn owners_are_followed_into_the_newer_group() {
    let owner = |version: &str, uid: &str| OwnerReference {
        api_version: version.to_owned(),
        uid: uid.to_owned(),
        ..OwnerReference::default()
    };
    let mut metadata = Metadata {
        owner_references: vec![
            owner("projectcalico.org/v3", "old"),
            owner("apps/v1", "old"),
        ],
        ..Metadata::default()
    };
    let uids = BTreeMap::from([("old".to_owned(), "new".to_owned())]);
    assert!(remap_owners(&mut metadata, &uids));
    let found: Vec<&str> = metadata
        .owner_references
        .iter()
        .map(|owner| owner.uid.as_str())
        .collect();
    assert_eq!(found, ["new", "old"]);
    assert!(!remap_owners(&mut metadata, &uids));
}

#[test]
fn only_what_is_asked_for_counts_in_a_comparison() {
    let set = |label: &str, net: &str| -> Resource {
        let set = json!({ "metadata": { "name": "s", "labels": { "a": label }, "uid": label },
            "spec": { "nets": [net] } });
        Resource::decode_stored(Kind::GlobalNetworkSet, &set).expect("a set")
    };
    assert!(is_same(&set("x", "10.0.0.0/8"), &set("y", "10.0.0.0/8")));
    assert!(!is_same(&set("x", "10.0.0.0/8"), &set("x", "10.0.0.0/9")));
    assert!(!is_own(&Key::namespaced(
        Kind::NetworkPolicy,
        "ns",
        "knp.default.a"
    )));
    assert!(is_own(&Key::namespaced(Kind::NetworkPolicy, "ns", "a")));
}

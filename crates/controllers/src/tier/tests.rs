use jiff::Timestamp;
use serde_json::json;
use tortie_api::Tier;
use tortie_store::{Key, Kind, Resource};

use super::controller::set_terminating;
use super::policies::Policies;

fn policy(kind: &str, name: &str, tier: &str) -> Resource {
    let namespace = if kind.contains("Global") { "" } else { "ns" };
    let policy = json!({
        "apiVersion": "projectcalico.org/v3", "kind": kind,
        "metadata": { "name": name, "namespace": namespace }, "spec": { "tier": tier },
    });
    let kind = Kind::ALL.iter().find(|known| known.as_str() == kind);
    Resource::decode_stored(*kind.expect("a kind"), &policy).expect("a policy")
}

#[test]
fn policies_are_counted_by_kind_and_tier() {
    let mut policies = Policies::default();
    assert_eq!(policies.left_in("t"), None);
    let one = policy("NetworkPolicy", "t.a", "t");
    policies.set(&one);
    policies.set(&one);
    policies.set(&policy("GlobalNetworkPolicy", "t.a", "t"));
    policies.set(&policy("GlobalNetworkPolicy", "t.b", "t"));
    policies.set(&policy("StagedNetworkPolicy", "t.b", "t"));
    policies.set(&policy("StagedGlobalNetworkPolicy", "u.b", "u"));
    policies.set(&policy("NetworkPolicy", "knp.default.x", "t"));
    let left = "2 GlobalNetworkPolicies, 1 NetworkPolicy, 1 StagedNetworkPolicy";
    assert_eq!(policies.left_in("t").as_deref(), Some(left));
    assert_eq!(
        policies.left_in("u").as_deref(),
        Some("1 StagedGlobalNetworkPolicy")
    );

    assert_eq!(policies.remove(&Key::of(&one)).as_deref(), Some("t"));
    assert_eq!(policies.remove(&Key::of(&one)), None);
    let moved = policies.set(&policy("GlobalNetworkPolicy", "t.a", "u"));
    assert_eq!(moved.as_deref(), Some("t"));
    let left = "1 GlobalNetworkPolicy, 1 StagedNetworkPolicy";
    assert_eq!(policies.left_in("t").as_deref(), Some(left));
    policies.set(&policy("NetworkPolicy", "old", ""));
    assert_eq!(
        policies.left_in("default").as_deref(),
        Some("1 NetworkPolicy")
    );
}

#[test]
fn the_condition_is_written_once_for_each_count() {
    let mut tier = Tier::default();
    assert!(set_terminating(
        &mut tier,
        "2".to_owned(),
        Timestamp::UNIX_EPOCH
    ));
    assert!(!set_terminating(
        &mut tier,
        "2".to_owned(),
        Timestamp::now()
    ));
    assert!(set_terminating(
        &mut tier,
        "1".to_owned(),
        Timestamp::UNIX_EPOCH
    ));
    assert_eq!(tier.status.conditions.len(), 1);
}

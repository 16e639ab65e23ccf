use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use tortie_api::IpPool;

use super::desired::{FINALIZER, Finalizer, Verdict, finalizer, verdicts};

/// A pool that was made at this second, with what was said of it and whether it is being deleted.
fn pool(
    name: &str,
    cidr: &str,
    second: u8,
    allocatable: Option<bool>,
    is_deleting: bool,
) -> IpPool {
    let mut pool = json!({
        "metadata": { "name": name, "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z") },
        "spec": { "cidr": cidr },
    });
    if let Some(allocatable) = allocatable {
        let status = if allocatable { "True" } else { "False" };
        pool["status"] = json!({ "conditions": [{ "type": "Allocatable", "status": status }] });
    }
    if is_deleting {
        pool["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    }
    serde_json::from_value(pool).expect("a pool")
}

#[track_caller]
fn check(pools: &[IpPool], expected: &[(&str, Verdict)]) {
    let expected: BTreeMap<String, Verdict> = expected
        .iter()
        .map(|(name, verdict)| ((*name).to_owned(), *verdict))
        .collect();
    assert_eq!(verdicts(pools), expected);
    let reversed: Vec<IpPool> = pools.iter().rev().cloned().collect();
    assert_eq!(verdicts(&reversed), expected, "whatever the order");
}

#[test]
fn the_oldest_of_overlapping_pools_wins() {
    use Verdict::{Allocatable, Overlapping};
    let pools = [
        pool("b", "10.0.0.0/16", 1, None, false),
        pool("a", "10.0.1.0/24", 2, None, false),
        pool("c", "10.1.0.0/16", 3, None, false),
        pool("d", "fd00::/64", 4, None, false),
    ];
    let expected = [
        ("b", Allocatable),
        ("a", Overlapping),
        ("c", Allocatable),
        ("d", Allocatable),
    ];
    check(&pools, &expected);
    let same_age = [
        pool("y", "10.0.0.0/16", 1, None, false),
        pool("x", "10.0.0.0/8", 1, None, false),
    ];
    check(&same_age, &[("x", Allocatable), ("y", Overlapping)]);
}

#[test]
fn a_pool_in_use_stays_so_whoever_is_older() {
    use Verdict::{Allocatable, Overlapping, Terminating};
    let used = pool("used", "10.0.0.0/16", 9, Some(true), false);
    let old = pool("old", "10.0.0.0/24", 1, Some(false), false);
    check(
        &[used, old.clone()],
        &[("used", Allocatable), ("old", Overlapping)],
    );
    // Until it is gone its addresses may be in use.
    let leaving = pool("used", "10.0.0.0/16", 9, Some(false), true);
    check(
        &[leaving, old.clone()],
        &[("used", Terminating), ("old", Overlapping)],
    );
    check(&[old], &[("old", Allocatable)]);
}

#[test]
fn a_disabled_pool_does_not_stand_in_the_way() {
    use Verdict::{Allocatable, Disabled};
    let mut disabled = pool("disabled", "10.0.0.0/16", 1, Some(true), false);
    disabled.spec.disabled = true;
    let other = pool("other", "10.0.0.0/24", 2, Some(false), false);
    check(
        &[disabled, other],
        &[("disabled", Disabled), ("other", Allocatable)],
    );
}

#[test]
fn a_condition_is_written_once() {
    let mut pool = pool("a", "10.0.0.0/16", 1, Some(true), false);
    assert!(
        Verdict::Allocatable.note(&mut pool, Timestamp::UNIX_EPOCH),
        "the reason was missing"
    );
    assert!(!Verdict::Allocatable.note(&mut pool, Timestamp::now()));
    assert!(Verdict::Overlapping.note(&mut pool, Timestamp::UNIX_EPOCH));
    assert_eq!(pool.status.conditions.len(), 1);
    assert_eq!(pool.status.conditions[0].reason, "CIDROverlap");
}

#[test]
fn finalizers_follow_the_verdict() {
    let check = |is_deleting, has: bool, verdict, expected| {
        let mut pool = pool("a", "10.0.0.0/16", 1, None, is_deleting);
        if has {
            pool.metadata.finalizers.push(FINALIZER.to_owned());
        }
        assert_eq!(
            finalizer(&pool, Some(verdict)),
            expected,
            "{is_deleting} {has} {verdict:?}"
        );
    };
    let drain = Finalizer::Drain("10.0.0.0/16".parse().expect("a network"));
    check(false, false, Verdict::Allocatable, Finalizer::Add);
    check(false, true, Verdict::Allocatable, Finalizer::Leave);
    check(false, true, Verdict::Overlapping, Finalizer::Remove);
    check(false, true, Verdict::Disabled, Finalizer::Remove);
    check(false, false, Verdict::Overlapping, Finalizer::Leave);
    check(true, true, Verdict::Terminating, drain);
    check(true, false, Verdict::Terminating, Finalizer::Leave);
}

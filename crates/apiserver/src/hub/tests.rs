//! How hubs tell what changed.

use serde_json::json;

use super::recent::MAX_CHANGES;
use super::*;
use crate::registry::Registry;

fn hub() -> Hub {
    let registry = Registry::standalone();
    let of = registry.find("projectcalico.org", "v3", "tiers").unwrap();
    let items = vec![Object::new(tier("default", 5))];
    Hub::new(of.clone(), items, 7)
}

fn tier(name: &str, revision: u64) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": revision.to_string()}})
}

fn put(hub: &Hub, name: &str, revision: u64) {
    let what = What::Put(tier(name, revision));
    hub.lock().take(Change { revision, what });
}

fn delete(hub: &Hub, name: &str, revision: u64) {
    let (namespace, name) = (String::new(), name.to_owned());
    let what = What::Delete { namespace, name };
    hub.lock().take(Change { revision, what });
}

#[tokio::test]
async fn events_say_what_was_before() {
    let hub = hub();
    let (objects, mut position) = hub.from_now(None);
    assert_eq!(objects.len(), 1);
    put(&hub, "gold", 8);
    put(&hub, "gold", 9);
    delete(&hub, "gold", 10);
    delete(&hub, "never seen", 11);
    let events = hub.next(&mut position, 100).await.unwrap();
    let shape: Vec<_> = events
        .iter()
        .map(|event| {
            (
                event.revision,
                event.before.is_some(),
                event.after.is_some(),
            )
        })
        .collect();
    assert_eq!(
        shape,
        [(8, false, true), (9, true, true), (10, true, false)]
    );
    assert_eq!(hub.reached(&position), 11);
}

/// Whoever listed may know more than the hub, which learns of it a moment later.
#[tokio::test]
async fn what_a_watcher_knows_is_not_told_again() {
    let hub = hub();
    let mut position = hub.from_revision(9, None).unwrap();
    assert_eq!(hub.reached(&position), 9);
    for revision in 8..=11 {
        put(&hub, "gold", revision);
    }
    let events = hub.next(&mut position, 1).await.unwrap();
    assert_eq!((events.len(), events[0].revision), (1, 10));
    let events = hub.next(&mut position, 100).await.unwrap();
    assert_eq!((events.len(), events[0].revision), (1, 11));
    assert_eq!(hub.reached(&position), 11);
}

#[tokio::test]
async fn a_watch_goes_on_where_it_was() {
    let hub = hub();
    for revision in 8..18 {
        put(&hub, "gold", revision);
    }
    let mut position = hub.from_revision(9, None).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 8 {
        let events = hub.next(&mut position, 3).await.unwrap();
        assert!(events.len() <= 3);
        seen.extend(events.iter().map(|event| event.revision));
    }
    assert_eq!(seen, (10..18).collect::<Vec<u64>>());
}

#[tokio::test]
async fn changes_of_one_transaction_are_all_told() {
    let hub = hub();
    let mut position = hub.from_revision(7, None).unwrap();
    let mut told = 0;
    for (name, revision) in [("a", 8), ("b", 9), ("c", 9), ("d", 9), ("e", 10)] {
        put(&hub, name, revision);
        told += hub.next(&mut position, 100).await.unwrap().len();
        assert_eq!(hub.reached(&position), revision);
    }
    assert_eq!(told, 5);
    let mut position = hub.from_revision(8, None).unwrap();
    let mut sizes = Vec::new();
    while sizes.iter().sum::<usize>() < 4 {
        sizes.push(hub.next(&mut position, 2).await.unwrap().len());
    }
    assert_eq!(sizes, [2, 2]);
}

#[tokio::test]
async fn who_does_not_keep_up_is_cut_off() {
    let hub = hub();
    let mut slow = hub.from_revision(7, None).unwrap();
    for revision in 8..(MAX_CHANGES as u64 + 10) {
        put(&hub, "gold", revision);
    }
    let failure = hub.next(&mut slow, 100).await.unwrap_err();
    assert_eq!(failure.reason, Reason::Expired);
    assert_eq!(
        hub.from_revision(6, None).unwrap_err().reason,
        Reason::Expired
    );
    assert!(hub.lock().recent.len() <= MAX_CHANGES);
}

#[tokio::test]
async fn large_objects_are_kept_for_a_shorter_time() {
    let hub = hub();
    for revision in 8..108 {
        let mut object = tier("gold", revision);
        object["spec"] = json!("x".repeat(1 << 20));
        hub.lock().take(Change {
            revision,
            what: What::Put(object),
        });
    }
    assert!(hub.lock().recent.len() < 40);
    assert!(hub.from_revision(100, None).is_ok());
}

fn policies() -> Hub {
    let registry = Registry::standalone();
    let of = registry.find("projectcalico.org", "v3", "networkpolicies");
    let items = [policy("a", "old", 3), policy("b", "old", 4)];
    let items = items.into_iter().map(Object::new).collect();
    Hub::new(of.unwrap().clone(), items, 7)
}

fn policy(namespace: &str, name: &str, revision: u64) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name, "resourceVersion": revision.to_string()}})
}

/// Puts a policy there and wakes whom it concerns.
fn put_in(hub: &Hub, namespace: &str, revision: u64) {
    let what = What::Put(policy(namespace, "new", revision));
    let mut state = hub.lock();
    state.take(Change { revision, what });
    state.recent.tell();
}

fn revisions(events: &[Arc<HubEvent>]) -> Vec<u64> {
    events.iter().map(|event| event.revision).collect()
}

#[tokio::test]
async fn only_changes_of_the_namespace_are_told_and_bookmarks_go_on() {
    let hub = policies();
    let (objects, mut position) = hub.from_now(Some("b"));
    assert_eq!(objects, [Object::new(policy("b", "old", 4))]);
    for (namespace, revision) in [
        ("a", 8),
        ("b", 9),
        ("a", 10),
        ("b", 11),
        ("b", 12),
        ("a", 13),
    ] {
        put_in(&hub, namespace, revision);
    }
    assert_eq!(hub.reached(&position), 7);
    let events = hub.next(&mut position, 2).await.unwrap();
    assert_eq!(revisions(&events), [9, 11]);
    assert_eq!(hub.reached(&position), 11);
    let events = hub.next(&mut position, 2).await.unwrap();
    assert_eq!(revisions(&events), [12]);
    assert_eq!(hub.reached(&position), 13);
    let mut position = hub.from_revision(10, Some("a")).unwrap();
    let events = hub.next(&mut position, 100).await.unwrap();
    assert_eq!(revisions(&events), [13]);
}

#[tokio::test]
async fn who_watches_a_quiet_namespace_sleeps_and_is_not_cut_off() {
    let hub = policies();
    let mut position = hub.from_revision(7, Some("b")).unwrap();
    let changes = MAX_CHANGES as u64 + 10;
    {
        let mut next = Box::pin(hub.next(&mut position, 100));
        assert!(futures::poll!(&mut next).is_pending());
        for revision in 8..8 + changes {
            put_in(&hub, "a", revision);
        }
        assert!(futures::poll!(&mut next).is_pending());
        put_in(&hub, "b", 8 + changes);
        let events = next.await.unwrap();
        assert_eq!(revisions(&events), [8 + changes]);
    }
    let mut slow = hub.from_revision(8 + changes, Some("a")).unwrap();
    for revision in 9 + changes..9 + 2 * changes {
        put_in(&hub, "a", revision);
    }
    let failure = hub.next(&mut slow, 100).await.unwrap_err();
    assert_eq!(failure.reason, Reason::Expired);
}

#[tokio::test]
async fn the_end_is_told_to_all() {
    let hub = policies();
    let mut position = hub.from_revision(7, Some("b")).unwrap();
    let mut next = Box::pin(hub.next(&mut position, 100));
    assert!(futures::poll!(&mut next).is_pending());
    let broken = Failure::new(Reason::Unavailable, "broken");
    let changes = futures::stream::iter([Err(broken)]).boxed();
    hub.end(hub.follow(changes).await);
    let failure = next.await.unwrap_err();
    assert_eq!(failure.message, "broken");
}

#[tokio::test]
async fn namespaces_that_nobody_watches_are_forgotten() {
    let hub = policies();
    let watched = hub.from_revision(7, Some("watched")).unwrap();
    for number in 0..10_000 {
        hub.from_revision(7, Some(&format!("looked-at-{number}")))
            .unwrap();
    }
    assert!(hub.lock().recent.lanes() < 200);
    put_in(&hub, "watched", 8);
    assert_eq!(hub.reached(&watched), 7);
}

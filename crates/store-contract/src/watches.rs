//! Watches: every change, once, in order.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use tortie_api::Kind;

use tortie_store::{Change, Event, Key, Precondition, Query, Revision, Watch};

use crate::{Subject, count, set_count};

/// Far beyond what any event takes; only a lost one waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

const WRITERS: usize = 8;
const UPDATES: usize = 20;
/// Per writer: the create, the updates and the delete.
const CHANGES: usize = UPDATES + 2;

/// One change, reduced to what is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    revision: Revision,
    key: Key,
    /// The count in the object; none if it was deleted.
    count: Option<usize>,
}

/// A delete is told with the key of what is gone.
pub async fn a_watch_sees_deletes(subject: &Subject) {
    let created = subject.create(subject.set("a")).await;
    let key = Key::of(&created);
    let from = Revision(created.metadata().resource_version.clone());
    let mut watch = start(subject, &Query::from(&key), &from).await;
    subject
        .store
        .delete(&key, &Precondition::default())
        .await
        .expect("it is there");
    let seen = take(subject, &mut watch, 1).await;
    assert_eq!((&seen[0].key, seen[0].count), (&key, None));
}

/// Objects made before the list are in the list, those made after it are in the watch.
pub async fn a_watch_from_a_list_misses_nothing(subject: &Subject) {
    let writer = tokio::spawn(write(subject.clone(), 0));
    let query = Query::in_namespace(Kind::NetworkSet, &subject.namespaces()[0]);
    let (listed, from) = loop {
        let list = subject.store.list(&query).await.expect("a list works");
        if let Some(item) = list.items.first() {
            break (count(item), list.revision);
        }
        assert!(!writer.is_finished(), "the object was never in a list");
    };
    let mut watch = start(subject, &query, &from).await;
    writer.await.expect("the writer did not fail");
    let seen = take(subject, &mut watch, UPDATES - listed + 1).await;
    let counts: Vec<_> = seen.iter().map(|seen| seen.count).collect();
    let expected: Vec<_> = (listed + 1..=UPDATES).map(Some).chain([None]).collect();
    assert_eq!(counts, expected);
}

/// A watch from a revision in the past first tells what has happened since.
pub async fn a_watch_replays_what_was_changed_before_it_started(subject: &Subject) {
    let query = Query::in_namespace(Kind::NetworkSet, &subject.namespaces()[0]);
    let from = subject
        .store
        .list(&query)
        .await
        .expect("a list works")
        .revision;
    write(subject.clone(), 0).await;
    let mut watch = start(subject, &query, &from).await;
    let all = take(subject, &mut watch, CHANGES).await;
    check(&all);
    let middle = CHANGES / 2;
    let mut rest = start(subject, &query, &all[middle].revision).await;
    assert_eq!(
        take(subject, &mut rest, CHANGES - middle - 1).await,
        all[middle + 1..]
    );
}

/// With many writers at once, watches of one namespace and of all see each change once, in one
/// order.
pub async fn watches_see_every_change_once_and_in_order(subject: &Subject) {
    let kind = Kind::NetworkSet;
    let from = subject
        .store
        .list(&Query::all(kind))
        .await
        .expect("a list works")
        .revision;
    let mut all = start(subject, &Query::all(kind), &from).await;
    let namespace = &subject.namespaces()[1];
    let mut one = start(subject, &Query::in_namespace(kind, namespace), &from).await;
    let writers = (0..WRITERS).map(|writer| tokio::spawn(write(subject.clone(), writer)));
    let writers = join_all(writers);
    let (results, all) = futures::join!(writers, take(subject, &mut all, WRITERS * CHANGES));
    for result in results {
        result.expect("no writer failed");
    }
    check(&all);
    let expected: Vec<_> = all
        .into_iter()
        .filter(|seen| seen.key.namespace == *namespace)
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(take(subject, &mut one, expected.len()).await, expected);
}

/// Watches side by side do not take from each other, and none sees another kind.
pub async fn many_watches_see_the_same(subject: &Subject) {
    let query = Query::in_namespace(Kind::NetworkSet, &subject.namespaces()[0]);
    let from = subject
        .store
        .list(&query)
        .await
        .expect("a list works")
        .revision;
    let mut other = start(subject, &Query::all(Kind::HostEndpoint), &from).await;
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(start(subject, &query, &from).await);
    }
    let takes = watches
        .iter_mut()
        .map(|watch| take(subject, watch, CHANGES));
    let ((), seen) = futures::join!(write(subject.clone(), 0), join_all(takes));
    check(&seen[0]);
    assert!(seen.iter().all(|other| *other == seen[0]));
    let mut hep = tortie_api::Resource::empty(Kind::HostEndpoint);
    hep.metadata_mut().name = subject.name("a");
    let hep = subject.create(hep).await;
    assert_eq!(take(subject, &mut other, 1).await[0].key, Key::of(&hep));
}

/// Creates an object, changes it and removes it. Writers use different namespaces.
async fn write(subject: Subject, writer: usize) {
    let namespaces = subject.namespaces();
    let namespace = &namespaces[writer % namespaces.len()];
    let mut resource = subject
        .create(subject.set_in(namespace, &format!("w{writer}")))
        .await;
    for update in 1..=UPDATES {
        set_count(&mut resource, update);
        resource = subject
            .store
            .update(resource)
            .await
            .expect("nobody else changes it");
    }
    let key = Key::of(&resource);
    subject
        .store
        .delete(&key, &Precondition::default())
        .await
        .expect("it is there");
}

async fn start(subject: &Subject, query: &Query, from: &Revision) -> Watch {
    let watch = crate::watch(&subject.store, query, from).await;
    watch.unwrap_or_else(|error| panic!("watch of {query:?}: {error}"))
}

/// The next changes to objects of this case.
async fn take(subject: &Subject, watch: &mut Watch, number: usize) -> Vec<Seen> {
    let mut taken = Vec::new();
    while taken.len() < number {
        let Ok(event) = tokio::time::timeout(PATIENCE, watch.next()).await else {
            panic!(
                "{} of {number} changes came, the last of them {:?}",
                taken.len(),
                taken.last()
            );
        };
        let event = event
            .expect("a watch ends with an error only")
            .expect("the watch goes on");
        taken.extend(seen(event).filter(|seen| seen.key.name.starts_with(&subject.prefix)));
    }
    taken
}

fn seen(event: Event) -> Option<Seen> {
    let Event { revision, change } = event;
    match change {
        Change::Put(resource) => {
            assert_eq!(resource.metadata().resource_version, revision.0);
            Some(Seen {
                revision,
                key: Key::of(&resource),
                count: Some(count(&resource)),
            })
        }
        Change::Delete(key) => Some(Seen {
            revision,
            key,
            count: None,
        }),
        Change::Invalid(invalid) => panic!("{}: {}", invalid.key, invalid.reason),
        Change::Bookmark => None,
    }
}

/// Each object goes through all its counts, one after the other, and then is deleted.
#[track_caller]
fn check(all: &[Seen]) {
    let mut by_key: BTreeMap<&Key, Vec<Option<usize>>> = BTreeMap::new();
    for seen in all {
        by_key.entry(&seen.key).or_default().push(seen.count);
    }
    let expected: Vec<_> = (0..=UPDATES).map(Some).chain([None]).collect();
    for (key, counts) in by_key {
        assert_eq!(counts, expected, "{key}");
    }
}

//! Watches against a change log that forgets soon.

use futures::StreamExt;
use tempfile::TempDir;
use tortie_api::network_set::NetworkSetSpec;
use tortie_api::{Kind, NetworkSet};

use super::*;
use crate::store::{Change, Event};

const LOG: LogLimits = LogLimits {
    entries: 10,
    bytes: u64::MAX,
};

fn open(limits: LogLimits) -> (EmbeddedStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open_with(&folder.path().join("store"), limits).unwrap();
    (store, folder)
}

async fn create(store: &EmbeddedStore, range: std::ops::RangeInclusive<u64>) {
    for index in range {
        let set = NetworkSet::new("ns", &format!("set-{index:04}"), NetworkSetSpec::default());
        store.create(set.into()).await.unwrap();
    }
}

async fn watch(store: &EmbeddedStore, from: u64) -> Result<Watch> {
    store
        .watch(&Query::all(Kind::NetworkSet), &Revision(from.to_string()))
        .await
}

async fn next(watch: &mut Watch) -> u64 {
    let Event { revision, change } = watch.next().await.unwrap().unwrap();
    assert!(matches!(change, Change::Put(_)));
    revision.0.parse().unwrap()
}

#[track_caller]
fn assert_gone<T>(result: Result<T>, revision: &str) {
    match result {
        Err(Error::Gone(at)) => assert_eq!(at, revision),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it still is there"),
    }
}

#[tokio::test]
async fn revisions_before_the_log_and_after_the_last_are_gone() {
    let (store, _folder) = open(LOG);
    create(&store, 1..=25).await;
    assert_gone(watch(&store, 14).await, "14");
    assert_gone(watch(&store, 26).await, "26");
    let query = Query::all(Kind::NetworkSet);
    assert_gone(store.watch(&query, &Revision("x".to_owned())).await, "x");
    assert_gone(store.watch(&query, &Revision::default()).await, "");
    let mut watch = watch(&store, 15).await.unwrap();
    for expected in 16..=25 {
        assert_eq!(next(&mut watch).await, expected);
    }
}

#[tokio::test]
async fn the_log_is_also_limited_in_bytes() {
    let (store, _folder) = open(LogLimits {
        entries: u64::MAX,
        bytes: 1000,
    });
    create(&store, 1..=25).await;
    assert_gone(watch(&store, 10).await, "10");
    assert_eq!(next(&mut watch(&store, 24).await.unwrap()).await, 25);
}

#[tokio::test]
async fn a_watch_that_the_feed_outran_goes_on_from_the_log() {
    let (store, _folder) = open(LogLimits::default());
    create(&store, 1..=1).await;
    let mut watch = watch(&store, 0).await.unwrap();
    assert_eq!(next(&mut watch).await, 1);
    // Many more commits than the feed keeps.
    create(&store, 2..=200).await;
    for expected in 2..=200 {
        assert_eq!(next(&mut watch).await, expected);
    }
}

#[tokio::test]
async fn changes_too_large_for_the_feed_are_read_from_the_log() {
    let (store, _folder) = open(LogLimits::default());
    let mut watch = watch(&store, 0).await.unwrap();
    create(&store, 1..=1).await;
    assert_eq!(next(&mut watch).await, 1);
    for index in 2..=4 {
        let mut set = NetworkSet::new("ns", &format!("large-{index}"), NetworkSetSpec::default());
        set.spec.nets = vec!["10.0.0.0/8".to_owned(); 100_000];
        store.create(set.into()).await.unwrap();
    }
    create(&store, 5..=5).await;
    for expected in 2..=5 {
        assert_eq!(next(&mut watch).await, expected);
    }
}

#[tokio::test]
async fn a_watch_that_the_log_outran_ends_as_gone() {
    let (store, _folder) = open(LOG);
    create(&store, 1..=1).await;
    let mut watch = watch(&store, 0).await.unwrap();
    assert_eq!(next(&mut watch).await, 1);
    create(&store, 2..=200).await;
    assert_gone(watch.next().await.unwrap(), "1");
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_says_how_far_it_has_come() {
    let (store, _folder) = open(LOG);
    let mut watch = watch(&store, 0).await.unwrap();
    let mut hep = Resource::empty(Kind::HostEndpoint);
    hep.metadata_mut().name = "a".to_owned();
    store.create(hep).await.unwrap();
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!(
        event,
        Event {
            revision: Revision("1".to_owned()),
            change: Change::Bookmark
        }
    );
}

#[tokio::test]
async fn a_watch_ends_with_the_store() {
    let (store, _folder) = open(LOG);
    let mut watch = watch(&store, 0).await.unwrap();
    drop(store);
    assert!(matches!(
        watch.next().await,
        Some(Err(Error::Unavailable { .. }))
    ));
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_dropped_store_can_be_opened_at_once_although_reads_were_under_way() {
    let (store, folder) = open(LogLimits::default());
    let mut large = NetworkSet::new("ns", "large", NetworkSetSpec::default());
    large.spec.nets = vec!["10.0.0.0/8".to_owned(); 100_000];
    store.create(large.into()).await.unwrap();
    let query = Query::all(Kind::NetworkSet);
    let mut watch = watch(&store, 0).await.unwrap();
    // Each begins to read on another thread, and is then forgotten.
    assert!(futures::poll!(watch.next()).is_pending());
    assert!(futures::poll!(store.list(&query)).is_pending());
    // Long enough to be in the middle of it.
    std::thread::sleep(std::time::Duration::from_millis(1));
    drop(store);
    EmbeddedStore::open(folder.path().join("store")).unwrap();
}

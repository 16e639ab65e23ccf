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
    let store =
        EmbeddedStore::open_with(&folder.path().join("store"), limits, DEFAULT_QUOTA).unwrap();
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

#[tokio::test]
async fn a_file_that_is_opened_again_has_all_that_was_answered_and_watches_go_on() {
    let (store, _folder) = open(LogLimits::default());
    create(&store, 1..=5).await;
    let mut watching = watch(&store, 0).await.unwrap();
    for expected in 1..=5 {
        assert_eq!(next(&mut watching).await, expected);
    }
    let state = store.inner.shared.file.reopen().unwrap();
    assert_eq!(state.revision(), 5);
    create(&store, 6..=9).await;
    for expected in 6..=9 {
        assert_eq!(next(&mut watching).await, expected);
    }
    // A commit whose answer was an error may be there all the same: watches find it in the log.
    store.inner.shared.feed.send_to_log(9);
    create(&store, 10..=10).await;
    assert_eq!(next(&mut watching).await, 10);
}

#[tokio::test]
async fn beyond_the_quota_only_deletions_are_taken_until_there_is_room() {
    const QUOTA: u64 = 4 << 20;
    let folder = tempfile::tempdir().unwrap();
    let log = LogLimits {
        entries: 10,
        bytes: 100_000,
    };
    let path = folder.path().join("store");
    let store = EmbeddedStore::open_with(&path, log, QUOTA).unwrap();
    let set = |index: u64| {
        let nets = (0..4000).map(|n| format!("10.{}.{}.{index}", n / 256, n % 256));
        let spec = NetworkSetSpec {
            nets: nets.collect(),
        };
        Resource::from(NetworkSet::new("ns", &format!("set-{index}"), spec))
    };
    let mut count = 0;
    let refused = loop {
        match store.create(set(count)).await {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
        assert!(count < 200, "there is no quota");
    };
    let text = refused.to_string();
    assert!(
        refused.is_retryable() && text.contains("of the 4 MiB"),
        "{text}"
    );
    assert!(store.check_health().await.is_err());
    let size = || std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&path).unwrap()) * 512;
    assert!(size() <= QUOTA, "{}", size());
    let query = Query::all(Kind::NetworkSet);
    assert_eq!(store.list(&query).await.unwrap().items.len() as u64, count);
    for index in 0..count - 1 {
        let key = Key::of(&set(index));
        store.delete(&key, &Precondition::default()).await.unwrap();
    }
    // What the deletions freed is given back once it is needed; that may not be at once.
    let start = std::time::Instant::now();
    while let Err(error) = store.check_health().await {
        assert!(start.elapsed().as_secs() < 30, "{error}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(size() < QUOTA / 2, "{}", size());
    store.create(set(0)).await.unwrap();
    drop(store);
    let verified = verify(&path).unwrap();
    assert_eq!((verified.objects, &verified.problems[..]), (2, &[][..]));
}

#[tokio::test]
async fn a_backup_is_whole_and_private_and_can_be_restored() {
    use std::os::unix::fs::PermissionsExt as _;
    let (store, folder) = open(LogLimits::default());
    create(&store, 1..=50).await;
    let path = folder.path().join("store");
    let backup = folder.path().join("backup");
    store.back_up(&backup).await.unwrap();
    create(&store, 51..=60).await;
    assert!(
        store.back_up(&backup).await.is_err(),
        "nothing is overwritten"
    );
    let mode = std::fs::metadata(&backup).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(store.verify().await.unwrap().objects, 60);
    let verified = verify(&backup).unwrap();
    assert_eq!((verified.objects, verified.revision), (50, 50));

    let open = restore(&backup, &path, true).unwrap_err();
    assert!(open.to_string().contains("is open in process"), "{open}");
    drop(store);
    assert!(restore(&backup, &path, false).is_err());
    let kept = restore(&backup, &path, true).unwrap().unwrap();
    assert_eq!(verify(&kept).unwrap().objects, 60);
    assert_eq!(verify(&path).unwrap().objects, 50);

    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&backup, &whole[..whole.len() / 2]).unwrap();
    assert!(restore(&backup, &path, true).is_err());
    assert_eq!(verify(&path).unwrap().objects, 50, "it stays as it was");
}

/// Every page is damaged in turn: nothing panics, and what can be read is what was written.
#[tokio::test]
async fn damage_is_told_and_no_panic() {
    let (store, folder) = open(LogLimits::default());
    create(&store, 1..=200).await;
    drop(store);
    let path = folder.path().join("store");
    let whole = std::fs::read(&path).unwrap();
    let mut told = 0;
    for page in 0..whole.len() / 4096 {
        let mut damaged = whole.clone();
        for byte in &mut damaged[page * 4096..(page + 1) * 4096] {
            *byte ^= 0x5a;
        }
        if damaged[page * 4096..] == whole[page * 4096..] {
            continue;
        }
        std::fs::write(&path, &damaged).unwrap();
        let Ok(store) = EmbeddedStore::open(&path) else {
            told += 1;
            continue;
        };
        let listed = store.list(&Query::all(Kind::NetworkSet)).await;
        let verified = store.verify().await;
        match (listed, verified) {
            (Ok(list), Ok(verified)) => {
                let is_well = verified.problems.is_empty() && list.invalid.is_empty();
                if is_well {
                    assert_eq!(list.items.len(), 200, "page {page}");
                } else {
                    told += 1;
                }
            }
            (Err(error), _) | (_, Err(error)) => {
                let text = error.to_string();
                assert!(text.contains("damaged"), "page {page}: {text}");
                told += 1;
            }
        }
    }
    assert!(told > 5, "{told}");
}

//! Documents beside resources, and their watches against a change log that forgets soon.

use std::path::Path;

use tempfile::TempDir;
use tortie_api::network_set::NetworkSetSpec;
use tortie_api::{Kind, NetworkSet};

use super::*;
use crate::embedded::log::LogLimits;
use crate::embedded::{DEFAULT_QUOTA, EmbeddedStore};
use crate::key::{Query, Revision};
use crate::store::{Change, Store};

const LOG: LogLimits = LogLimits {
    entries: 10,
    bytes: u64::MAX,
};

fn open_at(folder: &Path, limits: LogLimits) -> EmbeddedStore {
    EmbeddedStore::open_with(&folder.join("store"), limits, DEFAULT_QUOTA).unwrap()
}

fn open(limits: LogLimits) -> (EmbeddedStore, Documents, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path(), limits);
    let documents = store.documents();
    (store, documents, folder)
}

fn pod(namespace: &str, name: &str) -> DocumentKey {
    DocumentKey::new("pods", namespace, name)
}

async fn create(documents: &Documents, range: std::ops::RangeInclusive<u64>) {
    for index in range {
        let key = pod("ns", &format!("pod-{index:04}"));
        documents.create(key, *b"{}").await.unwrap();
    }
}

async fn create_set(store: &EmbeddedStore, name: &str) {
    let set = NetworkSet::new("ns", name, NetworkSetSpec::default());
    store.create(set.into()).await.unwrap();
}

async fn next(watch: &mut DocumentWatch) -> u64 {
    let DocumentEvent { revision, change } = watch.next().await.unwrap().unwrap();
    match change {
        DocumentChange::Put(document) => assert_eq!(document.revision, revision),
        other => panic!("{other:?}"),
    }
    revision
}

#[track_caller]
fn assert_gone<T>(result: Result<T>, revision: &str) {
    match result {
        Err(DocumentError::Store(Error::Gone(at))) => assert_eq!(at, revision),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it still is there"),
    }
}

#[tokio::test]
async fn documents_are_written_by_compare_and_swap() {
    let (_store, documents, _folder) = open(LOG);
    let key = pod("ns", "a");
    let (get, update) = (documents.get(&key), documents.update(key.clone(), *b"2", 1));
    assert!(matches!(get, Err(DocumentError::NotFound(missing)) if missing == key));
    assert!(matches!(update.await, Err(DocumentError::NotFound(_))));

    assert_eq!(documents.create(key.clone(), *b"1").await.unwrap(), 1);
    let again = documents.create(key.clone(), *b"1").await;
    assert!(matches!(again, Err(DocumentError::AlreadyExists(_))));
    assert_eq!(documents.update(key.clone(), *b"2", 1).await.unwrap(), 2);
    let late = documents.update(key.clone(), *b"3", 1).await;
    assert!(matches!(late, Err(DocumentError::Conflict(_))));
    let found = documents.get(&key).unwrap();
    assert_eq!((found.revision, &*found.json), (2, &b"2"[..]));

    let late = documents.delete(key.clone(), Some(1)).await;
    assert!(matches!(late, Err(DocumentError::Conflict(_))));
    let deleted = documents.delete(key.clone(), Some(2)).await.unwrap();
    assert_eq!((deleted.revision, &*deleted.json), (3, &b"2"[..]));
    let again = documents.delete(key, None).await;
    assert!(matches!(again, Err(DocumentError::NotFound(_))));
}

#[tokio::test]
async fn lists_are_of_one_collection_in_order_of_namespace_and_name() {
    let (store, documents, _folder) = open(LogLimits::default());
    let names = [("b", "a"), ("a-b", "z"), ("a", "z"), ("a", "b"), ("", "c")];
    for (namespace, name) in names {
        documents
            .create(pod(namespace, name), *b"{}")
            .await
            .unwrap();
    }
    for collection in ["pods.example.org", "pod", "podsx"] {
        let key = DocumentKey::new(collection, "a", "other");
        documents.create(key, *b"{}").await.unwrap();
    }
    create_set(&store, "set").await;

    let keys = async |namespace| {
        let (list, revision) = documents.list("pods", namespace).await.unwrap();
        assert_eq!(revision, 9);
        let key = |document: Document| (document.key.namespace, document.key.name);
        list.into_iter().map(key).collect::<Vec<_>>()
    };
    let owned = |names: &[(&str, &str)]| -> Vec<(String, String)> {
        let owned = |&(a, b): &(&str, &str)| (a.to_owned(), b.to_owned());
        names.iter().map(owned).collect()
    };
    let sorted = [("", "c"), ("a", "b"), ("a", "z"), ("a-b", "z"), ("b", "a")];
    assert_eq!(keys(None).await, owned(&sorted));
    assert_eq!(keys(Some("a")).await, owned(&sorted[1..3]));
    assert_eq!(keys(Some("")).await, owned(&sorted[..1]));
    assert_eq!(keys(Some("c")).await, []);
}

#[tokio::test]
async fn keys_that_could_be_those_of_others_are_refused() {
    let (_store, documents, _folder) = open(LOG);
    for key in [
        DocumentKey::new("Tier", "", "a"),
        DocumentKey::new("networkSets", "", "a"),
        DocumentKey::new("", "", "a"),
        DocumentKey::new("1pods", "", "a"),
        DocumentKey::new("pods\0ns", "", "a"),
        pod("n\0s", "a"),
        pod("ns", "a\0b"),
    ] {
        let refused = documents.create(key.clone(), *b"{}").await;
        assert!(
            matches!(refused, Err(DocumentError::InvalidKey { .. })),
            "{key:?}: {refused:?}"
        );
        assert!(documents.get(&key).is_err());
    }
    assert!(documents.list("Tier", None).await.is_err());
    assert!(documents.list("pods", Some("a\0b")).await.is_err());
    assert!(documents.watch("Tier", 0).is_err());
}

#[tokio::test]
async fn documents_and_resources_share_one_order_of_revisions() {
    let (store, documents, _folder) = open(LogLimits::default());
    let query = Query::all(Kind::NetworkSet);
    let mut sets = store.watch(&query, &Revision("0".into())).await.unwrap();
    let mut pods = documents.watch("pods", 0).unwrap();
    for round in 0..3 {
        create_set(&store, &format!("set-{round}")).await;
        let key = pod("ns", &format!("pod-{round}"));
        documents.create(key, *b"{}").await.unwrap();
    }
    assert_eq!(store.revision().unwrap(), 6);
    for round in 0..3 {
        let event = sets.next().await.unwrap().unwrap();
        assert_eq!(event.revision, Revision((2 * round + 1).to_string()));
        assert!(matches!(event.change, Change::Put(_)));
        assert_eq!(next(&mut pods).await, 2 * round + 2);
    }
    let list = store.list(&query).await.unwrap();
    assert_eq!((list.items.len(), list.invalid.len()), (3, 0));
}

#[tokio::test]
async fn a_watch_tells_puts_and_deletes_of_its_collection_also_after_the_store_was_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path(), LogLimits::default());
    let documents = store.documents();
    create(&documents, 1..=2).await;
    let other = DocumentKey::new("nodes", "", "a");
    documents.create(other, *b"{}").await.unwrap();
    documents.delete(pod("ns", "pod-0001"), None).await.unwrap();
    let expected = [
        (1, Some("pod-0001")),
        (2, Some("pod-0002")),
        (4, None),
        (5, Some("pod-0005")),
    ];
    drop((store, documents));

    let store = open_at(folder.path(), LogLimits::default());
    assert_eq!(store.revision().unwrap(), 4);
    let documents = store.documents();
    let mut watch = documents.watch("pods", 0).unwrap();
    create(&documents, 5..=5).await;
    for (revision, name) in expected {
        let event = watch.next().await.unwrap().unwrap();
        assert_eq!(event.revision, revision);
        match event.change {
            DocumentChange::Put(document) => assert_eq!(Some(document.key.name.as_str()), name),
            DocumentChange::Delete(key) => assert_eq!((key, name), (pod("ns", "pod-0001"), None)),
            DocumentChange::Bookmark => panic!("nothing is quiet"),
        }
    }
}

#[tokio::test]
async fn revisions_before_the_log_and_after_the_last_are_gone() {
    let (_store, documents, _folder) = open(LOG);
    create(&documents, 1..=25).await;
    assert_gone(documents.watch("pods", 14), "14");
    assert_gone(documents.watch("pods", 26), "26");
    assert_gone(documents.watch("pods", u64::MAX), &u64::MAX.to_string());
    let mut watch = documents.watch("pods", 15).unwrap();
    for expected in 16..=25 {
        assert_eq!(next(&mut watch).await, expected);
    }
}

#[tokio::test]
async fn a_watch_that_the_feed_outran_goes_on_from_the_log_or_ends_as_gone() {
    for (limits, is_gone) in [(LogLimits::default(), false), (LOG, true)] {
        let (_store, documents, _folder) = open(limits);
        let mut watch = documents.watch("pods", 0).unwrap();
        create(&documents, 1..=1).await;
        assert_eq!(next(&mut watch).await, 1);
        create(&documents, 2..=200).await;
        if is_gone {
            assert_gone(watch.next().await.unwrap(), "1");
            assert!(watch.next().await.is_none());
            continue;
        }
        for expected in 2..=200 {
            assert_eq!(next(&mut watch).await, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_says_how_far_it_has_come() {
    let (store, documents, _folder) = open(LOG);
    let mut watch = documents.watch("pods", 0).unwrap();
    create_set(&store, "set").await;
    let event = watch.next().await.unwrap().unwrap();
    let change = DocumentChange::Bookmark;
    assert_eq!(
        event,
        DocumentEvent {
            revision: 1,
            change
        }
    );
}

#[tokio::test]
async fn documents_keep_the_store_open_and_their_watches_do_not() {
    let (store, documents, folder) = open(LOG);
    drop(store);
    create(&documents, 1..=1).await;
    let mut watch = documents.watch("pods", 0).unwrap();
    assert_eq!(next(&mut watch).await, 1);
    drop(documents);
    let end = watch.next().await;
    assert!(
        matches!(
            end,
            Some(Err(DocumentError::Store(Error::Unavailable { .. })))
        ),
        "{end:?}"
    );
    open_at(folder.path(), LOG);
}

//! Snapshots while others write, and what ends them.

use tempfile::TempDir;
use tortie_api::network_set::NetworkSetSpec;
use tortie_api::{NetworkSet, Profile};

use super::*;
use crate::embedded::EmbeddedStore;
use crate::embedded::log::LogLimits;
use crate::store::{Precondition, Store as _};

const ALL: Most = Most {
    objects: usize::MAX,
    bytes: usize::MAX,
};

fn open() -> (EmbeddedStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path().join("store")).unwrap();
    (store, folder)
}

/// A set with so many nets, which are in no order.
fn set(name: &str, nets: u32) -> Resource {
    let nets = (0..nets).map(|n| std::net::Ipv4Addr::from(n.wrapping_mul(0x9e37_79b9)).to_string());
    let spec = NetworkSetSpec {
        nets: nets.collect(),
    };
    NetworkSet::new("ns", name, spec).into()
}

fn names(found: &[Stored]) -> Vec<&str> {
    found.iter().map(|stored| stored.name.as_str()).collect()
}

#[tokio::test]
async fn a_snapshot_shows_what_was_there() {
    let (store, _folder) = open();
    for name in ["a", "b", "c"] {
        store.create(set(name, 1)).await.unwrap();
    }
    let snapshot = store.snapshot().unwrap().unwrap();
    let b = Key::of(&set("b", 1));
    let mut changed = store.get(&b).await.unwrap();
    if let Resource::NetworkSet(set) = &mut changed {
        set.spec.nets.clear();
    }
    store.update(changed).await.unwrap();
    let c = Key::of(&set("c", 1));
    store.delete(&c, &Precondition::default()).await.unwrap();
    store.create(set("d", 1)).await.unwrap();

    let query = Query::all(Kind::NetworkSet);
    let found = snapshot.objects(&query, None, ALL).unwrap();
    assert_eq!(names(&found), ["a", "b", "c"]);
    let revisions: Vec<u64> = found.iter().map(|stored| stored.revision).collect();
    assert_eq!((revisions, snapshot.revision()), (vec![1, 2, 3], 3));
    match snapshot.get(&b).unwrap().unwrap() {
        Resource::NetworkSet(set) => assert_eq!(set.spec.nets.len(), 1),
        other => panic!("{other:?}"),
    }
    assert!(snapshot.get(&c).is_ok());
    let now = store.snapshot().unwrap().unwrap();
    let found = now.objects(&query, None, ALL).unwrap();
    assert_eq!(names(&found), ["a", "b", "d"]);
}

#[tokio::test]
async fn what_is_looked_at_has_bounds_and_goes_on_after_a_name() {
    let (store, _folder) = open();
    for name in ["a", "b", "c", "d"] {
        store.create(set(name, 10)).await.unwrap();
    }
    let snapshot = store.snapshot().unwrap().unwrap();
    let look = |namespace: &str, after, objects, bytes| {
        let query = Query {
            namespace: Some(namespace.to_owned()),
            ..Query::all(Kind::NetworkSet)
        };
        let most = Most { objects, bytes };
        snapshot.objects(&query, after, most).unwrap()
    };
    assert_eq!(names(&look("ns", None, 2, usize::MAX)), ["a", "b"]);
    assert_eq!(
        names(&look("ns", Some(("ns", "b")), 9, 1 << 20)),
        ["c", "d"]
    );
    assert_eq!(names(&look("ns", Some(("", "")), 1, 1 << 20)), ["a"]);
    // One that is larger than the bound comes alone.
    assert_eq!(names(&look("ns", Some(("ns", "a")), 9, 1)), ["b"]);
    assert!(look("n", None, 9, 1 << 20).is_empty());
    assert!(look("ns", Some(("ns", "d")), 9, 1 << 20).is_empty());
}

#[tokio::test]
async fn the_default_profile_has_its_place() {
    let (store, _folder) = open();
    for name in ["a", "z"] {
        let profile = Profile::new("", name, tortie_api::profile::ProfileSpec::default());
        store.create(profile.into()).await.unwrap();
    }
    let snapshot = store.snapshot().unwrap().unwrap();
    let query = Query::all(Kind::Profile);
    let own = default_profile::NAME;
    let mut all: Vec<Stored> = Vec::new();
    for objects in [1, 2, 9] {
        all.clear();
        loop {
            let after = all.last().map(|last| (&*last.namespace, &*last.name));
            let most = Most {
                objects,
                bytes: usize::MAX,
            };
            let found = snapshot.objects(&query, after, most).unwrap();
            assert!(found.len() <= objects);
            if found.is_empty() {
                break;
            }
            all.extend(found);
        }
        assert_eq!(names(&all), ["a", own, "z"], "{objects} at a time");
    }
    assert!(snapshot.get(&Key::global(Kind::Profile, own)).is_ok());
}

#[tokio::test]
async fn documents_are_looked_at_and_read() {
    let (store, _folder) = open();
    let documents = store.documents();
    let pods: Arc<str> = "pods".into();
    let key = |namespace: &str| DocumentKey::new(Arc::clone(&pods), namespace, "a");
    for namespace in ["n", "n2"] {
        documents.create(key(namespace), *b"{}").await.unwrap();
    }
    let snapshot = documents.snapshot().unwrap();
    documents.delete(key("n"), None).await.unwrap();
    let found = snapshot.documents(&pods, None, None, ALL).unwrap();
    assert_eq!(found.len(), 2);
    let found = snapshot.documents(&pods, Some("n"), None, ALL).unwrap();
    let expected = Stored {
        namespace: "n".to_owned(),
        name: "a".to_owned(),
        revision: 1,
        bytes: 2,
    };
    assert_eq!(found, [expected]);
    assert_eq!(&*snapshot.document(&key("n")).unwrap().json, b"{}");
    assert!(snapshot.documents(&pods, Some("n\0"), None, ALL).is_err());
}

#[tokio::test]
async fn a_snapshot_ends_when_it_costs_too_much_of_the_disk() {
    let (store, _folder) = open();
    store.create(set("a", 1)).await.unwrap();
    let snapshot = store.snapshot().unwrap().unwrap();
    let mut written = 0;
    while !snapshot.has_ended() {
        let bytes = 1 << 20;
        store
            .create(set(&format!("s{written}"), bytes / 16))
            .await
            .unwrap();
        written += 1;
        assert!(written < 1000, "it never ends");
    }
    assert!(written > 5, "{written}");
    let ended = snapshot.get(&Key::of(&set("a", 1))).unwrap_err();
    assert!(matches!(ended, Error::Gone(_)), "{ended}");
}

#[tokio::test]
async fn compaction_gives_room_back_and_keeps_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let log = LogLimits {
        entries: 5,
        bytes: u64::MAX,
    };
    let store = EmbeddedStore::open_with(&path, log, room::DEFAULT_QUOTA).unwrap();
    for number in 0..40 {
        let large = set(&format!("s{number}"), 10_000);
        store.create(large).await.unwrap();
    }
    for number in 1..40 {
        let key = Key::of(&set(&format!("s{number}"), 0));
        store.delete(&key, &Precondition::default()).await.unwrap();
    }
    let snapshot = store.snapshot().unwrap().unwrap();
    let kept = store.get(&Key::of(&set("s0", 0))).await.unwrap();
    let revision = store.revision().unwrap();
    let compacted = store.compact().await.unwrap();
    assert!(compacted.after < compacted.before / 2, "{compacted:?}");
    assert_eq!(compacted.after, room::used(&path).unwrap());
    assert!(snapshot.has_ended());
    assert_eq!(store.get(&Key::of(&kept)).await.unwrap(), kept);
    assert_eq!(store.revision().unwrap(), revision);
    store.create(set("new", 1)).await.unwrap();
    drop(store);

    let again = crate::embedded::compact(&path).unwrap();
    assert!(again.after <= again.before, "{again:?}");
    let verified = crate::embedded::verify(&path).unwrap();
    assert_eq!((verified.objects, &verified.problems[..]), (2, &[][..]));
    assert!(crate::embedded::compact(folder.path().join("none")).is_err());
}

//! Changes by compare-and-swap, while others write.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use tortie_api::IpPool;
use tortie_api::tier::TierSpec;
use tortie_client::Client;
use tortie_store::embedded::EmbeddedStore;
use tortie_store::etcd::{EtcdConfig, EtcdStore};
use tortie_store::{
    Error, Key, Kind, List, Precondition, Query, Resource, Result, Revision, Store, Watch,
};
use tortie_testkit::Etcd;

/// How often each writer adds one.
const EACH: u32 = 10;

/// A store in which somebody else is quicker, for the first so many writes.
struct Contended {
    inner: EmbeddedStore,
    left: AtomicUsize,
    reads: AtomicUsize,
    writes: AtomicUsize,
    /// Whether nothing can be read.
    is_away: AtomicBool,
}

impl Contended {
    fn open(folder: &Path, conflicts: usize) -> Arc<Self> {
        Arc::new(Self {
            inner: EmbeddedStore::open(folder.join("modify.redb")).unwrap(),
            left: AtomicUsize::new(conflicts),
            reads: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
            is_away: AtomicBool::new(false),
        })
    }

    /// Whether another write comes before this one.
    fn is_late(&self) -> bool {
        self.writes.fetch_add(1, Ordering::SeqCst);
        let one_less = |left: usize| left.checked_sub(1);
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        left.is_ok()
    }
}

#[async_trait]
impl Store for Contended {
    async fn get(&self, key: &Key) -> Result<Resource> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        if self.is_away.load(Ordering::SeqCst) {
            return Err(Error::Unavailable {
                message: "for a test".to_owned(),
                source: None,
            });
        }
        self.inner.get(key).await
    }

    async fn list(&self, query: &Query) -> Result<List> {
        self.inner.list(query).await
    }

    async fn create(&self, resource: Resource) -> Result<Resource> {
        if self.is_late() {
            let mut other = resource.clone();
            other
                .metadata_mut()
                .labels
                .insert("by".into(), "another".into());
            self.inner.create(other).await?;
        }
        self.inner.create(resource).await
    }

    async fn update(&self, resource: Resource) -> Result<Resource> {
        if self.is_late() {
            let mut other = self.inner.get(&Key::of(&resource)).await?;
            let count = self.left.load(Ordering::SeqCst).to_string();
            other.metadata_mut().labels.insert("left".into(), count);
            self.inner.update(other).await?;
        }
        self.inner.update(resource).await
    }

    async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        self.inner.delete(key, precondition).await
    }

    async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch> {
        self.inner.watch(query, from).await
    }
}

fn tier(name: &str) -> tortie_api::Tier {
    let spec = TierSpec {
        order: Some(0.0),
        ..TierSpec::default()
    };
    tortie_api::Tier::new("", name, spec)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "a change may refuse; this one never does"
)]
fn add_one(tier: &mut tortie_api::Tier) -> Result<()> {
    tier.spec.order = tier.spec.order.map(|order| order + 1.0);
    Ok(())
}

/// A change of a tier that loses the first so many races.
async fn modified(conflicts: usize) -> (Arc<Contended>, Result<tortie_api::Tier>) {
    let folder = tempfile::tempdir().unwrap();
    let store = Contended::open(folder.path(), 0);
    let client = Client::new(Arc::clone(&store) as _);
    client.create(tier("one").into()).await.unwrap();
    store.left.store(conflicts, Ordering::SeqCst);
    let key = Key::global(Kind::Tier, "one");
    let outcome = client.modify(&key, add_one).await;
    (store, outcome)
}

#[tokio::test(start_paused = true)]
async fn a_change_is_made_to_what_others_wrote() {
    let (_store, outcome) = modified(4).await;
    let changed = outcome.unwrap();
    assert_eq!(changed.spec.order, Some(1.0));
    assert_eq!(changed.metadata.labels["left"], "0");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_always_comes_late_gives_up() {
    let (store, outcome) = modified(usize::MAX).await;
    assert!(matches!(outcome, Err(Error::Conflict(_))), "{outcome:?}");
    // One of these created the tier.
    assert_eq!(store.writes.load(Ordering::SeqCst), 11);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_if_nothing_changes_or_the_change_refuses() {
    let (store, outcome) = modified(0).await;
    outcome.unwrap();
    let client = Client::new(Arc::clone(&store) as _);
    let key = Key::global(Kind::Tier, "one");
    let (reads, writes) = (
        store.reads.load(Ordering::SeqCst),
        store.writes.load(Ordering::SeqCst),
    );
    let same: Result<tortie_api::Tier> = client.modify(&key, |_| Ok(())).await;
    assert_eq!(same.unwrap().spec.order, Some(1.0));
    let refused: Result<Resource> = client
        .modify(&key, |_| Err(Error::Conflict(Key::global(Kind::Tier, "x"))))
        .await;
    // Its own error is never mistaken for a lost race.
    assert!(matches!(refused, Err(Error::Conflict(key)) if key.name == "x"));
    assert_eq!(store.reads.load(Ordering::SeqCst), reads + 2);
    assert_eq!(store.writes.load(Ordering::SeqCst), writes);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_absent_is_created_only_if_that_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    let store = Contended::open(folder.path(), 1);
    let client = Client::new(Arc::clone(&store) as _);
    let missing = client
        .modify(&Key::global(Kind::Tier, "one"), add_one)
        .await;
    assert!(matches!(missing, Err(Error::NotFound(_))), "{missing:?}");
    // Somebody else creates it first, already with the change, and ours is made to theirs.
    let created = client.modify_or_create(tier("one"), add_one).await.unwrap();
    assert_eq!(created.spec.order, Some(2.0));
    assert_eq!(created.metadata.labels["by"], "another");
}

/// Many writers change one object, which some of them create: no change is lost.
async fn counts_all(store: Arc<dyn Store>, name: &str) {
    let client = Client::new(Arc::clone(&store));
    let writers = (0..4).map(|_| {
        let client = client.clone();
        let name = name.to_owned();
        tokio::spawn(async move {
            for _ in 0..EACH {
                // Each change is made in the end: who gave up is not counted, and tries again.
                while client.modify_or_create(tier(&name), add_one).await.is_err() {}
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let Resource::Tier(tier) = client.get(&Key::global(Kind::Tier, name)).await.unwrap() else {
        panic!("another kind");
    };
    assert_eq!(tier.spec.order, Some(f64::from(4 * EACH)));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_change_is_lost_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path().join("count.redb")).unwrap();
    counts_all(Arc::new(store), "counted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_change_is_lost_in_etcd() {
    let etcd = EtcdConfig::new([Etcd::shared().endpoint()]);
    let store = EtcdStore::connect(&etcd).await.unwrap();
    counts_all(Arc::new(store), "modify-counted").await;
}

#[tokio::test]
async fn a_pool_is_left_alone_while_what_it_was_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let store = Contended::open(folder.path(), 0);
    let client = Client::new(Arc::clone(&store) as _);
    let mut pool = IpPool::default();
    pool.metadata.name = "pool".to_owned();
    pool.spec.cidr = "10.0.0.0/16".to_owned();
    let Resource::IpPool(mut pool) = client.create(pool.into()).await.unwrap() else {
        panic!("it is a pool");
    };
    // The size of its blocks is fixed, which only a look at the pool tells.
    pool.spec.block_size = 28;
    let change = || client.update((*pool).clone().into());
    let refused = change().await.unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
    store.is_away.store(true, Ordering::SeqCst);
    let refused = change().await.unwrap_err();
    assert!(refused.is_retryable(), "{refused}");
}

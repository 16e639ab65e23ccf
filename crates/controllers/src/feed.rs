//! Follows kinds of resources in a datastore: what there is, then every change.
//!
//! The channel to the consumer is short. A slow consumer slows the reading down, and nothing piles up.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tortie_store::{Key, Kind, Query, Resource, Store, StoreSource};
use tortie_sync::{Change, Follower, Keeper, Name, Pace, State, Status};

/// How many changes may wait for the consumer.
const WAITING: usize = 256;

/// What a datastore tells.
#[derive(Debug)]
pub(crate) enum Notice {
    /// The object is so now.
    Put(Box<Resource>),
    /// The object is gone, or cannot be read.
    Gone(Key),
    /// All of this kind has been told that there is at the moment.
    InSync(Kind),
    /// What was told of this kind may be outdated.
    Behind(Kind),
}

/// Follows a datastore until it is dropped.
pub(crate) struct Feed {
    receiver: mpsc::Receiver<Notice>,
    kinds: usize,
    in_sync: BTreeSet<Kind>,
    _followers: JoinSet<()>,
}

/// Tells the consumer of one kind.
struct Teller {
    kind: Kind,
    sender: mpsc::Sender<Notice>,
    /// What the consumer believes to exist.
    told: BTreeSet<Key>,
    /// What of this has not been found since everything began to be read.
    unseen: BTreeSet<Key>,
    /// Whether everything was read once.
    is_read: bool,
    is_behind: bool,
}

// === impl Feed ===

impl Feed {
    pub(crate) fn start(store: &Arc<dyn Store>, kinds: &[Kind]) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut followers = JoinSet::new();
        for kind in kinds {
            let source = StoreSource::new(Arc::clone(store), Query::all(*kind));
            let teller = Teller {
                kind: *kind,
                sender: sender.clone(),
                told: BTreeSet::new(),
                unseen: BTreeSet::new(),
                is_read: false,
                is_behind: true,
            };
            let topic = kind.to_string();
            let follower = Follower::new(topic, Arc::new(source), teller, Pace::default());
            followers.spawn(follower.run());
        }
        Self {
            receiver,
            kinds: kinds.len(),
            in_sync: BTreeSet::new(),
            _followers: followers,
        }
    }

    /// Waits for what is new. Nothing is lost if the wait is given up.
    pub(crate) async fn next(&mut self) -> Option<Notice> {
        let told = self.receiver.recv().await;
        self.note(told.as_ref());
        told
    }

    /// What is new, if anything is.
    pub(crate) fn try_next(&mut self) -> Option<Notice> {
        let told = self.receiver.try_recv().ok();
        self.note(told.as_ref());
        told
    }

    /// Whether what was told of all kinds is the newest there is, as far as is known.
    pub(crate) fn is_in_sync(&self) -> bool {
        self.in_sync.len() == self.kinds
    }

    fn note(&mut self, told: Option<&Notice>) {
        match told {
            Some(Notice::InSync(kind)) => {
                self.in_sync.insert(*kind);
            }
            Some(Notice::Behind(kind)) => {
                self.in_sync.remove(kind);
            }
            _ => {}
        }
    }
}

// === impl Teller ===

#[async_trait]
impl Keeper<Resource> for Teller {
    fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    fn has(&self, name: &Name) -> bool {
        self.told.contains(&self.key(name))
    }

    async fn take(&mut self, changes: Vec<Change<Resource>>, status: Status) -> usize {
        let count = changes.len();
        for change in changes {
            let (name, state) = match change {
                Change::Set(item) => (item.name, item.state),
                Change::Remove(name) => (name, State::Absent),
            };
            let key = self.key(&name);
            self.unseen.remove(&key);
            if let State::Present(mut resource) = state {
                resource.set_read_defaults();
                self.told.insert(key);
                self.tell(Notice::Put(Box::new(resource))).await;
            } else {
                self.told.remove(&key);
                self.tell(Notice::Gone(key)).await;
            }
        }
        if status != Status::InSync {
            self.set_behind(true).await;
        }
        count
    }

    fn begin_list(&mut self) {
        self.unseen.clone_from(&self.told);
    }

    async fn end_list(&mut self) -> usize {
        let gone = std::mem::take(&mut self.unseen);
        let count = gone.len();
        for key in gone {
            self.told.remove(&key);
            self.tell(Notice::Gone(key)).await;
        }
        self.is_read = true;
        self.set_behind(false).await;
        count
    }

    async fn in_contact(&mut self) {
        if self.is_read {
            self.set_behind(false).await;
        }
    }

    async fn lose_contact(&mut self, _: Option<String>) {
        self.set_behind(true).await;
    }
}

impl Teller {
    fn key(&self, name: &Name) -> Key {
        Key::namespaced(self.kind, name.namespace(), name.name())
    }

    async fn set_behind(&mut self, is_behind: bool) {
        if self.is_behind == is_behind {
            return;
        }
        self.is_behind = is_behind;
        let kind = self.kind;
        self.tell(if is_behind {
            Notice::Behind(kind)
        } else {
            Notice::InSync(kind)
        })
        .await;
    }

    async fn tell(&self, told: Notice) {
        // Where nobody listens any more, this task is about to end.
        let _ = self.sender.send(told).await;
    }
}

/// Waits until something is due; for ever if nothing is.
pub(crate) async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tempfile::TempDir;
    use tortie_store::embedded::EmbeddedStore;
    use tortie_store::{Error, List, Precondition, Result, Revision, Watch};

    use super::*;

    /// A store that refuses watches now and then, and counts lists.
    struct Flaky {
        inner: EmbeddedStore,
        lists: AtomicUsize,
        /// So many watches fail before the next one that does not.
        refusals: AtomicUsize,
    }

    #[async_trait]
    impl Store for Flaky {
        async fn get(&self, key: &Key) -> Result<Resource> {
            self.inner.get(key).await
        }

        async fn list(&self, query: &Query) -> Result<List> {
            self.lists.fetch_add(1, Ordering::Relaxed);
            self.inner.list(query).await
        }

        async fn create(&self, resource: Resource) -> Result<Resource> {
            self.inner.create(resource).await
        }

        async fn update(&self, resource: Resource) -> Result<Resource> {
            self.inner.update(resource).await
        }

        async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
            self.inner.delete(key, precondition).await
        }

        async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch> {
            let left = self.refusals.load(Ordering::Relaxed);
            if left > 0 {
                self.refusals.store(left - 1, Ordering::Relaxed);
                return Err(Error::Unavailable {
                    message: "for a test".to_owned(),
                    source: None,
                });
            }
            self.inner.watch(query, from).await
        }
    }

    async fn next(feed: &mut Feed) -> Notice {
        let told = tokio::time::timeout(Duration::from_secs(30), feed.next()).await;
        told.unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_watch_that_cannot_be_opened_for_a_moment_leads_to_no_second_list() {
        let folder = TempDir::new().unwrap();
        let flaky = Arc::new(Flaky {
            inner: EmbeddedStore::open(folder.path().join("store")).unwrap(),
            lists: AtomicUsize::new(0),
            refusals: AtomicUsize::new(2),
        });
        let store: Arc<dyn Store> = Arc::clone(&flaky) as _;
        let mut feed = Feed::start(&store, &[Kind::Tier]);
        let mut signs = String::new();
        while signs.matches('+').count() < 2 {
            signs.push(match next(&mut feed).await {
                Notice::InSync(_) => '+',
                Notice::Behind(_) => '-',
                told => panic!("{told:?}"),
            });
        }
        assert_eq!(signs, "+-+");
        assert!(feed.is_in_sync());
        let mut tier = Resource::empty(Kind::Tier);
        tier.metadata_mut().name = "a".to_owned();
        flaky.create(tier).await.unwrap();
        assert!(matches!(next(&mut feed).await, Notice::Put(_)));
        assert_eq!(flaky.lists.load(Ordering::Relaxed), 1);
    }
}

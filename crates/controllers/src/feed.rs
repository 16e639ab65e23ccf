//! Follows kinds of resources in a datastore: what there is, then every change.
//!
//! The channel to the consumer is short. A slow consumer slows the reading down, and nothing piles up.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tortie_backoff::{Backoff, Retries};
use tortie_store::{Change, Error, Key, Kind, Query, Resource, Revision, Store};

/// How many changes may wait for the consumer.
const WAITING: usize = 256;

/// Delays after failures.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(100),
    most: Duration::from_secs(10),
    jitter: 0.5,
};

/// What a datastore tells.
#[derive(Debug)]
pub(crate) enum Told {
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
    receiver: mpsc::Receiver<Told>,
    kinds: usize,
    in_sync: BTreeSet<Kind>,
    _followers: JoinSet<()>,
}

struct Follower {
    store: Arc<dyn Store>,
    kind: Kind,
    sender: mpsc::Sender<Told>,
    /// What the consumer believes to exist.
    told: BTreeSet<Key>,
    is_behind: bool,
}

/// Nobody listens any more.
struct Unheard;

// === impl Feed ===

impl Feed {
    pub(crate) fn start(store: &Arc<dyn Store>, kinds: &[Kind]) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut followers = JoinSet::new();
        for kind in kinds {
            let follower = Follower {
                store: Arc::clone(store),
                kind: *kind,
                sender: sender.clone(),
                told: BTreeSet::new(),
                is_behind: true,
            };
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
    pub(crate) async fn next(&mut self) -> Option<Told> {
        let told = self.receiver.recv().await;
        self.note(told.as_ref());
        told
    }

    /// What is new, if anything is.
    pub(crate) fn try_next(&mut self) -> Option<Told> {
        let told = self.receiver.try_recv().ok();
        self.note(told.as_ref());
        told
    }

    /// Whether what was told of all kinds is the newest there is, as far as is known.
    pub(crate) fn is_in_sync(&self) -> bool {
        self.in_sync.len() == self.kinds
    }

    fn note(&mut self, told: Option<&Told>) {
        match told {
            Some(Told::InSync(kind)) => {
                self.in_sync.insert(*kind);
            }
            Some(Told::Behind(kind)) => {
                self.in_sync.remove(kind);
            }
            _ => {}
        }
    }
}

// === impl Follower ===

impl Follower {
    async fn run(mut self) {
        let mut retries = Retries::new(RETRY);
        let mut from = None;
        loop {
            let began = tokio::time::Instant::now();
            let Err(error) = self.follow(&mut from).await else {
                return;
            };
            if !matches!(error, Error::Gone(_)) {
                let (kind, error) = (self.kind, &error as &dyn std::error::Error);
                tracing::warn!(%kind, error, "The datastore cannot be followed; trying again");
            }
            if self.set_behind(true).await.is_err() {
                return;
            }
            if began.elapsed() > RETRY.most {
                retries.reset();
            }
            tokio::time::sleep(retries.failed()).await;
        }
    }

    /// Reads all unless it is known from where to go on, and then follows. Ends well only if nobody listens.
    async fn follow(&mut self, from: &mut Option<Revision>) -> Result<(), Error> {
        let query = Query::all(self.kind);
        let revision = match from.take() {
            Some(revision) => revision,
            None => match self.list(&query).await? {
                Ok(revision) => revision,
                Err(Unheard) => return Ok(()),
            },
        };
        let mut watch = self.store.watch(&query, &revision).await?;
        *from = Some(revision);
        if self.set_behind(false).await.is_err() {
            return Ok(());
        }
        while let Some(event) = watch.next().await {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    if matches!(error, Error::Gone(_)) {
                        *from = None;
                    }
                    return Err(error);
                }
            };
            let told = match event.change {
                Change::Put(resource) => self.put(resource).await,
                Change::Delete(key) => self.gone(key).await,
                Change::Invalid(invalid) => self.gone(invalid.key).await,
                Change::Bookmark => Ok(()),
            };
            if told.is_err() {
                return Ok(());
            }
            *from = Some(event.revision);
        }
        Err(Error::message("the watch ended"))
    }

    async fn list(&mut self, query: &Query) -> Result<Result<Revision, Unheard>, Error> {
        let store = Arc::clone(&self.store);
        let mut parts = store.list_in_parts(query);
        let mut left = std::mem::take(&mut self.told);
        let mut revision = Revision::default();
        while let Some(part) = parts.next().await {
            let part = match part {
                Ok(part) => part,
                Err(error) => {
                    // What was told before is still believed to be there.
                    self.told.append(&mut left);
                    return Err(error);
                }
            };
            for resource in part.items {
                left.remove(&Key::of(&resource));
                if self.put(resource).await.is_err() {
                    return Ok(Err(Unheard));
                }
            }
            revision = part.revision;
        }
        for key in left {
            if self.gone(key).await.is_err() {
                return Ok(Err(Unheard));
            }
        }
        Ok(Ok(revision))
    }

    async fn put(&mut self, mut resource: Resource) -> Result<(), Unheard> {
        resource.set_read_defaults();
        self.told.insert(Key::of(&resource));
        self.tell(Told::Put(Box::new(resource))).await
    }

    async fn gone(&mut self, key: Key) -> Result<(), Unheard> {
        self.told.remove(&key);
        self.tell(Told::Gone(key)).await
    }

    async fn set_behind(&mut self, is_behind: bool) -> Result<(), Unheard> {
        if self.is_behind == is_behind {
            return Ok(());
        }
        self.is_behind = is_behind;
        let kind = self.kind;
        self.tell(if is_behind {
            Told::Behind(kind)
        } else {
            Told::InSync(kind)
        })
        .await
    }

    async fn tell(&self, told: Told) -> Result<(), Unheard> {
        self.sender.send(told).await.map_err(|_| Unheard)
    }
}

/// Waits until something is due; for ever if nothing is.
pub(crate) async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

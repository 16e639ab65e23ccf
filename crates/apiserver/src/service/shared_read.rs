//! Lists that several clients ask for at once are read once.
//!
//! Who asks while a list is being read does not get that one, which may be older than the question. All of those share the
//! next one, so that there are never more than two of a list in memory that are being read or written, however many ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as Turn, OnceCell};

use crate::failure::Result;
use crate::hub::Object;
use crate::registry::{ResourceId, ResourceType};

/// All objects of a type, perhaps of one namespace, as of one revision.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) items: Vec<Object>,
    pub(super) revision: u64,
}

/// The lists that are being read.
#[derive(Default)]
pub(super) struct SharedReads {
    reads: Mutex<HashMap<Id, Arc<Reads>>>,
}

type Id = (ResourceId, Option<String>);

/// What is read, once it is: for all who asked before that began.
type Outcome = Arc<OnceCell<Result<Arc<Objects>>>>;

#[derive(Default)]
struct Reads {
    /// One read at a time.
    turn: Turn<()>,
    /// The outcome of the read that begins next.
    next: Mutex<Outcome>,
}

impl SharedReads {
    /// What `read` gives, or what it gave to somebody who asked at the same time. It begins after this is called.
    pub(super) async fn read(
        &self,
        of: &ResourceType,
        namespace: Option<&str>,
        read: impl Future<Output = Result<Objects>>,
    ) -> Result<Arc<Objects>> {
        let id = (of.id(), namespace.map(ToOwned::to_owned));
        let reads = self.reads(&id);
        let outcome = Arc::clone(&lock(&reads.next));
        let turn = reads.turn.lock().await;
        // The first of those who share it reads; whoever asks from now on may not share it. If that one leaves in
        // between, another takes its place.
        let objects = outcome.get_or_init(|| async {
            *lock(&reads.next) = Outcome::default();
            read.await.map(Arc::new)
        });
        let objects = objects.await.clone();
        drop(turn);
        drop(reads);
        self.forget(&id);
        objects
    }

    fn reads(&self, id: &Id) -> Arc<Reads> {
        let mut all = lock(&self.reads);
        Arc::clone(all.entry(id.clone()).or_default())
    }

    /// Clients may ask for namespaces of any name.
    fn forget(&self, id: &Id) {
        let mut all = lock(&self.reads);
        if all
            .get(id)
            .is_some_and(|reads| Arc::strong_count(reads) == 1)
        {
            all.remove(id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::sync::Semaphore;

    use super::*;
    use crate::registry::Registry;

    /// Reads that end when they are let, and are counted.
    #[derive(Default)]
    struct Datastore {
        shared: SharedReads,
        begun: AtomicU64,
        may_end: Option<Semaphore>,
    }

    impl Datastore {
        async fn list(self: Arc<Self>) -> u64 {
            let registry = Registry::standalone();
            let of = registry.find("projectcalico.org", "v3", "tiers").unwrap();
            let read = async {
                let revision = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
                if let Some(may_end) = &self.may_end {
                    may_end.acquire().await.unwrap().forget();
                }
                let items = Vec::new();
                Ok(Objects { items, revision })
            };
            self.shared.read(of, None, read).await.unwrap().revision
        }
    }

    #[tokio::test]
    async fn who_asks_during_a_read_shares_the_next() {
        let store = Arc::new(Datastore {
            may_end: Some(Semaphore::new(0)),
            ..Datastore::default()
        });
        let first = tokio::spawn(Arc::clone(&store).list());
        while store.begun.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let others: Vec<_> = (0..20)
            .map(|_| tokio::spawn(Arc::clone(&store).list()))
            .collect();
        tokio::task::yield_now().await;
        store.may_end.as_ref().unwrap().add_permits(2);
        assert_eq!(first.await.unwrap(), 1);
        for other in others {
            assert_eq!(other.await.unwrap(), 2);
        }
        assert!(lock(&store.shared.reads).is_empty());
    }

    #[tokio::test]
    async fn a_reader_that_leaves_takes_nobody_along() {
        let store = Arc::new(Datastore {
            may_end: Some(Semaphore::new(0)),
            ..Datastore::default()
        });
        let leaving = tokio::spawn(Arc::clone(&store).list());
        while store.begun.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let staying = tokio::spawn(Arc::clone(&store).list());
        tokio::task::yield_now().await;
        leaving.abort();
        store.may_end.as_ref().unwrap().add_permits(1);
        assert_eq!(staying.await.unwrap(), 2);
    }
}

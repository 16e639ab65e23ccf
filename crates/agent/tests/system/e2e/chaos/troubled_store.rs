//! A datastore that fails its readers in the way it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use tokio::sync::watch;
use tortie_store::{
    Error, Key, Kind, List, Precondition, Query, Resource, Result, Revision, Store, Watch,
};

/// What readers meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// Nobody answers.
    Away,
    /// The kinds that decide about packets are not known, as behind a proxy that answers 404.
    Unknown,
    /// They may not be read, as with a role that was taken away.
    Forbidden,
    /// Answers come late.
    Slow,
    /// No revision is kept: everything must be listed again.
    Forgetful,
    /// The same, and every second list is empty.
    Empty,
}

/// Passes everything on, and fails as it is told to.
pub(crate) struct TroubledStore {
    inner: Arc<dyn Store>,
    trouble: watch::Sender<Trouble>,
    /// Counts lists, for those that are empty.
    lists: AtomicUsize,
}

impl TroubledStore {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            trouble: watch::Sender::new(Trouble::None),
            lists: AtomicUsize::new(0),
        }
    }

    /// Fails so from now on; all watches end.
    pub(crate) fn set(&self, trouble: Trouble) {
        self.trouble.send_replace(trouble);
    }

    async fn meet(&self, kind: Kind) -> Result<()> {
        let decides = matches!(
            kind,
            Kind::GlobalNetworkPolicy | Kind::Tier | Kind::WorkloadEndpoint | Kind::Profile
        );
        let trouble = *self.trouble.borrow();
        match trouble {
            Trouble::Away => Err(Error::Unavailable {
                message: "nobody answers".to_owned(),
                source: None,
            }),
            Trouble::Unknown if decides => Err(Error::message("404")),
            Trouble::Forbidden if decides => Err(Error::Unauthorized("403".to_owned())),
            Trouble::Slow => {
                tokio::time::sleep(Duration::from_millis(150)).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn is_empty_now(&self) -> bool {
        *self.trouble.borrow() == Trouble::Empty
            && self.lists.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
    }
}

#[async_trait]
impl Store for TroubledStore {
    async fn get(&self, key: &Key) -> Result<Resource> {
        self.meet(key.kind).await?;
        self.inner.get(key).await
    }

    async fn list(&self, query: &Query) -> Result<List> {
        self.meet(query.kind).await?;
        let mut list = self.inner.list(query).await?;
        if self.is_empty_now() {
            list.items.clear();
        }
        Ok(list)
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
        self.meet(query.kind).await?;
        let mut trouble = self.trouble.subscribe();
        let now = *trouble.borrow_and_update();
        if matches!(now, Trouble::Forgetful | Trouble::Empty) {
            return Err(Error::Gone(from.0.clone()));
        }
        let watch = self.inner.watch(query, from).await?;
        let end = async move {
            // An error says that the store is gone, and so is the test.
            let _ = trouble.changed().await;
        };
        Ok(watch.take_until(Box::pin(end)).boxed())
    }
}

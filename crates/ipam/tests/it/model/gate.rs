//! A datastore in front of another, at which a process can be stopped before any of its operations.

use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tortie_store::{
    Error, Key, List, Precondition, Query, Resource, Result, Revision, Store, Watch, Write,
};

pub(crate) struct Gate {
    inner: Arc<dyn Store>,
    /// Whether several objects can be written at once.
    together: bool,
    /// How many operations are let through.
    left: AtomicUsize,
    is_closed: AtomicBool,
    /// Operations on their way.
    under_way: AtomicUsize,
}

impl Gate {
    pub(crate) fn new(inner: Arc<dyn Store>, together: bool, operations: usize) -> Self {
        Self {
            inner,
            together,
            left: AtomicUsize::new(operations),
            is_closed: AtomicBool::new(false),
            under_way: AtomicUsize::new(0),
        }
    }

    /// Waits until the process stands before the closed gate with all it does. What it sent before has arrived: a process
    /// that is killed does not send anything later either.
    pub(crate) async fn stopped(&self) {
        while !self.is_closed.load(Ordering::SeqCst) || self.under_way.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn through<T>(&self, operation: impl Future<Output = T>) -> T {
        self.pass().await;
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let result = operation.await;
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// How many operations were let through.
    pub(crate) fn passed(&self) -> usize {
        usize::MAX - self.left.load(Ordering::Relaxed)
    }

    /// Lets others go first, and never comes back once the gate is closed.
    async fn pass(&self) {
        yield_once().await;
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        if left.is_err() {
            self.is_closed.store(true, Ordering::SeqCst);
            pending::<()>().await;
        }
    }
}

async fn yield_once() {
    let mut is_first = true;
    std::future::poll_fn(|context| {
        if std::mem::take(&mut is_first) {
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
}

#[async_trait]
impl Store for Gate {
    async fn get(&self, key: &Key) -> Result<Resource> {
        self.through(self.inner.get(key)).await
    }

    fn reads_many_at_once(&self) -> bool {
        self.together
    }

    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Result<Resource>>> {
        self.through(self.inner.get_many(keys)).await
    }

    async fn revisions(&self, keys: &[Key]) -> Result<Vec<Option<Revision>>> {
        self.through(self.inner.revisions(keys)).await
    }

    async fn list(&self, query: &Query) -> Result<List> {
        self.through(self.inner.list(query)).await
    }

    async fn list_affinities(&self, owner: &str) -> Result<List> {
        self.through(self.inner.list_affinities(owner)).await
    }

    async fn create(&self, resource: Resource) -> Result<Resource> {
        self.through(self.inner.create(resource)).await
    }

    async fn update(&self, resource: Resource) -> Result<Resource> {
        self.through(self.inner.update(resource)).await
    }

    async fn delete(&self, key: &Key, precondition: &Precondition) -> Result<Resource> {
        self.through(self.inner.delete(key, precondition)).await
    }

    async fn write_together(&self, writes: Vec<Write>) -> Result<Vec<Resource>> {
        if self.together {
            return self.through(self.inner.write_together(writes)).await;
        }
        self.pass().await;
        Err(Error::Unsupported {
            operation: "write together",
            key: writes[0].key(),
            reason: "as Kubernetes".to_owned(),
        })
    }

    async fn watch(&self, query: &Query, from: &Revision) -> Result<Watch> {
        self.inner.watch(query, from).await
    }
}

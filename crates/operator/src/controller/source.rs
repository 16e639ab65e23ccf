//! Where a controller's keys come from.

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};

use crate::cache::{Cache, Change, Event};
use crate::key::ObjectKey;
use crate::object::Object;
use crate::queue::{Key, Queue};

/// Adds the keys of all that is there.
pub(super) type Resync<Q> = Box<dyn Fn(&Queue<Q>) + Send>;

/// Something that adds keys to a queue.
pub(super) trait Source<Q: Key>: Send {
    /// Waits until what is there at the start is known.
    fn wait_synced(&self) -> BoxFuture<'static, ()>;

    /// Something that adds the keys of all that is there, if that is known.
    fn resync(&self) -> Option<Resync<Q>>;

    /// Adds keys until it is dropped.
    fn run(self: Box<Self>, queue: Queue<Q>) -> BoxFuture<'static, ()>;
}

/// Which keys a change of an object is about.
type Map<K, Q> = std::sync::Arc<dyn Fn(&ObjectKey, &K) -> Vec<Q> + Send + Sync>;

pub(super) type Predicate<K> = Box<dyn Fn(Option<&K>, Option<&K>) -> bool + Send + Sync>;

/// The changes of a cache.
pub(super) struct CacheSource<K, Q> {
    pub(super) cache: Cache<K>,
    pub(super) map: Map<K, Q>,
    /// All have to agree.
    pub(super) predicates: Vec<Predicate<K>>,
}

impl<K: Object, Q: Key> CacheSource<K, Q> {
    fn take(&self, event: &Event<K>, queue: &Queue<Q>) {
        let old = event.before.as_deref();
        let new = event.after().map(AsRef::as_ref);
        if !self.predicates.iter().all(|predicate| predicate(old, new)) {
            return;
        }
        let (Change::Applied(last) | Change::Deleted(last)) = &event.change;
        // Also what it was about before: its owner, say, may have changed.
        for object in old.into_iter().chain([last.as_ref()]) {
            for key in (self.map)(&event.key, object) {
                queue.add(key);
            }
        }
    }
}

impl<K: Object, Q: Key> Source<Q> for CacheSource<K, Q> {
    fn wait_synced(&self) -> BoxFuture<'static, ()> {
        let cache = self.cache.clone();
        async move { cache.wait_synced().await }.boxed()
    }

    fn resync(&self) -> Option<Resync<Q>> {
        let (cache, map) = (self.cache.clone(), std::sync::Arc::clone(&self.map));
        Some(Box::new(move |queue| {
            for object in cache.list() {
                for key in map(&ObjectKey::of(object.as_ref()), &object) {
                    queue.add(key);
                }
            }
        }))
    }

    fn run(self: Box<Self>, queue: Queue<Q>) -> BoxFuture<'static, ()> {
        async move {
            let mut changes = self.cache.subscribe();
            while let Some(event) = changes.next().await {
                self.take(&event, &queue);
            }
        }
        .boxed()
    }
}

/// Keys that come from elsewhere.
pub(super) struct StreamSource<Q>(pub(super) BoxStream<'static, Q>);

impl<Q: Key> Source<Q> for StreamSource<Q> {
    fn wait_synced(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn resync(&self) -> Option<Resync<Q>> {
        None
    }

    fn run(mut self: Box<Self>, queue: Queue<Q>) -> BoxFuture<'static, ()> {
        async move {
            while let Some(key) = self.0.next().await {
                queue.add(key);
            }
        }
        .boxed()
    }
}

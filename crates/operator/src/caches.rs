//! All caches of a process: one for each type and its options.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use kube::Resource as _;

use crate::cache::{Cache, CacheOptions};
use crate::object::Object;

/// What makes two caches of a type the same.
#[derive(PartialEq, Eq, Hash)]
struct Identity {
    object: TypeId,
    trim: Option<usize>,
    labels: Option<String>,
    fields: Option<String>,
    namespace: Option<String>,
}

pub(crate) struct Caches {
    client: kube::Client,
    known: Mutex<HashMap<Identity, Box<dyn AnyCache>>>,
}

/// A cache of any type.
trait AnyCache: Send {
    fn as_any(&self) -> &dyn Any;
    fn kind(&self) -> String;
    fn is_synced(&self) -> bool;
    fn wait_synced(&self) -> BoxFuture<'static, ()>;
}

impl<K: Object> AnyCache for Cache<K> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kind(&self) -> String {
        K::Kind::kind(&()).into_owned()
    }

    fn is_synced(&self) -> bool {
        self.synced()
    }

    fn wait_synced(&self) -> BoxFuture<'static, ()> {
        let cache = self.clone();
        async move { cache.wait_synced().await }.boxed()
    }
}

impl Caches {
    pub(crate) fn new(client: kube::Client) -> Arc<Self> {
        Arc::new(Self {
            client,
            known: Mutex::default(),
        })
    }

    /// The cache, started unless it is there already.
    pub(crate) fn get<K: Object>(&self, options: CacheOptions<K>) -> Cache<K> {
        let identity = Identity {
            object: TypeId::of::<K>(),
            trim: options.trim.map(|trim| trim as usize),
            labels: options.labels.clone(),
            fields: options.fields.clone(),
            namespace: options.namespace.clone(),
        };
        let mut known = self.lock();
        let found = known
            .get(&identity)
            .and_then(|cache| cache.as_any().downcast_ref());
        if let Some(cache) = found {
            return Cache::clone(cache);
        }
        let cache = Cache::start(self.client.clone(), options);
        known.insert(identity, Box::new(cache.clone()));
        cache
    }

    pub(crate) async fn wait_synced(&self) {
        let all: Vec<_> = self
            .lock()
            .values()
            .map(|cache| cache.wait_synced())
            .collect();
        join_all(all).await;
    }

    /// The kinds that were not listed completely yet.
    pub(crate) fn unsynced(&self) -> Vec<String> {
        let known = self.lock();
        let behind = known.values().filter(|cache| !cache.is_synced());
        behind.map(|cache| cache.kind()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Identity, Box<dyn AnyCache>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.lock().values().map(|cache| cache.kind()).collect();
        f.debug_tuple("Caches").field(&kinds).finish()
    }
}

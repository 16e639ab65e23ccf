//! Describes a controller: what it is about, what else it follows, and how it works.

use std::any::TypeId;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::FutureExt as _;
use futures::stream::{Stream, StreamExt as _};
use k8s_openapi::ClusterResourceScope;
use kube::Resource;

use super::source::{CacheSource, Source, StreamSource};
use super::{Controller, Settings, worker};
use crate::cache::CacheOptions;
use crate::key::ObjectKey;
use crate::manager::Shared;
use crate::object::{Object, Owner};
use crate::queue::{Backoff, Key, Queue, Rate};
use crate::reconcile::Reconciler;

/// The description of a controller with keys `Q`. `L` is what was described last, for [`Builder::when`].
pub struct Builder<Q: Key, L> {
    manager: Arc<Shared>,
    settings: Settings,
    backoff: Backoff,
    rate: Option<Rate>,
    sources: Vec<Box<dyn Source<Q>>>,
    /// The kind that the controller is for, which objects have to be owned by.
    owner: Arc<OnceLock<OwnerKind>>,
    needs_owner: bool,
    last: L,
}

/// Nothing that [`Builder::when`] could be said of.
#[derive(Debug)]
pub struct Start(());

/// The changes of objects `K`.
pub struct Watching<K, Q>(CacheSource<K, Q>);

#[derive(Clone, Copy)]
struct OwnerKind {
    is_it: fn(&Owner<'_>) -> bool,
    is_namespaced: bool,
}

/// What was described last.
trait Last<Q> {
    fn into_source(self) -> Option<Box<dyn Source<Q>>>;
}

impl<Q> Last<Q> for Start {
    fn into_source(self) -> Option<Box<dyn Source<Q>>> {
        None
    }
}

impl<K: Object, Q: Key> Last<Q> for Watching<K, Q> {
    fn into_source(self) -> Option<Box<dyn Source<Q>>> {
        Some(Box::new(self.0))
    }
}

impl<Q: Key> Builder<Q, Start> {
    pub(super) fn new(name: String, manager: Arc<Shared>) -> Self {
        Self {
            manager,
            backoff: Backoff::default(),
            rate: Some(Rate::default()),
            settings: Settings {
                name,
                workers: 1,
                max_retries: None,
                resync: None,
            },
            sources: Vec::new(),
            owner: Arc::default(),
            needs_owner: false,
            last: Start(()),
        }
    }
}

#[expect(
    private_bounds,
    reason = "only the two types here can be described last"
)]
impl<Q: Key, L: Last<Q>> Builder<Q, L> {
    /// Reconciles objects of this kind: each change of one adds its key.
    pub fn for_<K: Object>(self) -> Builder<Q, Watching<K, Q>>
    where
        Q: From<ObjectKey>,
    {
        self.for_with(CacheOptions::<K>::default())
    }

    /// The same from a cache with options.
    pub fn for_with<K: Object>(self, options: CacheOptions<K>) -> Builder<Q, Watching<K, Q>>
    where
        Q: From<ObjectKey>,
    {
        let scope = TypeId::of::<<K::Kind as Resource>::Scope>();
        // The first kind is the one; a second `for_` is one more to reconcile.
        let _ = self.owner.set(OwnerKind {
            is_it: |owner| owner.is_a::<K>(),
            is_namespaced: scope != TypeId::of::<ClusterResourceScope>(),
        });
        self.follow(options, |key, _| vec![Q::from(key.clone())])
    }

    /// Follows objects that those of [`Builder::for_`] own: each change of one adds the key of the owner that controls it.
    pub fn owns<K: Object>(self) -> Builder<Q, Watching<K, Q>>
    where
        Q: From<ObjectKey>,
    {
        self.owns_with(CacheOptions::<K>::default())
    }

    /// The same from a cache with options.
    pub fn owns_with<K: Object>(mut self, options: CacheOptions<K>) -> Builder<Q, Watching<K, Q>>
    where
        Q: From<ObjectKey>,
    {
        self.needs_owner = true;
        let kind = Arc::clone(&self.owner);
        self.follow(options, move |key, object: &K| {
            let Some((owner, kind)) = object.controller().zip(kind.get()) else {
                return Vec::new();
            };
            if !(kind.is_it)(&owner) {
                return Vec::new();
            }
            let namespace = key.namespace.clone().filter(|_| kind.is_namespaced);
            let owner = ObjectKey {
                namespace,
                name: owner.name.into(),
            };
            vec![Q::from(owner)]
        })
    }

    /// Follows objects of this kind: each change of one adds the keys that a function gives for it.
    pub fn watches<K: Object>(
        self,
        map: impl Fn(&K) -> Vec<Q> + Send + Sync + 'static,
    ) -> Builder<Q, Watching<K, Q>> {
        self.watches_with(CacheOptions::default(), map)
    }

    /// The same from a cache with options.
    pub fn watches_with<K: Object>(
        self,
        options: CacheOptions<K>,
        map: impl Fn(&K) -> Vec<Q> + Send + Sync + 'static,
    ) -> Builder<Q, Watching<K, Q>> {
        self.follow(options, move |_, object| map(object))
    }

    /// Adds keys that come from elsewhere: another datastore's changes, a timer.
    pub fn source(self, keys: impl Stream<Item = Q> + Send + 'static) -> Builder<Q, Start> {
        let mut next = self.then(Start(()));
        next.sources.push(Box::new(StreamSource(keys.boxed())));
        next
    }

    /// How many keys are reconciled at a time: one, unless said otherwise.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.settings.workers = workers.max(1);
        self
    }

    /// How long a key waits after each failure.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// How many keys are tried again per second, all together.
    #[must_use]
    pub fn rate(mut self, rate: Option<Rate>) -> Self {
        self.rate = rate;
        self
    }

    /// After how many failures a key is given up until something changes: never, unless said otherwise.
    #[must_use]
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.settings.max_retries = Some(retries);
        self
    }

    /// How often the keys of all objects that are followed are added again.
    #[must_use]
    pub fn resync(mut self, every: Duration) -> Self {
        self.settings.resync = Some(every);
        self
    }

    /// The controller, with what it does.
    pub fn reconciler<R: Reconciler<Key = Q>>(self, reconciler: R) -> Controller {
        let done = self.then(Start(()));
        let problem = (done.needs_owner && done.owner.get().is_none()).then(|| {
            let name = &done.settings.name;
            format!("controller `{name}` owns objects but is for no kind: add `for_`")
        });
        let metrics = done.manager.metrics();
        let queue =
            Queue::with_metrics(done.backoff, done.rate, metrics.queue(&done.settings.name));
        let figures = metrics.controller(&done.settings.name);
        let measured = queue.clone();
        done.manager.before_metrics(move || measured.measure());
        let (settings, sources) = (done.settings, done.sources);
        Controller {
            name: settings.name.clone(),
            problem,
            run: Box::new(move |running| {
                worker::run(
                    settings,
                    sources,
                    queue,
                    Arc::new(reconciler),
                    figures,
                    running,
                )
                .boxed()
            }),
        }
    }

    fn follow<K: Object>(
        self,
        options: CacheOptions<K>,
        map: impl Fn(&ObjectKey, &K) -> Vec<Q> + Send + Sync + 'static,
    ) -> Builder<Q, Watching<K, Q>> {
        let cache = self.manager.caches().get(options);
        self.then(Watching(CacheSource {
            cache,
            map: Arc::new(map),
            predicates: Vec::new(),
        }))
    }

    fn then<N>(self, last: N) -> Builder<Q, N> {
        let mut sources = self.sources;
        sources.extend(self.last.into_source());
        Builder {
            manager: self.manager,
            settings: self.settings,
            backoff: self.backoff,
            rate: self.rate,
            sources,
            owner: self.owner,
            needs_owner: self.needs_owner,
            last,
        }
    }
}

impl<Q: Key, K: Object> Builder<Q, Watching<K, Q>> {
    /// Narrows what was described last to changes that a function of the object before and after accepts: nothing
    /// before it was made, nothing after it is gone. Several all have to accept.
    #[must_use]
    pub fn when(
        mut self,
        predicate: impl Fn(Option<&K>, Option<&K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.last.0.predicates.push(Box::new(predicate));
        self
    }
}

impl<Q: Key, L> fmt::Debug for Builder<Q, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<K, Q> fmt::Debug for Watching<K, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watching")
            .field(&self.0.predicates.len())
            .finish()
    }
}

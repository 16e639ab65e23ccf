//! Holds together what an operator's process needs: caches, controllers, leadership, endpoints.

mod endpoints;
mod run;

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use prometheus_client::registry::Registry;

use crate::cache::{Cache, CacheOptions};
use crate::caches::Caches;
use crate::client::Client;
use crate::controller::Controller;
use crate::leadership::Leadership;
use crate::lease::LeaderElection;
use crate::metrics::Metrics;
use crate::object::Object;
use crate::reconcile::BoxError;
use crate::webhook::WebhookServer;

/// Says whether something is well, and if not, what is wrong.
type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

type Runnable = BoxFuture<'static, Result<(), BoxError>>;

type LeaderRunnable = Box<dyn FnOnce(Leadership) -> Runnable + Send>;

/// An operator's process: starts everything in order, and ends it in order.
pub struct Manager {
    shared: Arc<Shared>,
    settings: ManagerBuilder,
    parts: Mutex<Parts>,
}

/// What is to be run.
#[derive(Default)]
struct Parts {
    controllers: Vec<Controller>,
    always: Vec<(String, Runnable)>,
    as_leader: Vec<(String, LeaderRunnable)>,
}

/// What controllers and endpoints share.
pub(crate) struct Shared {
    client: kube::Client,
    caches: Arc<Caches>,
    metrics: Arc<Metrics>,
    registry: Mutex<Registry>,
    /// Bring figures up to date that are only looked at when they are asked for.
    before_metrics: Mutex<Vec<Box<dyn Fn() + Send + Sync>>>,
    health: Mutex<Vec<(String, Check)>>,
    readiness: Mutex<Vec<(String, Check)>>,
}

/// The settings of a [`Manager`].
pub struct ManagerBuilder {
    client: kube::Client,
    leader_election: Option<LeaderElection>,
    health: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
    webhooks: Option<WebhookServer>,
    patience: Duration,
}

// === impl ManagerBuilder ===

impl ManagerBuilder {
    /// Controllers run in one process at a time.
    #[must_use]
    pub fn leader_election(mut self, settings: LeaderElection) -> Self {
        self.leader_election = Some(settings);
        self
    }

    /// Serves `/healthz` and `/readyz`, also as `/liveness` and `/readiness`.
    #[must_use]
    pub fn health(mut self, address: SocketAddr) -> Self {
        self.health = Some(address);
        self
    }

    /// Serves `/metrics`. It may be the address of the health endpoints.
    #[must_use]
    pub fn metrics(mut self, address: SocketAddr) -> Self {
        self.metrics = Some(address);
        self
    }

    /// Serves admission webhooks, in every process, whether it leads or not.
    #[must_use]
    pub fn webhooks(mut self, server: WebhookServer) -> Self {
        self.webhooks = Some(server);
        self
    }

    /// How long keys that are being reconciled may take at a shutdown: 30 seconds, unless said otherwise.
    #[must_use]
    pub fn shutdown_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The manager. Needs a tokio runtime, like its client.
    pub fn build(self) -> Manager {
        let mut registry = Registry::default();
        let metrics = Arc::new(Metrics::register(&mut registry));
        let shared = Shared {
            client: self.client.clone(),
            caches: Caches::new(self.client.clone()),
            metrics,
            registry: Mutex::new(registry),
            before_metrics: Mutex::default(),
            health: Mutex::default(),
            readiness: Mutex::default(),
        };
        Manager {
            shared: Arc::new(shared),
            settings: self,
            parts: Mutex::default(),
        }
    }
}

impl fmt::Debug for ManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerBuilder")
            .field("leader_election", &self.leader_election)
            .field("health", &self.health)
            .field("metrics", &self.metrics)
            .field("webhooks", &self.webhooks)
            .finish_non_exhaustive()
    }
}

// === impl Manager ===

impl Manager {
    /// Begins a manager's settings.
    pub fn builder(client: kube::Client) -> ManagerBuilder {
        ManagerBuilder {
            client,
            leader_election: None,
            health: None,
            metrics: None,
            webhooks: None,
            patience: Duration::from_secs(30),
        }
    }

    /// The cache of all objects of a type. All who ask for the same type share one watch and one copy.
    pub fn cache<K: Object>(&self) -> Cache<K> {
        self.cache_with(CacheOptions::default())
    }

    /// The cache of a type with options. The same type with the same options is the same cache.
    pub fn cache_with<K: Object>(&self, options: CacheOptions<K>) -> Cache<K> {
        self.shared.caches.get(options)
    }

    /// A client that reads from the caches and writes to the API server.
    pub fn client(&self) -> Client {
        Client::new(self.shared.client.clone(), Arc::clone(&self.shared.caches))
    }

    /// Adds a controller. It runs while this process leads.
    pub fn add(&self, controller: Controller) {
        lock(&self.parts).controllers.push(controller);
    }

    /// Adds a future that runs once the caches are filled, whether this process leads or not. It is dropped at the end.
    /// Its failure ends the manager; it may end well at any time.
    pub fn run_always<F>(&self, name: impl Into<String>, future: F)
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        lock(&self.parts).always.push((name.into(), future.boxed()));
    }

    /// Adds a future that runs while this process leads. It is dropped at the end, and before another process can lead.
    /// Its failure ends the manager; it may end well at any time.
    pub fn run_as_leader<F>(
        &self,
        name: impl Into<String>,
        start: impl FnOnce(Leadership) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let start: LeaderRunnable = Box::new(move |leadership| start(leadership).boxed());
        lock(&self.parts).as_leader.push((name.into(), start));
    }

    /// Adds a check to the health endpoint: if it fails, the process should be started anew.
    pub fn add_check(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        lock(&self.shared.health).push((name.into(), Box::new(check)));
    }

    /// Adds a check to the readiness endpoint. That the caches are filled is checked already.
    pub fn add_ready_check(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        lock(&self.shared.readiness).push((name.into(), Box::new(check)));
    }

    /// Registers metrics of one's own.
    pub fn registry<T>(&self, register: impl FnOnce(&mut Registry) -> T) -> T {
        register(&mut lock(&self.shared.registry))
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("settings", &self.settings)
            .field("caches", &self.shared.caches)
            .finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn caches(&self) -> &Caches {
        &self.caches
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn before_metrics(&self, measure: impl Fn() + Send + Sync + 'static) {
        lock(&self.before_metrics).push(Box::new(measure));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

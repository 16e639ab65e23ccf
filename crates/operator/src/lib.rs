//! A small framework for Kubernetes controllers.
//!
//! A [`Manager`] holds an operator's process together: caches that are shared by all who read a kind, leader election by
//! a Lease, health, readiness and metrics endpoints, and admission webhooks. A [`Reconciler`] brings about what is wanted
//! for one key. A [`Controller`] joins the two with a work [`Queue`].
//!
//! ```no_run
//! use k8s_openapi::api::apps::v1::Deployment;
//! use k8s_openapi::api::core::v1::{ConfigMap, Pod};
//! use tortie_operator::{
//!     Action, Client, Controller, Failure, LeaderElection, Manager, ObjectKey, Reconciler, generation_changed,
//! };
//!
//! struct CountPods {
//!     client: Client,
//! }
//!
//! impl Reconciler for CountPods {
//!     type Key = ObjectKey;
//!
//!     async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
//!         let Some(deployment) = self.client.get::<Deployment>(key).await else {
//!             return Ok(Action::Done);
//!         };
//!         let pods = self.client.list_in::<Pod>(key.namespace.as_deref().unwrap_or_default()).await;
//!         let mut counts = ConfigMap::default();
//!         counts.metadata.name = deployment.metadata.name.clone();
//!         counts.metadata.namespace = deployment.metadata.namespace.clone();
//!         counts.data = Some([("pods".to_owned(), pods.len().to_string())].into());
//!         self.client.apply("count-pods", &counts).await?;
//!         Ok(Action::Done)
//!     }
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let manager = Manager::builder(kube::Client::try_default().await?)
//!     .leader_election(LeaderElection::new("kube-system", "count-pods"))
//!     .health(([0, 0, 0, 0], 8081).into())
//!     .metrics(([0, 0, 0, 0], 8080).into())
//!     .build();
//! let controller = Controller::builder("count-pods", &manager)
//!     .for_::<Deployment>()
//!     .when(generation_changed())
//!     .owns::<ConfigMap>()
//!     .watches::<Pod>(|pod| {
//!         let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
//!         let app = pod.metadata.labels.as_ref().and_then(|labels| labels.get("app"));
//!         app.map(|app| ObjectKey::new(namespace, app.as_str())).into_iter().collect()
//!     })
//!     .workers(2)
//!     .reconciler(CountPods { client: manager.client() });
//! manager.add(controller);
//! manager.run_until_signal().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where to start
//! - [`Manager`] and [`Controller::builder`]: what is followed, and who works on it. [`Manager::client`] reads from caches.
//! - [`Cache`] and [`Subscription`]: for what is no controller. [`Queue`]: for what has keys of its own.
//! - [`Object`]: what a cache can hold: any `kube::Resource`, or a [`trimmed!`] type. Where its methods and those of
//!   `kube::ResourceExt` are both in scope, [`ObjectKey::of`] says which object it is.
//! - [`Custom`]: kinds of one's own, with their definition, without a derive macro.
//! - [`WebhookServer`]: admission. [`LeaderElection`] and [`Leadership`]: one process at a time.
//!
//! A complete operator is in `examples/operator`; `tortie operator new` writes one with other names.
//!
//! # Memory
//! A cache holds what its type decodes. [`trimmed!`] defines types with only the fields that are used, and
//! [`CacheOptions::trim`] empties fields of others. Lists are read in pages, so that at no time there is more than one
//! page beside what is kept. Ten controllers that watch one type cost one watch and one copy.
//!
//! # Leadership
//! [`Leadership`] is a permission that ends by itself, before another process can have it. Workers check it before each
//! step of a reconciliation, and drop the reconciliation when it ends. What was sent to the API server before stays sent:
//! a write that must not come late has to carry a resource version.
//!
//! # Limits
//! Kinds are known when the program is built: `kube::core::DynamicObject` cannot be cached.

pub mod webhook;

mod cache;
mod caches;
mod client;
mod controller;
mod custom;
mod error;
mod key;
mod leadership;
mod lease;
mod manager;
mod metrics;
mod object;
mod own_namespace;
mod queue;
mod reconcile;
mod signal;
mod trimmed;

pub use cache::{Cache, CacheOptions, Change, Event, Subscription};
pub use client::{Client, Writable};
pub use controller::{
    Builder, Controller, Start, Watching, annotations_changed, generation_changed, labels_changed,
};
pub use custom::{Custom, CustomKind};
pub use error::{Error, Result};
pub use key::ObjectKey;
pub use leadership::{Leadership, LeadershipLost};
pub use lease::LeaderElection;
pub use manager::{Manager, ManagerBuilder};
pub use object::{Object, Owner};
pub use own_namespace::own_namespace;
pub use queue::{Backoff, Key, Queue, QueueOptions, Rate};
pub use reconcile::{Action, BoxError, Failure, Reconciler};
pub use signal::shutdown as shutdown_signal;
pub use trimmed::{Controlling, Labels, Meta};
pub use webhook::WebhookServer;

/// For the code of [`trimmed!`].
#[doc(hidden)]
pub use serde;

//! Moves a cluster's resources from the older group of custom resources, which an aggregated API server stands in front of,
//! to the newer one, which users write to directly. A `DatastoreMigration` named `v1-to-v3` asks for it and tells how far
//! it has come; deleting it before the end undoes everything.
//!
//! ```text
//! Pending ─▶ Migrating ─▶ Converged ─▶ Complete        deleted: the older definitions go
//!    ▲  └────┐   │            └ components must use the newer group
//!    │       ▼   ▼
//!    └── WaitingForConflictResolution                  deleted before Converged: everything is undone
//! ```
//!
//! # Invariants
//! - Nothing is copied while anybody may write to the older group: it is locked first, and stays so.
//! - What is in the newer group already is never overwritten.
//! - Each step can be done again: whoever stops anywhere goes on from the phase that was noted.

mod api_service;
mod controller;
mod copy;
mod definition;
mod installation;
mod locks;
mod metrics;
mod object;
mod phase;
#[cfg(test)]
mod tests;
mod undo;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use prometheus_client::registry::Registry;
use tortie_store::Store;

pub use self::definition::definition;

use self::controller::Controller;
use self::metrics::Metrics;

/// What the controller is told.
#[derive(Clone)]
pub struct Settings {
    /// The older group.
    pub v1: Arc<dyn Store>,
    /// The newer group of the same cluster.
    pub v3: Arc<dyn Store>,
    /// Where the components run.
    pub namespace: String,
    /// How often to look while something is awaited.
    pub poll: Duration,
    /// How long writes that were under way when the datastore was locked may take.
    pub drain: Duration,
}

impl Settings {
    /// With the usual times.
    pub fn new(v1: Arc<dyn Store>, v3: Arc<dyn Store>, namespace: impl Into<String>) -> Self {
        Self {
            v1,
            v3,
            namespace: namespace.into(),
            poll: Duration::from_secs(10),
            drain: Duration::from_secs(10),
        }
    }
}

/// Carries out migrations that are asked for. Ends when one is complete and this process must start anew to use the newer
/// group; where an operator looks after the installation, it never does.
pub fn run(
    client: Client,
    settings: Settings,
    registry: &mut Registry,
) -> impl Future<Output = ()> + Send + use<> {
    let metrics = Metrics::register(registry);
    Controller::new(client, settings, metrics).run()
}

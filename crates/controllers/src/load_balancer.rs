//! Gives addresses to services of type `LoadBalancer`, from pools that are for that, and takes them back.
//!
//! ```text
//! services, namespaces ──caches──┐                          ┌─▶ ipam: release, assign
//!                                ├─▶ ledger ─▶ plan (pure) ─┤
//! pools, blocks ──feed───────────┘                          └─▶ status of the service
//! ```
//!
//! # Invariants
//! - A service never has two addresses of one IP version: address management itself gives the first again.
//! - Addresses that Calico did not give are not touched; neither are services of other load balancers.
//! - Nothing is decided before all blocks are known.

mod controller;
mod ledger;
mod plan;
mod service;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kube::Client;
use tortie_api::kube_controllers_configuration::AssignIps;
use tortie_operator::{Cache, CacheOptions, Manager};
use tortie_store::Store;

pub use self::service::{
    CachedNamespace, CachedService, Ingress, LoadBalancer, ServiceSpec, ServiceStatus,
};

use self::controller::Controller;

/// Adds the controller. It runs while the process leads.
pub fn add(manager: &Manager, cluster: &Client, store: Arc<dyn Store>, assign: AssignIps) {
    let (services, namespaces) = (manager.cache_with(service_options()), manager.cache());
    let managing = manage(cluster.clone(), services, namespaces, store, assign);
    manager.run_as_leader("LoadBalancer", |_| async {
        managing.await;
        Ok(())
    });
}

/// What the services' cache keeps.
pub fn service_options() -> CacheOptions<CachedService> {
    CacheOptions {
        trim: Some(CachedService::trim),
        ..CacheOptions::default()
    }
}

/// Manages services until the future is dropped.
pub fn manage(
    client: Client,
    services: Cache<CachedService>,
    namespaces: Cache<CachedNamespace>,
    store: Arc<dyn Store>,
    assign: AssignIps,
) -> impl Future<Output = ()> + Send {
    Controller::new(client, services, namespaces, store, assign).run()
}

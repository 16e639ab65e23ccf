//! A server that needs no cluster: Calico's resources and Kubernetes' own objects in the embedded store.

use std::net::Ipv4Addr;
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net};
use tortie_client::Client;
use tortie_store::embedded::EmbeddedStore;

use crate::access::Roles;
use crate::custom::Definitions;
use crate::failure::{Failure, Reason, Result};
use crate::registry::Registry;
use crate::service::Service;
use crate::storage::{
    CalicoStorage, DefinitionStorage, DocumentStorage, RoleStorage, ServiceStorage,
    StandaloneStorage,
};

/// What a store holds, and who may do what with it.
pub struct Standalone {
    /// The objects.
    pub service: Arc<Service>,
    /// The rights by the roles and bindings among them.
    pub roles: Arc<Roles>,
}

/// The network of services' addresses if none is given: Kubernetes' own.
pub const SERVICE_NETWORK: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), 12);

/// Opens what a store holds, and makes what every server has.
pub async fn open(store: &Arc<EmbeddedStore>) -> Result<Standalone> {
    open_with(store, SERVICE_NETWORK.into()).await
}

/// The same, with another network of services' addresses.
pub async fn open_with(store: &Arc<EmbeddedStore>, service_network: IpNet) -> Result<Standalone> {
    // Earlier versions had controllers that copied Kubernetes' objects to resources.
    let copies = store.remove_copies().await;
    copies.map_err(|error| {
        let message = format!("copies of policies and profiles cannot be removed: {error}");
        Failure::new(Reason::Internal, message)
    })?;
    let client = Client::new(Arc::clone(store) as _);
    let calico = CalicoStorage::new(client);
    let definitions = Arc::new(Definitions::default());
    let native = DocumentStorage::new(store.documents());
    let native = native.with_definitions(Arc::clone(&definitions));
    let defined = DefinitionStorage::open(native.clone(), Arc::clone(&definitions)).await?;
    let roles = Arc::new(Roles::default());
    let kept = RoleStorage::open(native.clone(), Arc::clone(&roles)).await?;
    let services = ServiceStorage::open(native.clone(), service_network).await?;
    let storage = StandaloneStorage::new(calico, native, kept, services, defined);
    let registry = Registry::standalone().with_definitions(definitions);
    let service = Service::new(registry, Arc::new(storage));
    service.prepare_namespaces().await?;
    service.prepare_roles().await?;
    Ok(Standalone { service, roles })
}

//! A server that needs no cluster: Calico's resources and Kubernetes' own objects in the embedded store.

use std::sync::Arc;

use tortie_store::Client;
use tortie_store::embedded::EmbeddedStore;

use crate::access::Roles;
use crate::failure::Result;
use crate::registry::Registry;
use crate::service::Service;
use crate::storage::{CalicoStorage, DocumentStorage, RoleStorage, StandaloneStorage};

/// What a store holds, and who may do what with it.
pub struct Standalone {
    /// The objects.
    pub service: Arc<Service>,
    /// The rights by the roles and bindings among them.
    pub roles: Arc<Roles>,
}

/// Opens what a store holds, and makes what every server has.
pub async fn open(store: &Arc<EmbeddedStore>) -> Result<Standalone> {
    let client = Client::new(Arc::clone(store) as _);
    let calico = CalicoStorage::new(client);
    let native = DocumentStorage::new(store.documents());
    let roles = Arc::new(Roles::default());
    let kept = RoleStorage::open(native.clone(), Arc::clone(&roles)).await?;
    let storage = StandaloneStorage::new(calico, native, kept);
    let service = Service::new(Registry::standalone(), Arc::new(storage));
    service.prepare_namespaces().await?;
    service.prepare_roles().await?;
    Ok(Standalone { service, roles })
}

//! A server that needs no cluster: Calico's resources and Kubernetes' own objects in the embedded store.

use std::sync::Arc;

use tortie_store::Client;
use tortie_store::embedded::EmbeddedStore;

use crate::failure::Result;
use crate::registry::Registry;
use crate::service::Service;
use crate::storage::{CalicoStorage, DocumentStorage, StandaloneStorage};

/// Opens what a store holds, and makes what every server has.
pub async fn open(store: &Arc<EmbeddedStore>) -> Result<Arc<Service>> {
    let client = Client::new(Arc::clone(store) as _);
    let calico = CalicoStorage::new(client);
    let native = DocumentStorage::new(store.documents());
    let storage = StandaloneStorage::new(calico, native);
    let service = Service::new(Registry::standalone(), Arc::new(storage));
    service.prepare_namespaces().await?;
    Ok(service)
}

//! Keeps a default-deny network policy in every namespace that a `NamespaceBaseline` selects.
//!
//! - [`resource`]: the kind, from which the definition in `config/crd` is generated.
//! - [`reconcile`]: what is done for one object.
//! - [`admission`]: what the API server asks before it stores one.

pub mod admission;
pub mod reconcile;
pub mod resource;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use tortie_operator::{Controller, Manager, WebhookServer, generation_changed, labels_changed};

use crate::reconcile::Reconcile;
use crate::resource::NamespaceBaseline;

/// The name of the controller, and of the lease.
pub const NAME: &str = "namespace-baseline";

pub fn add_controller(manager: &Manager) {
    let known = manager.cache::<NamespaceBaseline>();
    let controller = Controller::builder(NAME, manager)
        .for_::<NamespaceBaseline>()
        .when(generation_changed())
        .owns::<NetworkPolicy>()
        // A namespace whose labels change may be selected by any of them.
        .watches::<Namespace>(move |_| known.keys())
        .when(labels_changed())
        .workers(2)
        .reconciler(Reconcile::new(manager));
    manager.add(controller);
}

pub fn add_webhooks(server: WebhookServer) -> WebhookServer {
    server
        .mutate::<NamespaceBaseline, _>("/mutate", admission::complete)
        .validate::<NamespaceBaseline, _>("/validate", admission::check)
}

//! Keeps the endpoint slices of services that select pods.

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use tortie_operator::{
    Action, Cache, Controller, Failure, Manager, Object as _, ObjectKey, Reconciler,
};

use super::slice::{self, MANAGER, MANAGER_LABEL, SERVICE_LABEL};

const CONTROLLER: &str = "EndpointSlices";

const NOT_FOUND: u16 = 404;

pub(super) fn add(manager: &Manager, cluster: &kube::Client) {
    let services: Cache<Service> = manager.cache();
    let keeper = Keeper {
        services: services.clone(),
        pods: manager.cache(),
        slices: manager.cache(),
        cluster: cluster.clone(),
    };
    let controller = Controller::builder(CONTROLLER, manager)
        .for_::<Service>()
        // A pod may have ceased to be selected.
        .watches::<Pod>(move |pod| {
            let services = services.in_namespace(pod.namespace().unwrap_or_default());
            let services = services
                .iter()
                .map(AsRef::as_ref)
                .filter(|service: &&Service| {
                    let spec = service.spec.as_ref();
                    spec.is_some_and(slice::selects)
                });
            services.map(ObjectKey::of).collect()
        })
        .watches::<EndpointSlice>(|slice| service_of(slice).into_iter().collect())
        .reconciler(keeper);
    manager.add(controller);
}

struct Keeper {
    services: Cache<Service>,
    pods: Cache<Pod>,
    slices: Cache<EndpointSlice>,
    cluster: kube::Client,
}

impl Reconciler for Keeper {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let pods = self.pods.in_namespace(namespace);
        let service = self.services.get(key);
        let service = service.filter(|service| service.metadata.deletion_timestamp.is_none());
        let wanted = service.map(|service| slice::wanted(&service, pods.iter().map(AsRef::as_ref)));
        let wanted = wanted.unwrap_or_default();
        let api: Api<EndpointSlice> = Api::namespaced(self.cluster.clone(), namespace);
        let there = self.slices.in_namespace(namespace);
        let own = there
            .iter()
            .filter(|slice| service_of(slice).as_ref() == Some(key));
        for slice in own {
            let name = slice.name();
            if wanted.iter().any(|wanted| wanted.name() == name) {
                continue;
            }
            match api.delete(name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == NOT_FOUND => {}
                deleted => drop(deleted?),
            }
        }
        for slice in &wanted {
            let same = there.iter().find(|there| there.name() == slice.name());
            if same.is_some_and(|there| says_the_same(there, slice)) {
                continue;
            }
            let params = PatchParams::apply(MANAGER).force();
            api.patch(slice.name(), &params, &Patch::Apply(slice))
                .await?;
        }
        Ok(Action::Done)
    }
}

fn says_the_same(there: &EndpointSlice, wanted: &EndpointSlice) -> bool {
    there.endpoints == wanted.endpoints
        && there.ports == wanted.ports
        && there.address_type == wanted.address_type
        && there.metadata.labels == wanted.metadata.labels
        && there.metadata.owner_references == wanted.metadata.owner_references
}

/// The service of a slice that is kept here.
fn service_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let labels = slice.metadata.labels.as_ref()?;
    if labels.get(MANAGER_LABEL)? != MANAGER {
        return None;
    }
    let service = labels.get(SERVICE_LABEL)?;
    Some(ObjectKey::new(
        slice.metadata.namespace.clone()?,
        service.clone(),
    ))
}

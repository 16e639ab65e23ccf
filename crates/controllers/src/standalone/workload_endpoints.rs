//! Keeps a workload endpoint for each pod whose address a CNI plugin told to the API server alone, as it does in a cluster.
//!
//! # Invariants
//! - An endpoint that somebody else made is never touched: it has no mark.
//! - Nothing is removed before all pods are known.

use k8s_openapi::api::core::v1::Pod;
use tortie_api::{WorkloadEndpoint, k8s};
use tortie_client::Client;
use tortie_operator::{Action, Cache, Controller, Failure, Manager, ObjectKey, Reconciler};
use tortie_store::{Error, Kind, Precondition, Query, Resource};

use super::VETH_PREFIX;
use crate::follow::{Change, Followed, Follower, Keys, object_key, store_key};
use crate::refusal;
use crate::workload_endpoint::pod_of;
use tortie_store::Key;

const CONTROLLER: &str = "EndpointsOfPods";

/// Says of an endpoint that it was made here, with the pod's UID.
const MARK: &str = "projectcalico.org/endpoint-of-pod";

/// Written by CNI plugins that know no other datastore.
const ANNOUNCEMENT: &str = "cni.projectcalico.org/podIP";

pub(super) fn add(manager: &Manager, datastore: &Client) {
    let followed = Followed::default();
    let (keys, changed) = Keys::channel();
    let following = Follower {
        datastore: datastore.clone(),
        query: Query::all(Kind::WorkloadEndpoint),
        project: Box::new(|resource| is_own(resource).then_some(())),
        tell: Box::new(move |followed: &Followed<()>, change| match change {
            Change::Set { key, .. } | Change::Gone { key, .. } => {
                if let Some(pod) = pod_of(key) {
                    keys.add(pod);
                }
            }
            // Pods come from their cache; these are of pods that may be gone.
            Change::Compared { .. } => {
                let pods = followed.keys().into_iter().filter_map(|key| pod_of(&key));
                pods.for_each(|pod| keys.add(pod));
            }
        }),
        period: None,
    };
    following.start(manager, CONTROLLER, followed.clone());
    let endpoints = Endpoints {
        pods: manager.cache(),
        followed,
        client: datastore.clone(),
    };
    let controller = Controller::builder(CONTROLLER, manager)
        .for_::<Pod>()
        .source(changed)
        .reconciler(endpoints);
    manager.add(controller);
}

struct Endpoints {
    pods: Cache<Pod>,
    /// The endpoints that were made here.
    followed: Followed<()>,
    client: Client,
}

impl Reconciler for Endpoints {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        self.followed.wait_synced().await;
        let wanted = self.pods.get(key).and_then(|pod| wanted(&pod));
        let place = wanted
            .as_ref()
            .map(|endpoint| object_key(&Key::of(endpoint)));
        for own in self.followed.keys() {
            if pod_of(&own).as_ref() == Some(key) && Some(&own) != place.as_ref() {
                self.remove(&own).await?;
            }
        }
        let (Some(wanted), Some(place)) = (wanted, place) else {
            return Ok(Action::Done);
        };
        let put = self.put(&place, &wanted).await;
        put.map(|()| Action::Done).map_err(refusal::failure)
    }
}

impl Endpoints {
    async fn put(&self, place: &ObjectKey, wanted: &Resource) -> Result<(), Error> {
        let written = self
            .client
            .modify_or_create(wanted.clone(), |endpoint: &mut Resource| {
                if endpoint.metadata().resource_version.is_empty() {
                    tracing::info!(endpoint = %place, "Making the endpoint of a pod");
                } else if is_own(endpoint) && content(endpoint) != content(wanted) {
                    let found = std::mem::replace(endpoint, wanted.clone());
                    let metadata = endpoint.metadata_mut();
                    let given = std::mem::replace(metadata, found.metadata().clone());
                    (metadata.labels, metadata.annotations) = (given.labels, given.annotations);
                }
                Ok::<_, Error>(())
            });
        written.await.map(drop)
    }

    async fn remove(&self, place: &ObjectKey) -> Result<(), Failure> {
        tracing::info!(endpoint = %place, "Removing the endpoint of a pod that has no address any more");
        let key = store_key(Kind::WorkloadEndpoint, place);
        match self.client.delete(&key, &Precondition::default()).await {
            Ok(_) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The endpoint that a pod is to have, if it was told here that the pod is connected.
fn wanted(pod: &Pod) -> Option<Resource> {
    let annotations = pod.metadata.annotations.as_ref()?;
    let is_announced = annotations
        .get(ANNOUNCEMENT)
        .is_some_and(|text| !text.is_empty());
    if !is_announced || !k8s::is_valid_workload_endpoint(pod) {
        return None;
    }
    let converted = k8s::pod(pod, VETH_PREFIX);
    for problem in &converted.problems {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        tracing::warn!(controller = CONTROLLER, name, %problem, "Part of a pod could not be converted");
    }
    let mut endpoint: WorkloadEndpoint = converted.resource?;
    // Its address is another's by now.
    if endpoint.spec.ip_networks.is_empty() {
        return None;
    }
    let uid = std::mem::take(&mut endpoint.metadata.uid);
    endpoint.metadata.creation_timestamp = None;
    endpoint.metadata.annotations.insert(MARK.to_owned(), uid);
    Some(endpoint.into())
}

fn is_own(resource: &Resource) -> bool {
    resource.metadata().annotations.contains_key(MARK)
}

/// What an endpoint says, but for what the datastore adds.
fn content(resource: &Resource) -> serde_json::Value {
    let mut resource = resource.clone();
    resource.set_defaults();
    let value = resource.to_value();
    let metadata = &value["metadata"];
    serde_json::json!([metadata["labels"], metadata["annotations"], value["spec"]])
}

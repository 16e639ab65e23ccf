//! Keeps labels and service account of workload endpoints equal to those of their pods.
//!
//! Endpoints are made and removed by the CNI plugin; what a pod's labels are can change at any time after.

use std::collections::BTreeMap;

use tortie_api::WorkloadEndpoint;
use tortie_api::names::EndpointIds;
use tortie_client::Client;
use tortie_operator::{Action, Cache, Controller, Failure, Manager, ObjectKey, Reconciler};
use tortie_store::{Error, Kind, Query, Resource};

use crate::digest::Digest;
use crate::follow::{Change, Followed, Follower, Keys, store_key};
use crate::pod::{KUBERNETES, Pod};
use crate::refusal;
use crate::settings::Mirroring;

/// Calico's name of the controller.
const CONTROLLER: &str = "Pod";

/// Adds the controller.
pub(crate) fn add(manager: &Manager, datastore: &Client, mirroring: Mirroring) {
    let pods: Cache<Pod> = manager.cache();
    let followed = Followed::default();
    let (keys, changed) = Keys::channel();
    let known = pods.clone();
    let following = Follower {
        datastore: datastore.clone(),
        query: Query::all(Kind::WorkloadEndpoint),
        project: Box::new(|resource| match resource {
            Resource::WorkloadEndpoint(endpoint) if endpoint.spec.orchestrator == KUBERNETES => {
                Some(digest_of(endpoint))
            }
            _ => None,
        }),
        tell: Box::new(
            move |followed, change: Change<'_, Digest, Digest>| match change {
                Change::Set { key, .. } => {
                    if followed.is_synced()
                        && let Some(pod) = pod_of(key)
                    {
                        keys.add(pod);
                    }
                }
                // There is nothing to be done for a pod without an endpoint, and at the start all pods come from their
                // cache and wait until all endpoints are known.
                Change::Gone { .. } | Change::Compared { is_first: true } => {}
                Change::Compared { is_first: false } => {
                    known.keys().into_iter().for_each(|key| keys.add(key));
                }
            },
        ),
        period: mirroring.period,
    };
    following.start(manager, CONTROLLER, followed.clone());
    let reconciler = Labels {
        pods,
        followed,
        client: datastore.clone(),
    };
    let controller = Controller::builder(CONTROLLER, manager)
        .for_::<Pod>()
        .source(changed)
        .workers(mirroring.workers)
        .reconciler(reconciler);
    manager.add(controller);
}

struct Labels {
    pods: Cache<Pod>,
    /// By digests of their names, as there are many.
    followed: Followed<Digest, Digest>,
    client: Client,
}

impl Reconciler for Labels {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        self.followed.wait_synced().await;
        let Some(pod) = self.pods.get(key).filter(|pod| pod.is_ready()) else {
            return Ok(Action::Done);
        };
        let Some(endpoint) = endpoint_of(&pod) else {
            return Ok(Action::Done);
        };
        let (labels, account) = (pod.endpoint_labels(), pod.service_account());
        match self.followed.get(&endpoint) {
            // The CNI plugin has not made it yet, or has removed it.
            None => return Ok(Action::Done),
            Some(actual) if actual == digest(&labels, account) => return Ok(Action::Done),
            Some(_) => {}
        }
        tracing::info!(wep = %key, "Writing endpoint with updated data to Calico datastore");
        let at = store_key(Kind::WorkloadEndpoint, &endpoint);
        let written = self.client.modify(&at, |endpoint: &mut WorkloadEndpoint| {
            endpoint.metadata.labels.clone_from(&labels);
            account.clone_into(&mut endpoint.spec.service_account_name);
            Ok::<_, Error>(())
        });
        match written.await {
            // Where it is gone, that is told.
            Ok(_) | Err(Error::NotFound(_)) => Ok(Action::Done),
            Err(error) => Err(refusal::failure(error)),
        }
    }
}

/// The endpoint that a pod has once it is connected.
fn endpoint_of(pod: &Pod) -> Option<ObjectKey> {
    let ids = EndpointIds {
        node: pod.node().to_owned(),
        orchestrator: KUBERNETES.to_owned(),
        pod: pod.name().to_owned(),
        endpoint: "eth0".to_owned(),
        ..EndpointIds::default()
    };
    Some(ObjectKey::new(pod.namespace(), ids.name().ok()?))
}

/// The pod that an endpoint is of.
pub(crate) fn pod_of(endpoint: &ObjectKey) -> Option<ObjectKey> {
    let ids = EndpointIds::parse(&endpoint.name).ok()?;
    let namespace = endpoint.namespace.clone()?;
    (ids.orchestrator == KUBERNETES).then(|| ObjectKey::new(namespace, ids.pod))
}

fn digest_of(endpoint: &WorkloadEndpoint) -> Digest {
    digest(
        &endpoint.metadata.labels,
        &endpoint.spec.service_account_name,
    )
}

fn digest(labels: &BTreeMap<String, String>, account: &str) -> Digest {
    Digest::of(&(labels, account))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pod_and_endpoint_lead_to_each_other() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web-0", "namespace": "shop"},
            "spec": {"nodeName": "node-1"},
        }))
        .unwrap();
        let endpoint = endpoint_of(&pod).unwrap();
        assert_eq!(endpoint.to_string(), "shop/node--1-k8s-web--0-eth0");
        assert_eq!(pod_of(&endpoint), Some(ObjectKey::new("shop", "web-0")));
        assert_eq!(pod_of(&ObjectKey::new("shop", "node-cni-abc-eth0")), None);
    }
}

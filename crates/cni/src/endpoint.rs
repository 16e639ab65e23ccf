//! The endpoint that tells the rest of the cluster of a container: stored as it is, or as annotations of a pod.

use k8s_openapi::api::core::v1::Pod;
use tortie_api::workload_endpoint::WorkloadEndpointSpec;
use tortie_api::{WorkloadEndpoint, k8s};
use tortie_client::{Client, retry_conflicts};
use tortie_store::{Error as StoreError, Key, Kind, Precondition, Resource, Revision};

use crate::cluster;
use crate::datastore::Datastore;
use crate::error::{Code, Error, Result};
use crate::identity::Identity;

/// Where endpoints are kept.
pub(crate) enum Endpoints<'a> {
    /// In the datastore.
    Stored(&'a Client),
    /// As annotations of pods.
    Pods(&'a kube::Client),
}

/// What was found of a container.
pub(crate) enum Found {
    Nothing,
    Stored(Box<WorkloadEndpoint>),
    Pod(Box<Pod>),
}

impl<'a> Endpoints<'a> {
    pub(crate) fn of(datastore: &'a Datastore) -> Self {
        match &datastore.cluster {
            Some(cluster) => Self::Pods(cluster),
            None => Self::Stored(&datastore.client),
        }
    }

    /// The endpoint that a container has already. `pod` is the container's, where it is one and that was read.
    pub(crate) async fn find(
        &self,
        identity: &Identity,
        pod: Option<&Pod>,
        prefix: &str,
    ) -> Result<Option<WorkloadEndpoint>> {
        match self {
            Self::Pods(_) => Ok(pod.and_then(|pod| of_pod(pod, prefix))),
            Self::Stored(client) => {
                for key in identity.possible_keys()? {
                    match client.store().get(&key).await {
                        Ok(Resource::WorkloadEndpoint(endpoint)) => return Ok(Some(*endpoint)),
                        Ok(_) | Err(StoreError::NotFound(_)) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(None)
            }
        }
    }

    /// Stores an endpoint, in place of the one that it was made from, if there was one.
    pub(crate) async fn write(&self, endpoint: WorkloadEndpoint, pod: Option<&Pod>) -> Result<()> {
        let client = match self {
            Self::Stored(client) => client,
            Self::Pods(cluster) => {
                let Some(pod) = pod else {
                    let message = "only the endpoints of pods can be kept in Kubernetes";
                    return Err(Error::new(Code::Datastore, message));
                };
                let spec = &endpoint.spec;
                cluster::announce(cluster, pod, &spec.ip_networks, &spec.container_id).await?;
                return Ok(());
            }
        };
        let is_new = endpoint.metadata.resource_version.is_empty();
        let written = if is_new {
            client.create(endpoint.clone().into()).await
        } else {
            client.update(endpoint.clone().into()).await
        };
        match written {
            Err(error) if error.is_conflict() => {}
            Err(StoreError::NotFound(_)) if !is_new => {}
            written => return written.map(drop).map_err(Error::from),
        }
        // Others came in between: what they wrote is replaced.
        let mut new = endpoint;
        new.metadata.resource_version.clear();
        let wanted = new.clone();
        let written = client.modify_or_create(new, |current: &mut WorkloadEndpoint| {
            let found = std::mem::replace(current, wanted.clone()).metadata;
            let metadata = &mut current.metadata;
            metadata.resource_version = found.resource_version;
            metadata.uid = found.uid;
            metadata.creation_timestamp = found.creation_timestamp;
            Ok::<_, Error>(())
        });
        written.await.map(drop)
    }

    /// Reads what [`Endpoints::remove`] wants to know.
    pub(crate) async fn look(&self, identity: &Identity) -> Result<Found> {
        match self {
            Self::Stored(client) => {
                let key = identity.endpoint_key()?;
                match client.store().get(&key).await {
                    Ok(Resource::WorkloadEndpoint(endpoint)) => Ok(Found::Stored(endpoint)),
                    Ok(_) | Err(StoreError::NotFound(_)) => Ok(Found::Nothing),
                    Err(error) => Err(error.into()),
                }
            }
            Self::Pods(cluster) => {
                let Some(name) = &identity.pod else {
                    return Ok(Found::Nothing);
                };
                let pod = cluster::find_pod(cluster, &identity.namespace, name).await?;
                // One of the same name may have been started on another node.
                let pod = pod.filter(|pod| is_on(pod, &identity.node));
                Ok(pod.map_or(Found::Nothing, |pod| Found::Pod(Box::new(pod))))
            }
        }
    }

    /// Removes the endpoint that was found of a container, unless it is by now that of another container of the same
    /// pod. Gives whether there was one.
    pub(crate) async fn remove(&self, identity: &Identity, found: Found) -> Result<bool> {
        let mut first = Some(found);
        retry_conflicts(Error::is_conflict, || {
            let found = first.take();
            async {
                let found = match found {
                    Some(found) => found,
                    None => self.look(identity).await?,
                };
                self.remove_found(identity, &found).await
            }
        })
        .await
    }

    async fn remove_found(&self, identity: &Identity, found: &Found) -> Result<bool> {
        if is_of_other(found.container(), identity) {
            let container = found.container();
            tracing::info!(
                container,
                "The endpoint is that of a newer container and stays"
            );
            return Ok(false);
        }
        match (self, found) {
            (Self::Stored(client), Found::Stored(endpoint)) => {
                delete_unchanged(client, endpoint).await?;
            }
            (Self::Pods(cluster), Found::Pod(pod)) => {
                let is_there = k8s::is_valid_workload_endpoint(pod);
                if is_there && !cluster::withdraw(cluster, pod).await? {
                    return Err(StoreError::Conflict(identity.endpoint_key()?).into());
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Found {
    /// The container that it is of; empty if that is not known.
    fn container(&self) -> &str {
        match self {
            Self::Nothing => "",
            Self::Stored(endpoint) => &endpoint.spec.container_id,
            Self::Pod(pod) => cluster::container_of(pod),
        }
    }
}

/// A new endpoint without addresses, or the one that there is, as that of this container.
pub(crate) fn prepared(
    identity: &Identity,
    existing: Option<WorkloadEndpoint>,
) -> Result<WorkloadEndpoint> {
    let mut endpoint = if let Some(endpoint) = existing {
        endpoint
    } else {
        let key = identity.endpoint_key()?;
        let spec = WorkloadEndpointSpec {
            endpoint: identity.interface.clone(),
            ..WorkloadEndpointSpec::default()
        };
        WorkloadEndpoint::new(&key.namespace, &key.name, spec)
    };
    let spec = &mut endpoint.spec;
    spec.node.clone_from(&identity.node);
    identity.orchestrator().clone_into(&mut spec.orchestrator);
    spec.pod = identity.pod.clone().unwrap_or_default();
    spec.container_id.clone_from(&identity.container_id);
    Ok(endpoint)
}

/// The endpoint that a pod stands for, if it has a network of its own.
pub(crate) fn of_pod(pod: &Pod, prefix: &str) -> Option<WorkloadEndpoint> {
    if !k8s::is_valid_workload_endpoint(pod) {
        return None;
    }
    k8s::pod(pod, prefix).resource
}

fn is_on(pod: &Pod, node: &str) -> bool {
    let spec = pod.spec.as_ref();
    spec.is_some_and(|spec| spec.node_name.as_deref() == Some(node))
}

/// Whether an endpoint is that of another container: the pod was started anew, and this is the end of the old one.
fn is_of_other(container_id: &str, identity: &Identity) -> bool {
    !container_id.is_empty() && container_id != identity.container_id
}

/// Deletes an endpoint, if it is still as it was read.
async fn delete_unchanged(client: &Client, endpoint: &WorkloadEndpoint) -> Result<()> {
    let metadata = &endpoint.metadata;
    let key = Key::namespaced(Kind::WorkloadEndpoint, &metadata.namespace, &metadata.name);
    let precondition = Precondition {
        revision: Some(Revision(metadata.resource_version.clone())),
        uid: Some(metadata.uid.clone()).filter(|uid| !uid.is_empty()),
    };
    match client.delete(&key, &precondition).await {
        Ok(_) | Err(StoreError::NotFound(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

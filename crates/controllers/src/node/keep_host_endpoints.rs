//! Makes and removes host endpoints of nodes, and repairs those that were changed by hand.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures::channel::mpsc::UnboundedReceiver;
use tortie_api::HostEndpoint;
use tortie_client::Client;
use tortie_operator::{Action, Controller, Failure, Manager, ObjectKey, Reconciler};
use tortie_store::{Error, Key, Kind, Precondition, Query, Resource};

use super::PERIOD;
use super::host_endpoints::{CREATED_BY, CREATOR, wanted};
use super::packed::PackedNode;
use crate::digest::Digest;
use crate::follow::{Change, Followed, Follower, Keys};
use crate::refusal;
use crate::settings::HostEndpointSettings;

const WORKERS: usize = 16;

/// Adds the controller. `keys` and `changed` are the ends of one channel of nodes.
pub(super) fn add(
    manager: &Manager,
    datastore: &Client,
    nodes: &Followed<PackedNode>,
    settings: HostEndpointSettings,
    keys: Keys,
    changed: UnboundedReceiver<ObjectKey>,
) {
    let by_node = Arc::new(ByNode::default());
    let followed = Followed::default();
    let index = Arc::clone(&by_node);
    let following = Follower {
        datastore: datastore.clone(),
        query: Query::all(Kind::HostEndpoint),
        project: Box::new(|resource| match resource {
            Resource::HostEndpoint(endpoint) if is_ours(endpoint) => Some(Own {
                node: endpoint.spec.node.as_str().into(),
                digest: digest(endpoint),
            }),
            _ => None,
        }),
        tell: Box::new(move |_, change: Change<'_, Own>| {
            let (key, old, new) = match change {
                Change::Set { key, old, new } => (key, old, Some(new)),
                Change::Gone { key, old } => (key, old, None),
                Change::Compared { .. } => {
                    for node in index.nodes() {
                        keys.add(ObjectKey::cluster(node));
                    }
                    return;
                }
            };
            index.change(&key.name, old, new);
            for own in [old, new].into_iter().flatten() {
                keys.add(ObjectKey::cluster(Arc::clone(&own.node)));
            }
        }),
        period: Some(PERIOD),
    };
    following.start(manager, "HostEndpoint", followed.clone());
    let keeper = Keeper {
        nodes: nodes.clone(),
        followed,
        by_node,
        client: datastore.clone(),
        settings,
    };
    let controller = Controller::builder("HostEndpoint", manager)
        .source(changed)
        .workers(WORKERS)
        .reconciler(keeper);
    manager.add(controller);
}

/// A host endpoint that was made here.
#[derive(Debug, Clone, PartialEq)]
struct Own {
    node: Arc<str>,
    digest: Digest,
}

/// Host endpoints that were made here, by their nodes.
#[derive(Default)]
struct ByNode(Mutex<HashMap<Arc<str>, Endpoints>>);

/// Host endpoints of one node, by name.
type Endpoints = BTreeMap<Arc<str>, Digest>;

impl ByNode {
    fn change(&self, name: &Arc<str>, old: Option<&Own>, new: Option<&Own>) {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = old
            && let Some(endpoints) = nodes.get_mut(&old.node)
        {
            endpoints.remove(name);
            if endpoints.is_empty() {
                nodes.remove(&old.node);
            }
        }
        if let Some(new) = new {
            let endpoints = nodes.entry(Arc::clone(&new.node)).or_default();
            endpoints.insert(Arc::clone(name), new.digest);
        }
    }

    fn nodes(&self) -> Vec<Arc<str>> {
        let nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.keys().cloned().collect()
    }

    fn of(&self, node: &str) -> Endpoints {
        let nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.get(node).cloned().unwrap_or_default()
    }
}

struct Keeper {
    nodes: Followed<PackedNode>,
    followed: Followed<Own>,
    by_node: Arc<ByNode>,
    client: Client,
    settings: HostEndpointSettings,
}

impl Reconciler for Keeper {
    /// The node.
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        self.nodes.wait_synced().await;
        self.followed.wait_synced().await;
        let node = self.nodes.get(key);
        let wanted = node
            .map(|node| wanted(&node.unpack(), &self.settings))
            .unwrap_or_default();
        for reason in &wanted.unusable {
            tracing::error!(node = %key, reason, "A template of host endpoints cannot be used");
        }
        let mut there = self.by_node.of(&key.name);
        for endpoint in wanted.endpoints {
            let actual = there.remove(endpoint.metadata.name.as_str());
            if actual != Some(digest(&endpoint)) {
                self.put(endpoint).await?;
            }
        }
        // What a template that cannot be used made cannot be told from what nobody wants.
        if wanted.unusable.is_empty() {
            for name in there.into_keys() {
                self.remove(&name).await?;
            }
        }
        Ok(Action::Done)
    }
}

impl Keeper {
    async fn put(&self, wanted: HostEndpoint) -> Result<(), Failure> {
        let name = wanted.metadata.name.as_str();
        tracing::debug!(hep = name, "Writing hostendpoint");
        let mut is_foreign = false;
        let written =
            self.client
                .modify_or_create(wanted.clone(), |endpoint: &mut HostEndpoint| {
                    is_foreign = !is_ours(endpoint);
                    if !is_foreign && digest(endpoint) != digest(&wanted) {
                        let found = std::mem::replace(endpoint, wanted.clone()).metadata;
                        let metadata = &mut endpoint.metadata;
                        metadata.uid = found.uid;
                        metadata.creation_timestamp = found.creation_timestamp;
                        metadata.resource_version = found.resource_version;
                    }
                    Ok::<_, Error>(())
                });
        written.await.map_err(refusal::failure)?;
        if is_foreign {
            let key = Key::global(Kind::HostEndpoint, name);
            let reason = format!("{key} was made by somebody else and is left as it is");
            return Err(Failure::never(reason));
        }
        Ok(())
    }

    async fn remove(&self, name: &str) -> Result<(), Failure> {
        tracing::debug!(hep = name, "Deleting hostendpoint");
        let key = Key::global(Kind::HostEndpoint, name);
        match self.client.delete(&key, &Precondition::default()).await {
            Ok(_) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_ours(endpoint: &HostEndpoint) -> bool {
    endpoint
        .metadata
        .labels
        .get(CREATED_BY)
        .is_some_and(|creator| creator == CREATOR)
}

/// Stands for all that is kept right. Ports and profiles can be changed by people.
fn digest(endpoint: &HostEndpoint) -> Digest {
    let (metadata, spec) = (&endpoint.metadata, &endpoint.spec);
    Digest::of(&(
        &metadata.labels,
        &metadata.annotations,
        &spec.expected_ips,
        &spec.interface_name,
    ))
}

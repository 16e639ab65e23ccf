//! Removes nodes that Kubernetes no longer has, with all that belongs to them.

use std::sync::Arc;

use futures::channel::mpsc::UnboundedReceiver;
use k8s_openapi::api::core::v1::Node as KubernetesNode;
use kube::Api;
use tortie_client::Client;
use tortie_operator::{
    Action, Cache, Controller, Failure, Manager, Object as _, ObjectKey, Reconciler,
};
use tortie_store::{Error, Kind};

use super::Names;
use super::packed::PackedNode;
use crate::follow::{Followed, store_key};
use crate::ipam_gc::CachedNode;

pub(super) fn add(
    manager: &Manager,
    datastore: &Client,
    cluster: &kube::Client,
    nodes: &Followed<PackedNode>,
    names: &Arc<Names>,
    changed: UnboundedReceiver<ObjectKey>,
) {
    let deletion = Deletion {
        nodes: nodes.clone(),
        kube_nodes: manager.cache(),
        client: datastore.clone(),
        api: Api::all(cluster.clone()),
    };
    let names = Arc::clone(names);
    let controller = Controller::builder("NodeDeletion", manager)
        .watches::<CachedNode>(move |node| names.of(node.name()).into_iter().collect())
        .when(|_, new| new.is_none())
        .source(changed)
        .reconciler(deletion);
    manager.add(controller);
}

struct Deletion {
    nodes: Followed<PackedNode>,
    kube_nodes: Cache<CachedNode>,
    client: Client,
    api: Api<KubernetesNode>,
}

impl Reconciler for Deletion {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        self.nodes.wait_synced().await;
        let Some(node) = self.nodes.get(key) else {
            return Ok(Action::Done);
        };
        // Nodes that are not Kubernetes' are somebody else's business.
        let Some(name) = node.kubernetes_name() else {
            return Ok(Action::Done);
        };
        if self
            .kube_nodes
            .get(&ObjectKey::cluster(name.as_str()))
            .is_some()
        {
            return Ok(Action::Done);
        }
        // It may have been made a moment ago.
        if self.api.get_metadata_opt(&name).await?.is_some() {
            return Ok(Action::Done);
        }
        tracing::info!(node = %key, "Deleting Calico node whose Kubernetes node is gone");
        let at = store_key(Kind::Node, key);
        // Its pods may run still: the collector asks the API server about each address.
        match self.client.delete_node_but_addresses(&at).await {
            Ok(_) | Err(Error::NotFound(_)) => Ok(Action::Done),
            Err(error) => Err(error.into()),
        }
    }
}

//! Looks after nodes: those that are gone, their labels, and their host endpoints.

mod deletion;
mod host_endpoints;
mod keep_host_endpoints;
mod labels;
mod packed;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tortie_api::Node;
use tortie_client::Client;
use tortie_operator::{Manager, ObjectKey};
use tortie_store::{Kind, Query, Resource};

use self::packed::PackedNode;
use crate::follow::{Change, Followed, Follower, Keys};
use crate::pod::KUBERNETES;
use crate::settings::NodeSettings;

/// How often everything is compared.
const PERIOD: Duration = Duration::from_mins(5);

/// The annotation that holds the labels that were copied.
const COPIED_LABELS: &str = "projectcalico.org/kube-labels";

/// Adds the controllers of nodes.
pub(crate) fn add(
    manager: &Manager,
    datastore: &Client,
    cluster: &kube::Client,
    settings: &NodeSettings,
) {
    let nodes: Followed<PackedNode> = Followed::default();
    let names = Arc::new(Names::default());
    let mut readers: Vec<Keys> = Vec::new();
    let mut reader = || {
        let (keys, changed) = Keys::channel();
        readers.push(keys);
        changed
    };
    if settings.delete_nodes {
        deletion::add(manager, datastore, cluster, &nodes, &names, reader());
    }
    if settings.sync_labels {
        labels::add(manager, datastore, &nodes, &names, reader());
    }
    let (keys, changed) = Keys::channel();
    readers.push(keys.clone());
    keep_host_endpoints::add(
        manager,
        datastore,
        &nodes,
        settings.host_endpoints.clone(),
        keys,
        changed,
    );
    let following = Follower {
        datastore: datastore.clone(),
        query: Query::all(Kind::Node),
        project: Box::new(|resource| match resource {
            Resource::Node(node) => Some(PackedNode::new(node)),
            _ => None,
        }),
        tell: Box::new(move |nodes: &Followed<PackedNode>, change| {
            let changed: Vec<ObjectKey> = match change {
                Change::Set { key, old, new } => {
                    names.change(key, old, Some(new));
                    vec![key.clone()]
                }
                Change::Gone { key, old } => {
                    names.change(key, old, None);
                    vec![key.clone()]
                }
                Change::Compared { .. } => nodes.keys(),
            };
            for keys in &readers {
                for key in &changed {
                    keys.add(key.clone());
                }
            }
        }),
        period: Some(PERIOD),
    };
    following.start(manager, "Node", nodes);
}

/// The nodes by what Kubernetes calls them.
#[derive(Debug, Default)]
struct Names(RwLock<HashMap<Box<str>, ObjectKey>>);

impl Names {
    fn change(&self, key: &ObjectKey, old: Option<&PackedNode>, new: Option<&PackedNode>) {
        let old = old.and_then(PackedNode::kubernetes_name);
        let new = new.and_then(PackedNode::kubernetes_name);
        if old == new {
            return;
        }
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = old {
            names.remove(old.as_str());
        }
        if let Some(new) = new {
            names.insert(new.into(), key.clone());
        }
    }

    /// The node that Kubernetes calls so.
    fn of(&self, kubernetes_name: &str) -> Option<ObjectKey> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        names.get(kubernetes_name).cloned()
    }
}

/// What Kubernetes calls a node; nothing if it does not know the node.
fn kubernetes_name(node: &Node) -> Option<&str> {
    let reference = node
        .spec
        .orch_refs
        .iter()
        .find(|reference| reference.orchestrator == KUBERNETES)?;
    Some(reference.node_name.as_str()).filter(|name| !name.is_empty())
}

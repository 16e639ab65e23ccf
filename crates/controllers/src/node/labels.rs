//! Copies the labels of Kubernetes' nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::channel::mpsc::UnboundedReceiver;
use tortie_api::Node;
use tortie_client::Client;
use tortie_operator::{
    Action, Cache, Controller, Failure, Manager, Object as _, ObjectKey, Reconciler, labels_changed,
};
use tortie_store::{Error, Kind};

use super::packed::PackedNode;
use super::{COPIED_LABELS, Names, kubernetes_name};
use crate::follow::{Followed, store_key};
use crate::ipam_gc::CachedNode;
use crate::refusal;

const WORKERS: usize = 16;

pub(super) fn add(
    manager: &Manager,
    datastore: &Client,
    nodes: &Followed<PackedNode>,
    names: &Arc<Names>,
    changed: UnboundedReceiver<ObjectKey>,
) {
    let labels = Labels {
        nodes: nodes.clone(),
        kube_nodes: manager.cache(),
        client: datastore.clone(),
    };
    let names = Arc::clone(names);
    let controller = Controller::builder("NodeLabels", manager)
        .watches::<CachedNode>(move |node| names.of(node.name()).into_iter().collect())
        .when(labels_changed())
        .source(changed)
        .workers(WORKERS)
        .reconciler(labels);
    manager.add(controller);
}

struct Labels {
    nodes: Followed<PackedNode>,
    kube_nodes: Cache<CachedNode>,
    client: Client,
}

impl Reconciler for Labels {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failure> {
        self.nodes.wait_synced().await;
        let Some(mut node) = self.nodes.get(key).map(|node| node.unpack()) else {
            return Ok(Action::Done);
        };
        let kube_node =
            kubernetes_name(&node).and_then(|name| self.kube_nodes.get(&ObjectKey::cluster(name)));
        let Some(kube_node) = kube_node else {
            return Ok(Action::Done);
        };
        let labels = kube_node.labels();
        let wanted = labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        if !copy(&wanted, &mut node) {
            return Ok(Action::Done);
        }
        let at = store_key(Kind::Node, key);
        let written = self.client.modify(&at, |node: &mut Node| {
            copy(&wanted, node);
            Ok::<_, Error>(())
        });
        written.await.map_err(refusal::failure)?;
        tracing::info!(node = %key, "Successfully synced node labels");
        Ok(Action::Done)
    }
}

/// Gives a node these labels, and takes those from it that were copied earlier and are no more. Tells whether anything
/// changed.
fn copy(wanted: &BTreeMap<&str, &str>, node: &mut Node) -> bool {
    let noted = node.metadata.annotations.get(COPIED_LABELS);
    // A note that cannot be read is as good as none.
    let copied: BTreeMap<String, String> = noted
        .and_then(|note| serde_json::from_str(note).ok())
        .unwrap_or_default();
    let mut has_changed = false;
    for (name, value) in wanted {
        if node.metadata.labels.get(*name).map(String::as_str) != Some(*value) {
            node.metadata.labels.insert((*name).into(), (*value).into());
            has_changed = true;
        }
    }
    for name in copied
        .keys()
        .filter(|name| !wanted.contains_key(name.as_str()))
    {
        node.metadata.labels.remove(name);
        has_changed = true;
    }
    let is_noted = copied
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .eq(wanted.iter().map(|(name, value)| (*name, *value)));
    if !is_noted {
        let json = serde_json::to_string(wanted).unwrap_or_default();
        node.metadata.annotations.insert(COPIED_LABELS.into(), json);
        has_changed = true;
    }
    has_changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(node: &Node) -> Vec<(&str, &str)> {
        let labels = node.metadata.labels.iter();
        labels
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    #[test]
    fn labels_come_and_go_and_those_of_people_stay() {
        let mut node = Node::default();
        node.metadata.labels.insert("mine".into(), "1".into());
        assert!(copy(&BTreeMap::from([("a", "1"), ("b", "2")]), &mut node));
        assert_eq!(labels(&node), [("a", "1"), ("b", "2"), ("mine", "1")]);
        assert_eq!(
            node.metadata.annotations[COPIED_LABELS],
            r#"{"a":"1","b":"2"}"#
        );
        assert!(!copy(&BTreeMap::from([("a", "1"), ("b", "2")]), &mut node));
        assert!(copy(&BTreeMap::from([("a", "3")]), &mut node));
        assert_eq!(labels(&node), [("a", "3"), ("mine", "1")]);
        assert!(copy(&BTreeMap::new(), &mut node));
        assert_eq!(labels(&node), [("mine", "1")]);
        assert!(!copy(&BTreeMap::new(), &mut node));
    }

    #[test]
    fn labels_changed_by_hand_are_put_back() {
        let wanted = BTreeMap::from([("a", "1")]);
        let mut node = Node::default();
        copy(&wanted, &mut node);
        node.metadata.labels.insert("a".into(), "2".into());
        assert!(copy(&wanted, &mut node));
        assert_eq!(labels(&node), [("a", "1")]);
    }

    #[test]
    fn a_note_that_cannot_be_read_is_written_anew() {
        let mut node = Node::default();
        node.metadata
            .annotations
            .insert(COPIED_LABELS.into(), "{".into());
        assert!(copy(&BTreeMap::from([("a", "1")]), &mut node));
        assert_eq!(node.metadata.annotations[COPIED_LABELS], r#"{"a":"1"}"#);
    }
}

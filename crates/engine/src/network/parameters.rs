//! The parameters of nodes: the cluster's, those that select a node by its labels, and its own. Those of this node are
//! sent; those of all nodes are at hand where questions about all nodes are answered.
//!
//! # Invariants
//! - Nothing is sent before the datastore is in sync, so the first message is complete.
//! - While the datastore is not ready, a message with parameters comes right after one that says so. One with parameters
//!   alone means that the datastore is ready, and is sent for that even if the parameters are the same.

use std::collections::BTreeMap;

use tortie_config::{DatastoreConfig, Given};
use tortie_selector::Selector;

use crate::config::{Config, Scope};
use crate::input::{Cluster, Configuration, Labels};
use crate::message::Message;

/// The name of the parameters for all nodes.
const FOR_ALL: &str = "default";
/// What the name of the parameters for one node starts with.
const FOR_ONE: &str = "node.";

/// See the module.
#[derive(Debug)]
pub(super) struct Parameters {
    node: String,
    scope: Scope,
    /// The labels of nodes that are known.
    labels: BTreeMap<String, Labels>,
    for_all: BTreeMap<String, Given>,
    /// By the name of the node.
    for_one: BTreeMap<String, BTreeMap<String, Given>>,
    /// By name. Those whose selector cannot be read are not here.
    for_selected: BTreeMap<String, ForSelected>,
    cluster: Cluster,
    changed: bool,
    sent: Option<Sent>,
}

/// Parameters for the nodes that a selector matches.
#[derive(Debug)]
struct ForSelected {
    nodes: Selector,
    created: Option<i64>,
    parameters: BTreeMap<String, Given>,
}

#[derive(Debug)]
struct Sent {
    ready: bool,
    update: DatastoreConfig,
}

// === impl Parameters ===

impl Parameters {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            node: config.node.clone(),
            scope: config.scope,
            labels: BTreeMap::new(),
            for_all: BTreeMap::new(),
            for_one: BTreeMap::new(),
            for_selected: BTreeMap::new(),
            cluster: Cluster::default(),
            changed: true,
            sent: None,
        }
    }

    pub(super) fn set_configuration(&mut self, name: &str, value: Option<&Configuration>) {
        let parameters = || {
            value
                .map(|value| value.parameters.clone())
                .unwrap_or_default()
        };
        if name == FOR_ALL {
            self.for_all = parameters();
        } else if let Some(node) = name.strip_prefix(FOR_ONE) {
            if !self.concerns(node) {
                return;
            }
            if value.is_some() {
                self.for_one.insert(node.to_owned(), parameters());
            } else {
                self.for_one.remove(node);
            }
        } else if let Some(nodes) = value.and_then(node_selector) {
            let selected = ForSelected {
                nodes,
                created: value.and_then(|value| value.created),
                parameters: parameters(),
            };
            self.for_selected.insert(name.to_owned(), selected);
        } else {
            self.for_selected.remove(name);
        }
        self.changed = true;
    }

    pub(super) fn set_cluster(&mut self, cluster: Option<&Cluster>) {
        self.cluster = cluster.cloned().unwrap_or_default();
        self.changed = true;
    }

    pub(super) fn set_node(&mut self, name: &str, labels: Option<&Labels>) {
        if !self.concerns(name) || labels == self.labels.get(name) {
            return;
        }
        match labels {
            Some(labels) => self.labels.insert(name.to_owned(), labels.clone()),
            None => self.labels.remove(name),
        };
        self.changed = true;
    }

    /// Whether somebody may ask for the parameters of a node.
    fn concerns(&self, node: &str) -> bool {
        self.scope == Scope::AllNodes || node == self.node
    }

    pub(super) fn flush(&mut self, in_sync: bool, sink: &mut dyn FnMut(Message)) {
        if !in_sync || !self.changed {
            return;
        }
        self.changed = false;
        // Not said means no: the cluster has not been set up yet.
        let ready = self.cluster.datastore_ready == Some(true);
        let update = self.of(&self.node);
        let (same_parameters, was_ready) = self
            .sent
            .as_ref()
            .map_or((false, true), |sent| (sent.update == update, sent.ready));
        if !ready && (was_ready || !same_parameters) {
            sink(Message::DatastoreNotReady);
        }
        if !same_parameters || (ready && !was_ready) {
            sink(Message::ConfigUpdate(update.clone()));
        }
        self.sent = Some(Sent { ready, update });
    }

    /// The parameters of a node.
    pub(super) fn of(&self, node: &str) -> DatastoreConfig {
        let mut global = self.for_all.clone();
        global.extend(self.cluster.parameters.clone());
        DatastoreConfig {
            global,
            selected: self.selected(node).cloned().unwrap_or_default(),
            node: self.for_one.get(node).cloned().unwrap_or_default(),
        }
    }

    /// The parameters that select a node. Of several, the oldest alone count, then the first by name: a mix would be
    /// nobody's intent.
    fn selected(&self, node: &str) -> Option<&BTreeMap<String, Given>> {
        let labels = self.labels.get(node)?;
        self.for_selected
            .values()
            .filter(|selected| selected.nodes.matches(labels))
            .min_by_key(|selected| (selected.created.is_none(), selected.created))
            .map(|selected| &selected.parameters)
    }
}

/// The nodes that parameters are for; an empty text selects none here.
fn node_selector(value: &Configuration) -> Option<Selector> {
    if value.node_selector.is_empty() {
        return None;
    }
    Selector::parse(&value.node_selector).ok()
}

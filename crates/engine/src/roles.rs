//! What a local workload is besides a subject of policy: a BGP peer, a machine on the move.
//!
//! There are few of these objects; when one changes, all local workloads are looked at again.

use std::collections::BTreeMap;

use tortie_selector::{Labels, Selector};

use crate::Config;
use crate::input::{
    BgpPeer, LiveMigration, MigrationSource, MigrationTarget, ObjectName, WorkloadEndpoint,
    WorkloadEndpointKey,
};
use crate::message::{LocalBgpPeer, MigrationRole};

/// Labels that name the virtual machine of a pod; the first one wins.
const MACHINE_LABELS: [&str; 2] = ["vmi.kubevirt.io/id", "vm.kubevirt.io/name"];

/// What a workload is besides a subject of policy.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Role {
    pub(crate) bgp_peer: Option<LocalBgpPeer>,
    pub(crate) migration: MigrationRole,
    pub(crate) migration_uid: String,
    pub(crate) machine: String,
}

/// Everything that gives workloads a role.
pub(crate) struct Roles {
    node: String,
    node_labels: crate::input::Labels,
    peers: BTreeMap<String, Peer>,
    migrations: BTreeMap<ObjectName, (LiveMigration, Option<Selector>)>,
    /// Whether roles of any workload may have changed.
    pub(crate) is_dirty: bool,
}

struct Peer {
    peer: BgpPeer,
    workloads: Option<Selector>,
}

impl Roles {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            node: config.node.clone(),
            node_labels: BTreeMap::new(),
            peers: BTreeMap::new(),
            migrations: BTreeMap::new(),
            is_dirty: false,
        }
    }

    pub(crate) fn update_node(&mut self, name: &str, labels: Option<&crate::input::Labels>) {
        let labels = labels.cloned().unwrap_or_default();
        if name == self.node && self.node_labels != labels {
            self.node_labels = labels;
            self.is_dirty |= !self.peers.is_empty();
        }
    }

    pub(crate) fn update_peer(&mut self, name: &str, peer: Option<&BgpPeer>) {
        // A peer without a selector for workloads concerns none.
        let wanted = peer.filter(|peer| !peer.local_workload_selector.is_empty());
        self.is_dirty |= match wanted {
            Some(peer) => {
                let workloads = Selector::parse(&peer.local_workload_selector).ok();
                let peer = peer.clone();
                let old = self.peers.insert(name.to_owned(), Peer { peer, workloads });
                old.is_none_or(|old| Some(&old.peer) != wanted)
            }
            None => self.peers.remove(name).is_some(),
        };
    }

    pub(crate) fn update_migration(
        &mut self,
        name: &ObjectName,
        migration: Option<&LiveMigration>,
    ) {
        self.is_dirty |= match migration {
            Some(migration) => {
                let selector = match &migration.target {
                    Some(MigrationTarget::Selector(text)) => Selector::parse(text).ok(),
                    _ => None,
                };
                let new = (migration.clone(), selector);
                let old = self.migrations.insert(name.clone(), new);
                old.is_none_or(|(old, _)| old != *migration)
            }
            None => self.migrations.remove(name).is_some(),
        };
    }

    /// Whether the labels that a workload inherits can change its role.
    pub(crate) fn depends_on_labels(&self) -> bool {
        !self.peers.is_empty() || !self.migrations.is_empty()
    }

    /// The role of a workload with these labels, its own and inherited.
    pub(crate) fn of(
        &self,
        key: &WorkloadEndpointKey,
        endpoint: &WorkloadEndpoint,
        labels: &impl Labels,
    ) -> Role {
        let (migration, migration_uid) = self.migration(key, labels);
        let machine = MACHINE_LABELS
            .iter()
            .find_map(|label| endpoint.labels.get(*label));
        Role {
            bgp_peer: self.peer(labels),
            migration,
            migration_uid,
            machine: machine.cloned().unwrap_or_default(),
        }
    }

    /// The first by name of the peers that are for this node and select the workload.
    fn peer(&self, labels: &impl Labels) -> Option<LocalBgpPeer> {
        let selects = |peer: &Peer| peer.workloads.as_ref().is_some_and(|s| s.matches(labels));
        self.peers
            .iter()
            .find(|(_, peer)| self.is_for_this_node(&peer.peer) && selects(peer))
            .map(|(name, _)| LocalBgpPeer {
                bgp_peer_name: name.clone(),
            })
    }

    fn is_for_this_node(&self, peer: &BgpPeer) -> bool {
        if !peer.node.is_empty() {
            return peer.node == self.node;
        }
        Selector::parse(&peer.node_selector).is_ok_and(|s| s.matches(&self.node_labels))
    }

    /// A workload that a selector finds is a target; so is one named as such; then comes the one that is left. Of
    /// several migrations at once the greatest identifier counts.
    fn migration(
        &self,
        key: &WorkloadEndpointKey,
        labels: &impl Labels,
    ) -> (MigrationRole, String) {
        let greatest = |is_meant: &dyn Fn(&LiveMigration, Option<&Selector>) -> bool| {
            self.migrations
                .values()
                .filter(|(migration, selector)| is_meant(migration, selector.as_ref()))
                .map(|(migration, _)| migration.uid.clone())
                .max()
        };
        let selected = greatest(&|_, selector| selector.is_some_and(|s| s.matches(labels)));
        let target = selected.or_else(|| {
            greatest(&|migration, _| match &migration.target {
                Some(MigrationTarget::Endpoint(target)) => is_same(target, key),
                _ => false,
            })
        });
        if let Some(uid) = target {
            return (MigrationRole::Target, uid);
        }
        let source = greatest(&|migration, _| match &migration.source {
            Some(MigrationSource::Endpoint(source)) => is_same(source, key),
            Some(MigrationSource::Workload {
                node,
                orchestrator,
                workload,
            }) => is_same(
                &WorkloadEndpointKey {
                    node: node.clone(),
                    orchestrator: orchestrator.clone(),
                    workload: workload.clone(),
                    endpoint: key.endpoint.clone(),
                },
                key,
            ),
            None => false,
        });
        source.map_or_else(Default::default, |uid| (MigrationRole::Source, uid))
    }
}

/// Pods are known without their node, which a migration may not name.
fn is_same(named: &WorkloadEndpointKey, key: &WorkloadEndpointKey) -> bool {
    named.orchestrator == key.orchestrator
        && named.workload == key.workload
        && named.endpoint == key.endpoint
        && (key.orchestrator == "k8s" || named.node == key.node)
}
